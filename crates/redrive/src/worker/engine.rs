//! The loop of one subscription: asks the flow what to do, does it, and tells it what came of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use redrive_core::flow::{
    Action, Adopted, Counts, Flow, Id, Limits, Now, Settings as FlowSettings, ShelfSettings, Slot,
};
use redrive_core::settings::Delivery;
use redrive_core::shelf::Identity;
use redrive_core::{Class, Failure};
use redrive_kafka::{
    Batch, Consumer, ConsumerSettings, Error as KafkaError, Event, Events, Late, Outgoing, Publisher,
    Publishing, Refusal, Settings, Tailed, Turn, join,
};
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::assigning::{GivingUp, Starting, Together};
use super::attempts::{Attempts, Done};
use super::burying::Burials;
use super::clearing::Clearing;
use super::control::{self, Wish};
use super::damaged::Damaged;
use super::ends::Ends;
use super::originals::Originals;
use super::reports::Reports;
use super::saving::Saving;
use super::shelves::{Shelves, shelf_publishing};
use super::troubles::{About, Troubles};
use super::undecodable::Undecodable;
use super::watching::Watch;
use super::{News, Spec};
use crate::Error;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::status::{State, Status, Tally};

/// How many rounds are done before the loop looks at what else there is.
const ROUNDS: u32 = 64;

/// How long a group may take to hear that a member leaves. It hears nothing while it waits for one that is gone.
const LEAVING: Duration = Duration::from_secs(3);

/// What ended the wait.
enum Woken {
    News(News),
    Event(Option<Event>),
    Shelf(Vec<Tailed>),
    Time,
    Wish,
    Stop,
}

/// One subscription at work.
pub(crate) struct Engine {
    pub(super) spec: Arc<Spec>,
    pub(super) clock: Clock,
    pub(super) flow: Flow,
    pub(super) consumer: Consumer,
    pub(super) events: Events,
    pub(super) kafka: Settings,
    pub(super) publishing: Publishing,
    pub(super) publisher: Publisher,
    pub(super) attempts: Attempts,
    pub(super) burials: Burials,
    pub(super) saving: Saving,
    pub(super) shelves: Shelves,
    pub(super) originals: Originals,
    pub(super) ends: Ends,
    pub(super) undecodable: Undecodable,
    pub(super) damaged: Damaged,
    pub(super) clearing: Clearing,
    /// The partitions that the group gave us and neither asked back nor took away.
    pub(super) ours: BTreeSet<i32>,
    /// The partitions that run, each with the turn its records carry once they are read.
    pub(super) turns: BTreeMap<i32, Option<Turn>>,
    /// Assigned partitions that have not begun, and when to look again.
    pub(super) starting: HashMap<i32, Starting>,
    /// Assigned partitions that are about to begin.
    pub(super) together: Together,
    /// Looks at where partitions begin, so far.
    pub(super) looks: u64,
    pub(super) giving_up: Vec<GivingUp>,
    pub(super) troubles: Troubles,
    pub(super) news: mpsc::UnboundedSender<News>,
    inbox: mpsc::UnboundedReceiver<News>,
    stop: watch::Receiver<bool>,
    /// When the loop ends at the latest, once it was told to stop.
    pub(super) stopping: Option<Duration>,
    pub(super) status: watch::Sender<Status>,
    pub(super) told_at: Duration,
    /// What was told then: the counts, and how often something had become wrong or right.
    pub(super) told: (Counts, u64),
    /// What was told before this loop began: totals never go down while the process lives.
    pub(super) before: Status,
    /// Whether nothing that is told can change by itself.
    pub(super) is_still: bool,
    pub(super) watch: Watch,
    pub(super) tally: Tally,
    pub(super) reports: Reports,
    /// What is wanted of it while it runs.
    wishes: watch::Receiver<Wish>,
}

