//! `/metrics`: what the subscriptions tell, as Prometheus reads it. Names are those of the messaging
//! conventions of OpenTelemetry where there are some, and begin with `redrive_` otherwise. Labels are bounded:
//! topics, groups, classes, reasons and a limited number of error types; never keys or ids.

mod plain;
mod text;

use std::collections::BTreeMap;

use redrive::Status;
use redrive_core::route::Reason;
use redrive_letters::retention::{AtRisk, Limit};

use crate::Watched;
use plain::Value;
use text::Page;

/// The metrics of these subscriptions now, and of letters that are deleted before anybody has dealt with them.
pub(crate) fn page(watched: &Watched, at_risk: &[AtRisk]) -> String {
    let all: Vec<Status> = watched.subscriptions.iter().map(|one| one.status.borrow().clone()).collect();
    let mut page = Page::default();
    page.family("redrive_build_info", "gauge", "1, with the version that runs.");
    page.sample("redrive_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let dropped = "redrive_notify_dropped_total";
    page.family(dropped, "counter", "Events that whoever is notified did not get, of all subscriptions.");
    page.sample(dropped, &[], (watched.dropped_events)() as f64);
    let dropped = "redrive_spans_dropped_total";
    page.family(dropped, "counter", "Spans that the collector did not get, of all subscriptions.");
    page.sample(dropped, &[], (watched.dropped_spans)() as f64);
    letters_at_risk(&mut page, at_risk);
    conventional(&mut page, &all);
    for metric in &plain::ALL {
        let kind = match metric.value {
            Value::Counter(_) => "counter",
            Value::Gauge(_) => "gauge",
        };
        page.family(metric.name, kind, metric.help);
        for status in &all {
            let value = match metric.value {
                Value::Counter(value) => Some(value(status) as f64),
                Value::Gauge(value) => value(status),
            };
            if let Some(value) = value {
                page.sample(
                    metric.name,
                    &[("topic", status.topic.as_str()), ("group", &status.group)],
                    value,
                );
            }
        }
    }
    by_kinds(&mut page, &all);
    page.family("redrive_lateness_seconds", "histogram", "How long after its due time a record came back.");
    for status in &all {
        let labels = [("topic", status.topic.as_str()), ("group", status.group.as_str())];
        page.histogram("redrive_lateness_seconds", &labels, &status.lateness);
    }
    page.into_text()
}

/// Open letters that a retention deletes.
fn letters_at_risk(page: &mut Page, at_risk: &[AtRisk]) {
    let name = "redrive_letters_at_risk";
    let help =
        "Open letters that the retention of their topic deletes within a day, or by its size when more come.";
    page.family(name, "gauge", help);
    for risk in at_risk {
        let letters = match risk.limit {
            Limit::Time { soon, .. } => soon,
            Limit::Size { .. } => risk.open,
        };
        let labels = [("topic", risk.topic.as_str()), ("setting", risk.limit.setting())];
        page.sample(name, &labels, letters as f64);
    }
}

/// What OpenTelemetry has names for.
fn conventional(page: &mut Page, all: &[Status]) {
    fn labels(status: &Status) -> [(&str, &str); 3] {
        [
            ("messaging_system", "kafka"),
            ("messaging_destination_name", status.topic.as_str()),
            ("messaging_consumer_group_name", &status.group),
        ]
    }
    let consumed = "messaging_client_consumed_messages_total";
    page.family(consumed, "counter", "Records that were read from the source.");
    for status in all {
        page.sample(consumed, &labels(status), status.counts.consumed as f64);
    }
    let took = "messaging_process_duration_seconds";
    page.family(took, "histogram", "How long the handler took, each attempt counted.");
    for status in all {
        page.histogram(took, &labels(status), &status.took);
    }
}

/// What is told apart by class, reason, kind or state.
fn by_kinds(page: &mut Page, all: &[Status]) {
    let mut each =
        |name: &str, kind: &str, help: &str, label: &str, values: fn(&Status) -> Vec<(&str, u64)>| {
            page.family(name, kind, help);
            for status in all {
                for (value, count) in values(status) {
                    let labels = [("topic", status.topic.as_str()), ("group", &status.group), (label, value)];
                    page.sample(name, &labels, count as f64);
                }
            }
        };
    let letters = "Dead letters that are confirmed, by the reason.";
    each("redrive_letters_total", "counter", letters, "reason", |s| by_reason(&s.tally.letters));
    let dropped = "Records that a rule gave up, by the reason.";
    each("redrive_dropped_total", "counter", dropped, "reason", |s| by_reason(&s.tally.dropped));
    let waiting = "Records that wait on the shelf, by when they are due.";
    each("redrive_waiting_records", "gauge", waiting, "due", by_due);
    let partitions = "Partitions of this instance, by what is done with them.";
    each("redrive_partitions", "gauge", partitions, "state", |s| {
        vec![("reading", s.shelf.reading.into()), ("taking-over", s.shelf.taking_over.into())]
    });
    each("redrive_problems", "gauge", "What is wrong now, by its kind.", "kind", problems);
    let name = "redrive_failures_total";
    page.family(name, "counter", "Attempts that failed, by the class and the type of the error.");
    for status in all {
        for failures in &status.tally.failures {
            let labels = [
                ("topic", status.topic.as_str()),
                ("group", &status.group),
                ("class", failures.class.name()),
                ("error_type", &failures.error_type),
            ];
            page.sample(name, &labels, failures.count as f64);
        }
    }
}

fn by_reason(counts: &[u64; Reason::ALL.len()]) -> Vec<(&str, u64)> {
    Reason::ALL.into_iter().map(|reason| (reason.name(), counts[reason as usize])).collect()
}

fn by_due(status: &Status) -> Vec<(&str, u64)> {
    let by_due = &status.by_due;
    vec![
        ("held", by_due.held),
        ("overdue", by_due.overdue),
        ("1m", by_due.minute),
        ("1h", by_due.hour),
        ("1d", by_due.day),
        ("later", by_due.later),
    ]
}

fn problems(status: &Status) -> Vec<(&str, u64)> {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for problem in &status.problems {
        *kinds.entry(problem.kind).or_default() += 1;
    }
    kinds.into_iter().collect()
}
