//! Consumes a topic as a member of a group. A thread of its own polls, whatever the receiver does; what
//! comes goes to [`Events`], what to do comes through [`Consumer`]. It decides nothing: which partition
//! begins where, when one is given up and what is committed is the caller's to say.

mod ask;
mod committing;
mod context;
mod event;
mod holding;
mod poll;
mod settings;

use std::collections::VecDeque;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerGroupMetadata};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::{Origin, Topic};
use tokio::sync::{mpsc, oneshot};

pub(crate) use ask::marked;
pub use ask::{Committed, Mark};
pub use event::{Batch, Event, Events, Turn};
pub use settings::{ConsumerSettings, RESERVED};

use crate::Error;
use crate::native::{self, Queue};
use crate::wake::Wake;
use context::Context;
use event::Waiting;
use holding::{Holding, Over, Start};

/// How long librdkafka's own thread may take to turn to another offset. It waits for no broker.
const SEEK: Duration = Duration::from_secs(10);

/// A member of a group. Its clones are the same member; when the last is dropped, it leaves.
#[derive(Clone)]
pub struct Consumer {
    link: Arc<Link>,
    member: Arc<Member>,
}

/// What the polling thread and the callers share. The queues are dropped before their client.
pub(crate) struct Link {
    topic: Topic,
    name: CString,
    group: String,
    queue: Queue,
    main: Queue,
    wake: Arc<Wake>,
    waiting: Arc<Waiting>,
    /// The longest sleep: to poll this often is what keeps the membership while nothing happens.
    heartbeat: Duration,
    consumer: BaseConsumer<Context>,
}

struct Member {
    stop: Arc<AtomicBool>,
    wake: Arc<Wake>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake.wake();
    }
}

/// The member's place in its group, as a transaction needs it.
pub struct GroupMetadata(pub(crate) ConsumerGroupMetadata);

/// Joins the group.
pub fn join(settings: ConsumerSettings) -> Result<(Consumer, Events), Error> {
    let (control, controls) = mpsc::unbounded_channel();
    let (data, batches) = mpsc::channel(settings.queue_batches.max(1));
    let batch = settings.batch;
    let link = Arc::new(Link::new(settings, control)?);
    let (stop, wake) = (Arc::new(AtomicBool::new(false)), link.wake.clone());
    let thread = thread::Builder::new().name(format!("consume {}", link.topic)).spawn({
        let (link, stop) = (link.clone(), stop.clone());
        move || poll::run(&link, &data, &stop, batch)
    });
    let thread = thread.expect("a thread can be started");
    let events = Events {
        control: controls,
        data: batches,
        ready: VecDeque::new(),
        waiting: link.waiting.clone(),
        wake: wake.clone(),
    };
    let member = Arc::new(Member { stop, wake, thread: Mutex::new(Some(thread)) });
    Ok((Consumer { link, member }, events))
}

impl Link {
    fn new(settings: ConsumerSettings, control: mpsc::UnboundedSender<Event>) -> Result<Self, Error> {
        let context = Context::new(settings.topic.clone(), Arc::default(), control);
        let wake = Arc::new(Wake::default());
        let config = settings.config();
        let heartbeat = settings::heartbeat(&config);
        let consumer = BaseConsumer::from_config_and_context(&config, context);
        let mut consumer = consumer
            .map_err(|source| Error::Client { brokers: settings.settings.brokers.clone(), source })?;
        consumer.set_nonempty_callback({
            let wake = wake.clone();
            move || wake.wake()
        });
        let native = consumer.client().native_client();
        let queue = Queue::new(native, wake.clone());
        let main = Queue::main(native).expect("a consumer with a group has a queue");
        let waiting = Arc::new(Waiting::new(settings.queue_bytes));
        let ConsumerSettings { topic, group, .. } = settings;
        consumer.subscribe(&[topic.as_str()]).map_err(|source| Error::Join {
            topic: topic.clone(),
            group: group.clone(),
            source,
        })?;
        let name = CString::new(topic.as_str()).expect("a topic's name has no zero in it");
        Ok(Self { topic, name, group, queue, main, wake, waiting, heartbeat, consumer })
    }