/// What ties a loop to those who started it.
#[derive(Clone)]
pub(crate) struct Links {
    pub(crate) status: watch::Sender<Status>,
    pub(crate) wishes: watch::Receiver<Wish>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Engine {
    pub(crate) async fn new(
        spec: Arc<Spec>,
        cluster: &Cluster,
        clock: Clock,
        links: Links,
    ) -> Result<Self, Error> {
        let Links { status, wishes, stop } = links;
        let settled = &spec.settled.settled;
        let (news, inbox) = mpsc::unbounded_channel();
        let publishing = Publishing {
            timeout: settled.publish_timeout,
            // What is published again because its confirmation was late would be there twice.
            late: Late::GoOn,
            max_message_bytes: spec.max_message_bytes,
            ..Publishing::default()
        };
        let publisher = Publisher::new(cluster.settings(), &publishing)?;
        let mut saving = match settled.delivery {
            Delivery::AtLeastOnce => Saving::commits(),
            Delivery::ExactlyOnce => Saving::transactions(cluster, &spec).await?,
        };
        if let Some(id) = &spec.topic_id {
            saving.set_topic(&id.to_string(), spec.partitions);
        }
        let timeouts = [settled.timeout, settled.retry_timeout];
        let attempts = Attempts::new(spec.settled.work.clone(), clock.clone(), timeouts, news.clone());
        let mut kafka = cluster.settings().clone();
        if settled.delivery == Delivery::ExactlyOnce {
            // Otherwise an offset could be read that a transaction is about to change.
            kafka.properties.push(("isolation.level".to_owned(), "read_committed".to_owned()));
        }
        let mut consuming = ConsumerSettings::of(kafka, settled.topic.clone(), settled.group.clone());
        consuming.partitions = spec.partitions;
        consuming.queue_bytes = consuming.queue_bytes.min(settled.max_bytes.get() as usize / 8);
        let (consumer, events) = join(consuming)?;
        let shelf_publisher = Publisher::new(cluster.settings(), &shelf_publishing(&publishing))?;
        let shelves = Shelves::new(cluster.settings(), &spec, shelf_publisher)?;
        let before = status.borrow().clone();
        status.send_modify(|status| {
            status.state = State::Running;
            status.problems.clear();
        });
        Ok(Self {
            shelves,
            originals: Originals::default(),
            ends: Ends::default(),
            undecodable: Undecodable::default(),
            damaged: Damaged::default(),
            clearing: Clearing::default(),
            flow: Flow::new(flow_settings(&spec)),
            clock,
            consumer,
            events,
            kafka: cluster.settings().clone(),
            publishing,
            publisher,
            attempts,
            burials: Burials::default(),
            saving,
            ours: BTreeSet::new(),
            turns: BTreeMap::new(),
            starting: HashMap::new(),
            together: Together::default(),
            looks: 0,
            giving_up: Vec::new(),
            troubles: Troubles::default(),
            news,
            inbox,
            stop,
            stopping: None,
            status,
            told_at: Duration::ZERO,
            told: (Counts::default(), 0),
            tally: before.tally.clone(),
            before,
            is_still: false,
            watch: Watch::of(spec.partitions),
            reports: Reports::default(),
            wishes,
            spec,
        })
    }

    /// Works until it is told to stop.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let mut alarm = self.clock.alarm();
        let mut stop = self.stop.clone();
        let mut stop = std::pin::pin!(async move { stop.wait_for(|stop| *stop).await.is_ok() });
        self.adopt();
        let mut wish = std::pin::pin!(control::next(self.wishes.clone()));
        let failed = loop {
            let now = self.settle();
            self.give_up(now);
            self.save(now);
            self.clear_source(now);
            self.watch(now);
            self.tell(now);
            if self.is_over(now) {
                break None;
            }
            let wake = self.next_wake(now);
            let takes_records = self.flow.has_room() && self.stopping.is_none() && !self.is_unsure();
            let stopping = self.stopping.is_some();
            // More can be done at once, after a look at what else there is.
            let goes_on = self.attempts.has_done();
            if goes_on {
                let_others_run().await;
            }
            let woken = tokio::select! {
                Some(news) = self.inbox.recv() => Woken::News(news),
                event = self.events.next_if(takes_records) => Woken::Event(event),
                Some(tailed) = self.shelves.tailed.recv() => Woken::Shelf(tailed),
                () = std::future::ready(()), if goes_on => Woken::Time,
                () = alarm.ring(wake), if !goes_on => Woken::Time,
                () = &mut wish => Woken::Wish,
                _ = &mut stop, if !stopping => Woken::Stop,
            };
            if !matches!(woken, Woken::Time) {
                self.is_still = false;
                self.hurry_to_leave();
            }
            match woken {
                Woken::News(news) => {
                    // Whoever else is about to end an attempt does so first: one look at all of them costs
                    // little more than one at the first.
                    let_others_run().await;
                    let now = self.clock.now();
                    self.take(news, now);
                    while let Ok(news) = self.inbox.try_recv() {
                        self.take(news, now);
                    }
                    self.attempts.sort_done();
                }
                Woken::Event(Some(Event::Failed(error))) => break Some(error),
                Woken::Event(Some(event)) => self.event(event),
                Woken::Event(None) => break None,
                Woken::Shelf(tailed) => self.tailed(tailed),
                Woken::Time => {}
                Woken::Wish => {
                    self.adopt();
                    wish.set(control::next(self.wishes.clone()));
                }
                Woken::Stop => self.begin_to_stop(),
            }
        };
        self.leave(failed).await
    }

