//! What is told: decisions as events, records to listeners, and the status.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::flow::{Id, Notice, Now, Ticket};
use redrive_core::route::Reason;
use redrive_core::{Class, Failure, Record, Route, duration};
use tracing::{error, info, warn};

use super::engine::Engine;
use super::troubles::About;
use crate::listener::{Event as Heard, Told};

/// How often the status is told when nothing else happens.
const STATUS: Duration = Duration::from_secs(1);
/// The same while nothing in it can change by itself. It is told after each look at the topics, too.
const REST: Duration = Duration::from_secs(15);
/// How far the clock may be from the broker's before that is said.
const SKEW: Duration = Duration::from_secs(1);
/// The least time between two states that are told because nothing is left to do.
const BREATH: Duration = Duration::from_millis(10);

/// Fewer waiting records than this are looked at each time the status is told; more only now and then.
const FEW: u64 = 1_000;

/// What listeners are told of a letter, kept until it is there.
#[derive(Clone)]
pub(crate) struct Story {
    record: Arc<Record>,
    failure: Option<Failure>,
    class: Option<Class>,
    pub(super) attempts: u32,
    pub(super) reason: Reason,
}

impl Story {
    pub(super) fn of(ticket: &Ticket) -> Self {
        let past = ticket.past.as_ref();
        Self {
            record: ticket.record.clone(),
            failure: past.map(|past| past.failure.clone()),
            class: past.map(|past| past.class),
            attempts: ticket.attempts(),
            reason: ticket.burial.map_or(Reason::Permanent, |burial| burial.reason),
        }
    }
}

impl Engine {
    /// Says what the flow has decided.
    pub(super) fn notice(&mut self, notice: Notice, now: Now) {
        match notice {
            Notice::Routed { id, class, route, wait } => {
                let Some(ticket) = self.flow.ticket(id) else { return };
                if let Some(past) = &ticket.past {
                    self.tally.failed(past.class, &past.failure);
                }
                let (origin, attempt) = (&ticket.record.at, ticket.attempts());
                info!(%origin, %class, route = route.name(), attempt, wait_ms = wait.map(|wait| wait.as_millis() as u64), "routed");
                if matches!(route, Route::Shelve { .. } | Route::Forward { .. }) {
                    self.hear(id, Heard::BeforeAside);
                }
            }
            Notice::Shelved { record, due, failure, attempts } => {
                info!(origin = %record.at, due_ms = due.millis(), attempts, "shelved");
                let class = failure.as_ref().map(|(_, class)| *class);
                let failure = failure.as_ref().map(|(failure, _)| &**failure);
                self.hear_told(Told { record: &record, failure, class, attempts }, Heard::AfterAside);
            }
            Notice::Rival { partition } => info!(partition, "another claimed the shelf; it is claimed again"),
            Notice::Foreign { partition, identity } => self.foreign(partition, &identity),
            Notice::Gone { partition, at } => {
                warn!(partition, at, "an entry of the shelf that has to be there is not");
                self.take_over_again(partition, "an entry is missing", now);
            }
            Notice::Unfit { partition, origin, expires } => {
                let shelf = &self.spec.settled.settled.shelf;
                let until = expires
                    .map_or(String::new(), |at| format!(", which may be gone at {at} (epoch milliseconds)"));
                let what = format!(
                    "record {origin} of partition {partition} is too large to be carried: it stays where it stands{until}"
                );
                let remedy =
                    format!("raise max.message.bytes of {shelf}: redrive topics apply; then restart");
                self.troubles.raise(About::Unfit(partition), what, &remedy);
            }
            Notice::Full { partition, records, bytes } => {
                let what = format!(
                    "{records} records ({bytes} bytes) of partition {partition} wait, as many as may: nothing new of \
                     it starts"
                );
                let remedy = "see what they wait for: redrive delayed list; shelf.max-records and \
                              shelf.max-bytes set the limit";
                self.troubles.raise(About::Full(partition), what, remedy);
            }
            Notice::Room { partition } => self.troubles.clear(About::Full(partition)),
            Notice::Dropped { record, reason } => {
                self.tally.dropped(reason);
                warn!(origin = %record.at, %reason, "dropped");
            }
            Notice::Blocked { partition, surge } => {
                let what = match (partition, surge) {
                    (None, false) => "an outage stops the subscription".to_owned(),
                    (None, true) => {
                        "most keys fail: taken for an outage, which stops the subscription".to_owned()
                    }
                    (Some(partition), false) => format!("an outage stops partition {partition}"),
                    (Some(partition), true) => {
                        format!("most keys fail: taken for an outage, which stops partition {partition}")
                    }
                };
                let remedy = match surge {
                    false => "bring back what the handler depends on; the flow goes on by itself",
                    true => "look at what was deployed last; the flow goes on by itself once records succeed",
                };
                warn!(partition, surge, "blocked");
                self.troubles.raise(About::Blocked(partition), what, remedy);
            }
            Notice::SentBack { replay, origin, fate } => self.sent_back(&replay, &origin, fate),
            Notice::Overdue { partition, leader, job, left } => {
                self.overdue(partition, leader, &job, left, now);
            }
            Notice::Opened { partition } => {
                info!(partition, "opened");
                self.troubles.clear(About::Blocked(partition));
            }
        }
    }