    /// To our queue before they are fetched and after: when librdkafka stops a partition it ends the lead, and
    /// may do so as late as just before it starts it again.
    fn assign(&self, places: &[(i32, i64)]) -> Result<(), KafkaError> {
        let native = self.consumer.client().native_client();
        let mut list = TopicPartitionList::with_capacity(places.len());
        for (partition, offset) in places {
            list.add_partition_offset(self.topic.as_str(), *partition, Offset::Offset(*offset))?;
            self.queue.lead(native, &self.name, *partition);
        }
        self.consumer.resume(&list)?;
        self.consumer.incremental_assign(&list)?;
        for (partition, _) in places {
            self.queue.lead(native, &self.name, *partition);
        }
        Ok(())
    }

    fn anew(&self, partition: i32, offset: i64) -> Result<(), KafkaError> {
        self.consumer.incremental_unassign(&self.consumer.context().list(&[partition]))?;
        self.assign(&[(partition, offset)])
    }

    fn seek(&self, partition: i32, offset: i64) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::with_capacity(1);
        list.add_partition_offset(self.topic.as_str(), partition, Offset::Offset(offset))?;
        self.consumer.resume(&list)?;
        let sought = self.consumer.seek_partitions(list, SEEK)?;
        sought.elements().iter().try_for_each(TopicPartitionListElem::error)
    }
}

impl Consumer {
    /// Starts fetching a partition that is ours from this offset on, or goes there if it is read already.
    /// What was fetched before and not handed over is dropped; what was handed over bears an earlier turn.
    ///
    /// It waits for librdkafka's own thread, not for a broker.
    pub fn begin(&self, partition: i32, offset: i64) -> Result<Turn, Error> {
        let mut begun = self.begin_all(&[(partition, offset)]);
        begun.pop().expect("one for each").1
    }

    /// The same for many at the same time: one that begins after others have begun may have to wait for their fetch.
    pub fn begin_all(&self, places: &[(i32, i64)]) -> Vec<(i32, Result<Turn, Error>)> {
        let link = &self.link;
        let mut holding = link.consumer.context().holding();
        let mut fresh = Vec::new();
        let mut begun: Vec<_> = places
            .iter()
            .map(|&(partition, offset)| {
                (partition, self.begin_one(&mut holding, partition, offset, &mut fresh))
            })
            .collect();
        if fresh.is_empty() || link.assign(&fresh).is_ok() {
            return begun;
        }
        // All or nothing: the one that is refused must not keep the others from beginning.
        for (partition, offset) in fresh {
            let Err(source) = link.assign(&[(partition, offset)]) else { continue };
            holding.unbegin(partition);
            if let Some((_, turn)) = begun.iter_mut().find(|(of, _)| *of == partition) {
                *turn = Err(self.not_begun(partition, offset, source));
            }
        }
        begun
    }

    /// One of them; one that is new to librdkafka is added to those.
    fn begin_one(
        &self,
        holding: &mut Holding,
        partition: i32,
        offset: i64,
        fresh: &mut Vec<(i32, i64)>,
    ) -> Result<Turn, Error> {
        let link = &self.link;
        let Some((turn, start)) = holding.begin(partition, offset) else {
            return Err(Error::NotOurs { topic: link.topic.clone(), partition });
        };
        let start = match start {
            Start::Seek if link.seek(partition, offset).is_ok() => return Ok(turn),
            Start::Seek => holding.anew(partition),
            other => other,
        };
        match start {
            Start::Assign => fresh.push((partition, offset)),
            Start::Anew => link.anew(partition, offset).map_err(|source| {
                holding.unbegin(partition);
                self.not_begun(partition, offset, source)
            })?,
            Start::Seek | Start::Later => {}
        }
        Ok(turn)
    }