    /// Goes on as it is wanted now.
    fn adopt(&mut self) {
        let Wish { settled, paused } = self.wishes.borrow_and_update().clone();
        self.flow.pause(paused.is_some());
        self.flow.adopt(Adopted {
            rules: settled.rules.clone(),
            concurrency: settled.concurrency,
            retry_concurrency: settled.retry_concurrency,
            surge_guard: settled.surge_guard,
            max_loss: settled.max_loss,
        });
        self.status.send_if_modified(|status| {
            let is_news = status.paused != paused;
            match &paused {
                Some(pause) if is_news => info!(by = pause.by, reason = pause.reason, "paused"),
                None if is_news => info!("resumed"),
                Some(_) | None => {}
            }
            status.paused = paused;
            is_news
        });
    }

    async fn leave(mut self, failed: Option<KafkaError>) -> Result<(), Error> {
        for partition in self.turns.keys().copied().collect::<Vec<_>>() {
            self.abandon(partition);
        }
        self.saving.end().await;
        self.reports.end().await;
        // Not a wait of the subscription's: nobody turns a clock for it.
        let clock = Clock::system();
        tokio::select! {
            () = self.consumer.leave() => {}
            () = clock.sleep(LEAVING) => warn!(
                "the group could not be told that this member leaves, as it waits for another; it notices by itself"
            ),
        }
        match failed {
            None => Ok(()),
            Some(failed) => Err(failed.into()),
        }
    }

    /// Does everything that can be done at once.
    fn settle(&mut self) -> Now {
        let mut now = self.clock.now();
        // Not for ever: what goes on failing at once must not keep the loop from everything else.
        for _ in 0..ROUNDS {
            while let Some(done) = self.attempts.next_done() {
                self.ended(done, now);
            }
            self.attempts.end_late(now.steady);
            self.retry_burials(now);
            self.retry_shelves(now);
            self.retry_undecodable(now);
            self.forget_overdue(now);
            self.flow.advance(now);
            let mut is_settled = true;
            while let Some(action) = self.flow.next_action() {
                is_settled &= matches!(action, Action::Handle(_));
                self.act(action, now);
            }
            if self.begins(now) {
                self.begin_gathered(now);
            }
            self.append();
            self.pick();
            self.pick_originals(now);
            self.look_for_ends(now);
            self.attempts.start_gathered();
            self.attempts.end_round();
            if is_settled && !self.attempts.has_done() {
                break;
            }
            now = self.clock.now();
        }
        now
    }

    fn act(&mut self, action: Action, now: Now) {
        match action {
            Action::Handle(attempt) => self.attempts.start(attempt),
            Action::Bury(id) => self.bury(id, now),
            Action::Pause(partition) => {
                self.begin_gathered(now);
                self.ease(partition, "pause", Consumer::pause);
            }
            Action::Resume(partition) => self.ease(partition, "resume", Consumer::resume),
            Action::Claim { partition, entry } => self.claim(partition, &entry),
            Action::Prove { partition, claim, at } => self.prove(partition, claim, at),
            Action::Locate { partition, mark, missing } => self.look(partition, mark, missing),
            Action::Start { partition, from } => self.begin(partition, from, now),
            Action::Fetch { partition, at } => self.fetch(partition, at),
            Action::Pass { partition, from, to } => self.shelves.passing = Some((partition, from, to)),
            Action::BuryEntry { partition, at } => self.bury_entry(partition, at, now),
            Action::Recall { partition, offset } => self.recall(partition, offset),
            Action::Trim { partition, to } => self.trim(partition, to),
            Action::Tell(notice) => self.notice(notice, now),
        }
    }