    /// Tells listeners of a record.
    pub(super) fn hear<'a>(&'a self, id: Id, event: impl Fn(Told<'a>) -> Heard<'a>) {
        let Some(ticket) = self.flow.ticket(id) else { return };
        let past = ticket.past.as_ref();
        let told = Told {
            record: &ticket.record,
            failure: past.map(|past| &past.failure),
            class: past.map(|past| past.class),
            attempts: ticket.attempts(),
        };
        self.hear_told(told, event);
    }

    /// Tells listeners of a record that is no longer in memory.
    pub(super) fn hear_story<'a>(&self, story: &'a Story, event: impl Fn(Told<'a>) -> Heard<'a>) {
        let Story { record, failure, class, attempts, .. } = story;
        let told = Told { record, failure: failure.as_ref(), class: *class, attempts: *attempts };
        self.hear_told(told, event);
    }

    /// What listeners do never affects the record.
    fn hear_told<'a>(&self, told: Told<'a>, event: impl Fn(Told<'a>) -> Heard<'a>) {
        for listener in &self.spec.settled.listeners {
            let heard = event(told);
            if std::panic::catch_unwind(AssertUnwindSafe(|| listener.hear(&heard))).is_err() {
                error!(origin = %told.record.at, "a listener panicked");
            }
        }
    }

    /// How long after the last time the status is told at the latest.
    pub(super) fn until_told(&self) -> Duration {
        let is_news = self.told.0 != self.flow.counts();
        match (self.flow.is_idle(), is_news) {
            (true, true) => BREATH,
            (true, false) if self.is_still => REST,
            (true | false, _) => STATUS,
        }
    }

    /// Tells the status, when it is time.
    pub(super) fn tell(&mut self, now: Now) {
        self.look_again(now);
        let since = now.steady.saturating_sub(self.told_at);
        let is_news = self.told.1 != self.troubles.changes() || self.watch.is_news;
        if since < self.until_told() && !is_news {
            return;
        }
        self.told_at = now.steady;
        self.watch.is_news = false;
        let (too_much, share) = self.flow.loss(now);
        match too_much {
            true => {
                let what = format!("{}% of the records were dropped", f64::from(share) / 1_000.0);
                self.troubles.raise(About::Loss, what, "look at why they fail; max-loss sets the limit");
            }
            false => self.troubles.clear(About::Loss),
        }
        match self.clock.skew().filter(|skew| *skew > SKEW) {
            // Said once: the milliseconds of it are another each time.
            Some(_) if self.troubles.has(About::Clock) => {}
            Some(skew) => {
                let what = format!("the clock here and the broker's are {} apart", duration::print(skew));
                self.troubles.raise(About::Clock, what, "set the clocks; nothing is early meanwhile");
            }
            None => self.troubles.clear(About::Clock),
        }
        self.told = (self.flow.counts(), self.troubles.changes());
        let problems = self.troubles.list();
        let shelf = self.flow.gauges();
        // Not the first time: most are over within a moment.
        if shelf.taking_over > 0 && self.status.borrow().shelf.taking_over > 0 {
            let (partitions, entries) = (shelf.taking_over, self.tally.entries_read);
            info!(partitions, entries, waiting = shelf.waiting, "taking over shelves");
        }
        if shelf.waiting < FEW {
            self.watch.by_due = self.flow.waiting_by_due(now);
        }
        self.is_still = self.rests() && shelf.waiting == 0 && share == 0;
        self.tally.reports_lost = self.before.tally.reports_lost + self.reports.lost();
        self.status.send_modify(|status| {
            status.counts = self.before.counts.with(self.flow.counts());
            status.publish_errors = self.before.publish_errors + self.burials.errors();
            status.in_memory = self.flow.in_memory();
            status.running = self.flow.running();
            status.marks = self.flow.marks().collect();
            status.loss = share;
            status.tally.clone_from(&self.tally);
            status.shelf = shelf;
            status.lag = self.watch.lag(&self.flow);
            status.by_due = self.watch.by_due;
            status.took = self.before.took.with(self.attempts.took());
            status.lateness = self.before.lateness.with(self.flow.lateness());
            status.problems = problems;
        });
    }
}
