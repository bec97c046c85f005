//! A worker: subscriptions that run until they are told to stop.

mod assigning;
mod attempts;
mod burying;
mod clearing;
mod control;
mod damaged;
mod ends;
mod engine;
mod keeping;
mod originals;
mod outlook;
mod output;
mod place;
mod reports;
mod saving;
mod shelves;
mod tally;
mod telling;
mod troubles;
mod undecodable;
mod watching;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::Origin;
use redrive_core::flow::{Id, Kept};
use redrive_core::letter::Writer;
use redrive_kafka::{Admin, Error as KafkaError, Tails, TopicId, TopicState};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

use crate::Error;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::pauses::{self, Known};
use crate::status::Status;
use crate::subscription::{Settled, Subscription};
use crate::topics::{self, Mender, Ready};
use assigning::Found;
use attempts::Answer;
use clearing::Cleared;
use control::Wish;
pub use control::{Control, Unchangeable};
pub(crate) use engine::chain;
use engine::{Engine, Links};
use outlook::Outlook;
use saving::Saved;
use shelves::Shelved;
use watching::Watched;

/// Runs subscriptions on a cluster.
pub struct Worker {
    cluster: Cluster,
    subscriptions: Vec<Subscription>,
    service: Option<String>,
    instance: String,
    accept_loss: bool,
    heeds_pauses: bool,
    clock: Clock,
    mender: Mender,
}

/// What one subscription runs with.
pub(crate) struct Spec {
    /// Which of the worker's subscriptions it is.
    pub(crate) nth: u32,
    pub(crate) settled: Settled,
    pub(crate) writer: Writer,
    pub(crate) accept_loss: bool,
    pub(crate) transactional_id: String,
    /// The id of the source when the worker started.
    pub(crate) topic_id: Option<TopicId>,
    /// How many partitions it had then.
    pub(crate) partitions: i32,
    /// How long the source keeps what was consumed, if that can be relied on.
    pub(crate) originals: Option<Kept>,
    /// What the topic of the letters accepts.
    pub(crate) max_message_bytes: Option<usize>,
    pub(crate) admin: Arc<Admin>,
    /// Followers of shelves, which share clients with those of the other subscriptions.
    pub(crate) tails: Tails,
    pub(crate) outlook: Arc<Outlook>,
    pub(crate) mender: Mender,
}

/// What happened outside of the loop.
pub(crate) enum News {
    /// What a runner did has ended.
    Ended { runner: usize, answer: Answer },
    /// What a handler wanted to publish is confirmed, or not.
    Published { id: Id, result: Result<(), KafkaError> },
    /// Something that is published for a record is not confirmed in time; it is still on its way.
    Late { id: Id, error: KafkaError },
    /// A letter is confirmed, or not.
    Buried { id: Id, result: Result<Origin, KafkaError> },
    /// Offsets are committed, or not.
    Saved(Saved),
    /// Something came of what was asked of a shelf.
    Shelved(Shelved),
    /// Where a partition begins.
    Found { look: u64, partition: i32, found: Found },
    /// Offsets of a partition that are letters already.
    Damaged { partition: i32, offsets: HashSet<i64> },
    /// The topics were looked at.
    Watched(Watched),
    /// The source was looked at as records came after a silence: its id, if somebody could be asked and it is there.
    Sure(Option<Option<TopicId>>),
    /// The source was cut, or not.
    Cleared(Cleared),
}