    fn ease(&self, partition: i32, deed: &str, act: impl Fn(&Consumer, i32) -> Result<(), KafkaError>) {
        match act(&self.consumer, partition) {
            Ok(()) => debug!(partition, deed, "eased"),
            // Given up meanwhile: nothing comes of it any more.
            Err(error) => debug!(partition, deed, %error, "not eased"),
        }
    }

    fn take(&mut self, news: News, now: Now) {
        match news {
            News::Ended { runner, answer } => self.attempts.ended(runner, answer, now.steady),
            News::Published { id, result } => {
                let outcome = result.map_err(|error| output_refused(&error));
                self.no_longer_stuck(id);
                let now = if outcome.is_err() { self.clock.asked() } else { now };
                self.flow.conclude(id, outcome, now);
            }
            News::Late { id, error } => self.late(id, &error),
            News::Buried { id, result } => self.buried(id, result, now),
            News::Saved(saved) => self.saved(saved, now),
            News::Shelved(shelved) => self.shelved(shelved, now),
            News::Found { look, partition, found } => self.found(look, partition, found, now),
            News::Damaged { partition, offsets } => self.are_damaged(partition, offsets),
            News::Cleared(cleared) => self.source_cleared(cleared),
            News::Watched(watched) => self.watched(watched),
            News::Sure(id) => self.sure(id, now),
        }
    }

    fn event(&mut self, event: Event) {
        let now = self.clock.now();
        match event {
            Event::Records(batch) => {
                if let Some(batch) = self.is_sure(batch, now) {
                    self.records(batch);
                }
            }
            Event::Assigned(partitions) => self.assigned(partitions),
            Event::Revoked(partitions) => self.revoked(partitions, now),
            Event::Lost(partitions) => self.lost(&partitions),
            Event::OutOfRange { partition, turn } if self.turns.get(&partition) == Some(&Some(turn)) => {
                self.out_of_range(partition, now);
            }
            Event::OutOfRange { .. } => {}
            Event::PartitionFailed { partition, error } => {
                let what = format!("partition {partition} cannot be read: {}", chain(&error));
                self.troubles.raise(About::Stopped(partition), what, "see the broker's reason");
            }
            Event::Trouble(error) => {
                let remedy = "check that the brokers can be reached and that the credentials are right";
                self.troubles.raise(About::Kafka, chain(&error), remedy);
            }
            Event::Failed(_) => {}
        }
    }

    pub(super) fn records(&mut self, batch: Batch) {
        // Of an earlier turn: it was delivered before the partition began where it is now.
        if self.turns.get(&batch.partition) == Some(&Some(batch.turn)) {
            for record in batch.records {
                self.arrive(record);
            }
            self.troubles.clear(About::Stopped(batch.partition));
        }
        self.troubles.clear(About::Kafka);
    }

    fn ended(&mut self, done: Done, now: Now) {
        match done.outcome {
            Ok(output) if output.is_empty() => self.flow.handled(done.id, done.slot, Ok(()), now),
            Ok(output) => self.publish_output(done.id, done.slot, output, now),
            Err(failure) => {
                let failure = self.masked(done.id, failure);
                self.flow.handled(done.id, done.slot, Err(failure), self.clock.asked());
            }
        }
    }

    /// The failure without what must not be repeated: nobody sees it before this.
    fn masked(&self, id: Id, failure: Failure) -> Failure {
        let Some(ticket) = self.flow.ticket(id) else { return failure };
        self.spec.settled.settled.mask.apply(failure, &ticket.record)
    }