    fn not_begun(&self, partition: i32, offset: i64, source: KafkaError) -> Error {
        Error::Begin { at: Origin { topic: self.link.topic.clone(), partition, offset }, source }
    }

    /// Gives partitions up: nothing more of them comes. Those that the group asked back it gets when all of
    /// them are given up; others stay this consumer's, silent until they begin again.
    pub fn give_up(&self, partitions: &[i32]) -> Result<(), Error> {
        let link = &self.link;
        let mut holding = link.consumer.context().holding();
        let given_up = holding.give_up(partitions);
        let mut result = Ok(());
        if !given_up.still.is_empty() {
            result = link.consumer.pause(&link.consumer.context().list(&given_up.still));
        }
        if let Some(over) = given_up.over {
            result = result.and(self.end_revocation(&over));
        }
        result.map_err(|source| Error::GiveUp {
            topic: link.topic.clone(),
            partitions: partitions.to_vec(),
            source,
        })
    }

    /// The unassignment is what the group waits for, even of nothing.
    fn end_revocation(&self, over: &Over) -> Result<(), KafkaError> {
        let link = &self.link;
        link.consumer.incremental_unassign(&link.consumer.context().list(&over.unassign))?;
        over.anew.iter().try_for_each(|(partition, offset)| link.anew(*partition, *offset))
    }

    /// Stops fetching a partition and drops what was fetched and not handed over; it is fetched again.
    pub fn pause(&self, partition: i32) -> Result<(), Error> {
        self.flow("pause", partition, |list| self.link.consumer.pause(list))
    }

    /// Goes on where [`Consumer::pause`] stopped.
    pub fn resume(&self, partition: i32) -> Result<(), Error> {
        self.flow("resume", partition, |list| self.link.consumer.resume(list))
    }

    fn flow(
        &self,
        deed: &'static str,
        partition: i32,
        act: impl FnOnce(&TopicPartitionList) -> Result<(), KafkaError>,
    ) -> Result<(), Error> {
        let topic = &self.link.topic;
        // Under the lock: a pause amid a taking would go back to before what is being taken.
        let holding = self.link.consumer.context().holding();
        if !holding.reads(partition) {
            return Err(Error::NotOurs { topic: topic.clone(), partition });
        }
        act(&self.link.consumer.context().list(&[partition])).map_err(|source| Error::Flow {
            deed,
            topic: topic.clone(),
            partition,
            source,
        })
    }

    /// Whether the membership is lost and that has not been reported yet.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.link.consumer.assignment_lost()
    }

    /// Where a partition that is fetched ended when it was last fetched; none if it was not yet. Nobody is asked.
    #[must_use]
    pub fn known_end(&self, partition: i32) -> Option<i64> {
        native::known_end(self.link.consumer.client().native_client(), &self.link.name, partition)
    }

    /// The place in the group at this moment.
    #[must_use]
    pub fn group_metadata(&self) -> Option<GroupMetadata> {
        self.link.consumer.group_metadata().map(GroupMetadata)
    }

    /// Leaves the group and waits until it has been told. What is held is given up without a word.
    ///
    /// While the group waits for a member that is gone, no broker hears anything of those that wait with it: that may
    /// take as long as the group's session timeout. Whoever drops the future does not wait for it, and it is told as
    /// soon as it can be if the process lives that long.
    pub async fn leave(self) {
        self.member.stop.store(true, Ordering::SeqCst);
        self.member.wake.wake();
        let thread = self.member.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (told, left) = oneshot::channel();
        // The client is taken down there, too, if this is the last that holds it: that can take a while. Not a thread of
        // the runtime's, whose end would wait for it.
        let leaving = thread::Builder::new().name("leave".to_owned()).spawn(move || {
            let _ = thread.map(JoinHandle::join);
            drop(self);
            let _ = told.send(());
        });
        drop(leaving.expect("a thread can be started"));
        let _ = left.await;
    }
}