impl Worker {
    /// A worker without subscriptions.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.clone(),
            subscriptions: Vec::new(),
            service: None,
            instance: format!("{}-{}", std::process::id(), &Uuid::new_v4().simple().to_string()[..8]),
            accept_loss: false,
            heeds_pauses: false,
            clock: Clock::system(),
            mender: Mender::Library,
        }
    }

    /// The file that the subscriptions come from: a refusal names the command that mends their topics.
    #[must_use]
    pub fn config_file(mut self, file: impl Into<String>) -> Self {
        self.mender = Mender::Command { config: file.into() };
        self
    }

    /// One more subscription.
    #[must_use]
    pub fn subscribe(mut self, subscription: Subscription) -> Self {
        self.subscriptions.push(subscription);
        self
    }

    /// The name of the service in dead letters.
    #[must_use]
    pub fn service(mut self, name: impl Into<String>) -> Self {
        self.service = Some(name.into());
        self
    }

    /// The name of this instance in dead letters; made up if it is not given.
    #[must_use]
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = name.into();
        self
    }

    /// The clock that it goes by; whoever shares it knows the broker's time too.
    #[must_use]
    pub(crate) fn going_by(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Whether to go on where offsets are gone, rather than to stop the partition and say so.
    #[must_use]
    pub fn accept_loss(mut self, accept: bool) -> Self {
        self.accept_loss = accept;
        self
    }

    /// Heeds what `redrive pause` wants of its subscriptions, on every instance and across restarts: nothing
    /// starts before that is known. It needs the right to read the topic [`crate::pauses::TOPIC`].
    #[must_use]
    pub fn heed_pauses(mut self) -> Self {
        self.heeds_pauses = true;
        self
    }

    /// The clock that waits go by, for tests.
    #[cfg(feature = "testkit")]
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Runs until `shutdown` ends, then stops cleanly: what runs may end, offsets are committed.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let mut running = self.start().await?;
        tokio::select! {
            () = shutdown => {}
            ended = running.ended() => return ended,
        }
        running.stop().await
    }

    /// Checks everything, then starts; if one subscription cannot start, none does.
    pub async fn start(self) -> Result<Running, Error> {
        let (settled, start) = self.settle()?;
        let all: Vec<_> = settled.iter().map(|one| one.settled.clone()).collect();
        let ready = topics::ensure(&start.admin, &all, &start.mender).await?;
        ready.tell();
        let (ends, links): (Vec<_>, Vec<_>) = settled.iter().map(|one| link(one, &start.stopped)).unzip();
        let mut running = Running::of(ends, &start);
        heed(&running.known).await?;
        for (index, (settled, links)) in settled.into_iter().zip(links).enumerate() {
            let engine = start.engine(index, settled, &ready, links).await?;
            running.engines.spawn(async move { engine.run().await });
        }
        Ok(running)
    }

    /// Everything that is right by itself, or everything that is wrong.
    fn settle(self) -> Result<(Vec<Settled>, Start), Error> {
        let (mut settled, mut problems) = (Vec::new(), Vec::new());
        for subscription in self.subscriptions {
            match subscription.settle() {
                Ok(good) => settled.push(good),
                Err(more) => problems.extend(more),
            }
        }
        if settled.is_empty() && problems.is_empty() {
            problems.push("there is no subscription; give the worker one with `subscribe`".to_owned());
        }
        if !problems.is_empty() {
            return Err(Error::Settings(problems));
        }
        let (stop, stopped) = watch::channel(false);
        let admin = Arc::new(Admin::new(self.cluster.settings())?);
        let sources = settled.iter().map(|one| one.settled.topic.clone()).collect();
        let start = Start {
            outlook: Arc::new(Outlook::new(admin.clone(), sources, self.clock.clone())),
            admin,
            tails: Tails::new(self.cluster.settings()),
            id: Uuid::new_v4().simple().to_string(),
            cluster: self.cluster,
            service: self.service,
            instance: self.instance,
            accept_loss: self.accept_loss,
            heeds_pauses: self.heeds_pauses,
            clock: self.clock,
            mender: self.mender,
            stop,
            stopped,
        };
        Ok((settled, start))
    }
}

/// What the subscriptions of a start share.
struct Start {
    /// Unique to this start: a former one must not be fenced off by it, nor it by a former one.
    id: String,
    cluster: Cluster,
    admin: Arc<Admin>,
    tails: Tails,
    outlook: Arc<Outlook>,
    service: Option<String>,
    instance: String,
    accept_loss: bool,
    heeds_pauses: bool,
    clock: Clock,
    mender: Mender,
    stop: watch::Sender<bool>,
    stopped: watch::Receiver<bool>,
}

impl Start {
    /// One subscription whose topics are ready.
    async fn engine(
        &self,
        index: usize,
        settled: Settled,
        ready: &Ready,
        links: Links,
    ) -> Result<Engine, Error> {
        let letters = ready.found.topics.get(&settled.settled.letters);
        let writer = Writer {
            group: settled.settled.group.clone(),
            service: self.service.clone(),
            instance: self.instance.clone(),
            handler: settled.handler_name.clone(),
            by_origin: letters.is_some_and(topics::is_compacted),
        };
        let shelf = ready.found.topics.get(&settled.settled.shelf);
        let prefix = topics::transactional_prefix(&settled.settled);
        let source = ready.found.topics.get(&settled.settled.topic);
        let spec = Spec {
            nth: u32::try_from(index).unwrap_or_default(),
            topic_id: source.and_then(|topic| topic.id),
            partitions: source.map_or(0, |topic| topic.partitions),
            originals: source.and_then(topics::originals),
            // Batches go to either.
            max_message_bytes: [letters, shelf].into_iter().flatten().filter_map(max_message_bytes).min(),
            settled,
            writer,
            accept_loss: self.accept_loss,
            transactional_id: format!("{prefix}{}-{index}", self.id),
            admin: self.admin.clone(),
            tails: self.tails.clone(),
            outlook: self.outlook.clone(),
            mender: self.mender.clone(),
        };
        Engine::new(Arc::new(spec), &self.cluster, self.clock.clone(), links).await
    }
}