    fn publish_output(&mut self, id: Id, slot: Slot, output: Vec<Outgoing>, now: Now) {
        let at = self.flow.ticket(id).map(|ticket| (ticket.record.at.partition, ticket.record.at.offset));
        if let Some((waiting, at)) = self.saving.output().zip(at) {
            let outcome = waiting.refusal(at).cloned().map_or(Ok(()), Err);
            if outcome.is_ok() {
                waiting.add(at, output);
            }
            self.flow.handled(id, slot, outcome, now);
            self.throttle(at.0);
            return;
        }
        let Some(topic) = output.first().map(|outgoing| outgoing.topic.clone()) else { return };
        // Its lane waits for the confirmation, the handler does not.
        self.flow.leave_handler(slot);
        let published: Vec<_> = output.into_iter().map(|outgoing| self.publisher.publish(outgoing)).collect();
        let all = async move {
            let mut result = Ok(());
            for one in published {
                result = result.and(one.await.map(drop));
            }
            result
        };
        let (news, all) = (self.news.clone(), self.telling(id, topic, all));
        tokio::spawn(async move {
            let result = all.await;
            let _ = news.send(News::Published { id, result });
        });
    }

    fn begin_to_stop(&mut self) {
        let now = self.clock.now();
        info!("stopping: nothing new starts, what runs may end");
        self.together = Together::default();
        self.stopping = Some(now.steady.saturating_add(self.spec.settled.settled.drain_timeout));
        self.saving.hurry(now);
        self.flow.stop();
    }

    fn is_over(&self, now: Now) -> bool {
        let Some(deadline) = self.stopping else { return false };
        let drained = self.turns.keys().all(|partition| self.flow.is_drained(*partition));
        (drained && self.saving.is_done(&self.flow)) || now.steady >= deadline
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    fn next_wake(&mut self, now: Now) -> Duration {
        let wakes = [
            Some(self.told_at.saturating_add(self.until_told())),
            self.flow.next_wake(now).filter(|_| self.stopping.is_none()),
            self.shelves.next_wake(),
            self.originals.next_wake(),
            self.ends.next_wake(),
            self.undecodable.next_wake(),
            self.reports.next_wake(),
            self.next_clearing(),
            self.burials.next_wake(),
            self.attempts.next_wake(),
            self.watch.next_wake().filter(|_| self.stopping.is_none()),
            self.saving.next_wake(&self.flow, self.is_stopping() || !self.giving_up.is_empty(), now),
            self.next_deadline(),
            self.together.at,
            self.starting.values().filter_map(|starting| starting.again).min(),
            self.stopping,
        ];
        wakes.into_iter().flatten().min().unwrap_or(now.steady)
    }
}

fn flow_settings(spec: &Spec) -> FlowSettings {
    let settled = &spec.settled.settled;
    FlowSettings {
        group: settled.group.clone(),
        instance: spec.writer.instance.clone(),
        rules: settled.rules.clone(),
        order_by: settled.order_by.clone(),
        followers: settled.followers,
        blocking: settled.outage_pauses,
        concurrency: settled.concurrency,
        retry_concurrency: settled.retry_concurrency,
        surge_guard: settled.surge_guard,
        max_loss: settled.max_loss,
        limits: Limits {
            records: settled.max_records.get() as usize,
            bytes: settled.max_bytes.get() as usize,
        },
        shelf: Some(ShelfSettings {
            identity: Identity {
                topic: settled.topic.to_string(),
                topic_id: spec.topic_id.map(|id| id.to_string()),
                group: settled.group.clone(),
            },
            process: Uuid::new_v4().as_u64_pair().0,
            cache: settled.shelf_limits.cache.get() as usize,
            limits: Limits {
                records: settled.shelf_limits.records.get() as usize,
                bytes: settled.shelf_limits.bytes.get() as usize,
            },
            payload: settled.payload,
            originals: spec.originals,
        }),
    }
}

/// Goes to the end of the line of tasks that are ready to run on this thread.
async fn let_others_run() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if waited {
            return Poll::Ready(());
        }
        waited = true;
        // Not by the runtime's own yielding, which asks the system for events first.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What a handler wanted to publish could not be: the attempt failed after all.
fn output_refused(error: &KafkaError) -> Failure {
    let class = match error {
        KafkaError::Publish { kind: Refusal::TooLarge | Refusal::NotAllowed, .. } => Class::Permanent,
        _ => Class::Outage,
    };
    Failure::from_error(error).presumably(class)
}

/// An error with everything it was caused by, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(&format!(": {inner_text}"));
        }
        cause = inner.source();
    }
    text
}
