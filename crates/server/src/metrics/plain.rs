//! The metrics that have one value in each subscription.

use redrive::{State, Status};

/// One of them.
pub(super) struct Plain {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) value: Value,
}

/// What it is, and where it comes from.
pub(super) enum Value {
    /// It only grows.
    Counter(fn(&Status) -> u64),
    /// It goes up and down, and may not be known.
    Gauge(fn(&Status) -> Option<f64>),
}

const fn counter(name: &'static str, value: fn(&Status) -> u64, help: &'static str) -> Plain {
    Plain { name, help, value: Value::Counter(value) }
}

const fn gauge(name: &'static str, value: fn(&Status) -> Option<f64>, help: &'static str) -> Plain {
    Plain { name, help, value: Value::Gauge(value) }
}

pub(super) const ALL: [Plain; 21] = [
    counter("redrive_attempts_total", |s| s.counts.attempts, "Times a handler was called."),
    counter("redrive_handled_total", |s| s.counts.handled, "Records that were handled well."),
    counter("redrive_shelved_total", |s| s.counts.shelved, "Times a record was set aside on the shelf."),
    counter("redrive_released_total", |s| s.counts.released, "Times a record came back from the shelf."),
    counter("redrive_skipped_total", |s| s.tally.skipped, "Records passed over: letters already."),
    counter(
        "redrive_publish_errors_total",
        |s| s.publish_errors,
        "Letters and output that could not be published at once.",
    ),
    counter(
        "redrive_shelf_entries_read_total",
        |s| s.tally.entries_read,
        "Entries read from the shelf's log, when it is taken over too.",
    ),
    counter(
        "redrive_lanes_overdue_total",
        |s| s.tally.lanes_overdue,
        "Lanes opened although the replay that was announced for them was not done in time.",
    ),
    counter(
        "redrive_replay_reports_lost_total",
        |s| s.tally.reports_lost,
        "Reports of what became of letters that were sent back, given up.",
    ),
    gauge(
        "redrive_waiting_bytes",
        |s| Some(s.shelf.waiting_bytes as f64),
        "Bytes of the records that wait on the shelf.",
    ),
    gauge(
        "redrive_lanes_closed",
        |s| Some(s.shelf.lanes_closed as f64),
        "Lanes that a letter closed and nobody has opened.",
    ),
    gauge(
        "redrive_shelf_log_bytes",
        |s| Some(s.shelf.log_bytes as f64),
        "Bytes of the shelf's log, what is done with included.",
    ),
    gauge("redrive_in_flight_records", |s| Some(f64::from(s.running)), "Records with the handler."),
    gauge(
        "redrive_in_memory_records",
        |s| Some(s.in_memory as f64),
        "Records in memory, those with the handler included.",
    ),
    gauge(
        "redrive_lag_records",
        |s| s.lag.map(|lag| lag as f64),
        "Records of this instance's partitions that are not complete.",
    ),
    gauge(
        "redrive_loss_ratio",
        |s| Some(f64::from(s.loss) / 100_000.0),
        "Share of the records that was dropped within the window of max-loss.",
    ),
    gauge("redrive_ready", |s| flag(s.is_ready()), "1 if the subscription runs and nothing is wrong."),
    gauge("redrive_paused", |s| flag(s.paused.is_some()), "1 if somebody paused the subscription."),
    gauge(
        "redrive_failed",
        |s| flag(s.state == State::Failed),
        "1 if it could not start or ended by an error, and is tried again.",
    ),
    gauge(
        "redrive_blocked",
        |s| flag(s.problems.iter().any(|problem| problem.kind == "blocked")),
        "1 if an outage stops the subscription, or a partition of it.",
    ),
    gauge(
        "redrive_held_partitions",
        |s| Some(held(s) as f64),
        "Partitions that wait until a letter, or an entry of the shelf, can be written.",
    ),
];

fn flag(is_so: bool) -> Option<f64> {
    Some(if is_so { 1.0 } else { 0.0 })
}

fn held(status: &Status) -> usize {
    let is_held = |kind: &str| matches!(kind, "held" | "shelf" | "stopped");
    let mut held: Vec<_> =
        status.problems.iter().filter(|one| is_held(one.kind)).filter_map(|one| one.partition).collect();
    held.sort_unstable();
    held.dedup();
    held.len()
}