/// The other end of what ties a subscription to its loop.
struct End {
    status: watch::Receiver<Status>,
    wishes: watch::Sender<Wish>,
}

fn link(settled: &Settled, stopped: &watch::Receiver<bool>) -> (End, Links) {
    let settled = &settled.settled;
    let (status, told) = watch::channel(Status::of(settled.topic.clone(), settled.group.clone()));
    let (wishing, wishes) = watch::channel(Wish { settled: Arc::new(settled.clone()), paused: None });
    (End { status: told, wishes: wishing }, Links { status, wishes, stop: stopped.clone() })
}

/// A worker at work.
pub struct Running {
    engines: JoinSet<Result<(), Error>>,
    stop: watch::Sender<bool>,
    statuses: Vec<watch::Receiver<Status>>,
    control: Control,
    /// Whether it is known what is paused, and who finds out.
    known: watch::Receiver<Known>,
    following: Option<AbortHandle>,
    _cluster: Cluster,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(following) = &self.following {
            following.abort();
        }
    }
}

impl Running {
    /// Nothing runs yet; what is paused is being found out.
    fn of(ends: Vec<End>, start: &Start) -> Self {
        let (statuses, wishes) = ends.into_iter().map(|end| (end.status, end.wishes)).unzip();
        let control = Control { wishes: Arc::new(wishes) };
        let (knowing, known) = watch::channel(if start.heeds_pauses { Known::NotYet } else { Known::Yes });
        let following = start.heeds_pauses.then(|| {
            let follow = pauses::follow(
                start.cluster.settings().clone(),
                start.admin.clone(),
                control.clone(),
                knowing,
            );
            tokio::spawn(follow).abort_handle()
        });
        let (stop, cluster) = (start.stop.clone(), start.cluster.clone());
        Self { engines: JoinSet::new(), stop, statuses, control, known, following, _cluster: cluster }
    }

    /// Changes what the subscriptions do while they run.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// The state of each subscription, in the order they were given; it changes as it changes.
    #[must_use]
    pub fn statuses(&self) -> &[watch::Receiver<Status>] {
        &self.statuses
    }

    /// Waits until a subscription ends by itself, which only an error makes it do; the others are stopped.
    pub async fn ended(&mut self) -> Result<(), Error> {
        let first = self.engines.join_next().await;
        let _ = self.stop.send(true);
        let mut result = outcome(first);
        while let Some(next) = self.engines.join_next().await {
            result = result.and(outcome(Some(next)));
        }
        result
    }

    /// Stops: nothing new starts, what runs may end within the drain timeout, offsets are committed.
    pub async fn stop(mut self) -> Result<(), Error> {
        let _ = self.stop.send(true);
        self.ended().await
    }
}

/// Waits until it is known what is paused: nothing starts that somebody may have paused.
async fn heed(known: &watch::Receiver<Known>) -> Result<(), Error> {
    match known.clone().wait_for(|known| *known != Known::NotYet).await.as_deref() {
        Ok(Known::No(what)) => Err(Error::Pauses(what.clone())),
        Ok(Known::Yes | Known::NotYet) | Err(_) => Ok(()),
    }
}

fn outcome(ended: Option<Result<Result<(), Error>, tokio::task::JoinError>>) -> Result<(), Error> {
    match ended {
        None => Ok(()),
        Some(Ok(result)) => result,
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(()),
        },
    }
}

/// Ends when the process is asked to stop, by SIGINT (Ctrl-C) or SIGTERM.
///
/// # Panics
/// If signals cannot be listened for.
pub async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).expect("signals can be listened for");
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt()), listen(SignalKind::terminate()));
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// What a topic accepts as one record.
fn max_message_bytes(topic: &TopicState) -> Option<usize> {
    topic.settings.get("max.message.bytes")?.value.parse().ok()
}

/// The next pause of something that is tried again: from a second to half a minute.
pub(crate) fn back_off(tries: u32) -> Duration {
    Duration::from_secs(1 << tries.min(5)).min(Duration::from_secs(30))
}
