//! What all connections share: the topics, and who coordinates groups and transactions. Opened from the
//! data directory, which it holds alone until it is dropped.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kafka_protocol::ResponseError;
use tokio::sync::Notify;
use tracing::{error, warn};
use uuid::Uuid;

use crate::clock;
use crate::config::{BrokerConfig, Data};
use crate::error::Error;
use crate::groups::{Groups, GroupsConfig};
use crate::log::batch::BatchHeader;
use crate::log::{Handles, Marker};
use crate::sync::lock;
use crate::topics::config::Config;
use crate::topics::partition::storage_error;
use crate::topics::{CreateError, Topics, name};
use crate::transactions::{Ending, Transactions, TransactionsConfig};

/// How long after a failure an ending is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
const TRY_AGAIN_AT_LATEST: Duration = Duration::from_secs(30);

/// Where the markers of endings that are not finished are already, by producer and epoch.
type Marked = HashMap<(i64, i16), HashSet<(String, i32)>>;

/// What became of a topic that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicOutcome {
    /// It is new.
    Made,
    /// It was there with as many partitions.
    Unchanged,
    /// It was there with fewer partitions and has been given more.
    Grown {
        /// How many it had.
        from: i32,
    },
}

/// The broker's state.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) config: BrokerConfig,
    pub(crate) cluster_id: String,
    pub(crate) topics: Topics,
    pub(crate) groups: Groups,
    pub(crate) transactions: Transactions,
    #[cfg(feature = "faults")]
    pub(crate) faults: crate::faults::Faults,
    /// Held while a transaction is ended.
    endings: Mutex<Marked>,
    /// Told when an ending failed.
    unfinished: Notify,
    /// Held so that no second broker uses the directory.
    _lock: Option<File>,
}

impl Node {
    /// Opens everything that was kept; nothing is served yet.
    pub(crate) fn open(config: BrokerConfig) -> Result<Node, Error> {
        let dir = match &config.data {
            Data::Memory => None,
            Data::Dir(path) => Some(path.clone()),
        };
        let lock = dir.as_deref().map(hold).transpose()?;
        let failed = |source| Error::Open { path: dir.clone().unwrap_or_default(), source };
        let cluster_id = cluster_id(dir.as_deref()).map_err(failed)?;
        let topics = Topics::open(dir.as_deref(), Handles::new(config.open_files)).map_err(failed)?;
        let delay = i32::try_from(config.group_initial_rebalance_delay.as_millis()).unwrap_or(i32::MAX);
        let rules = GroupsConfig {
            initial_rebalance_delay_ms: delay,
            restore_members: config.restore_group_members,
            ..GroupsConfig::default()
        };
        let groups = Groups::open(dir.as_deref(), rules).map_err(failed)?;
        let transactions =
            Transactions::open(dir.as_deref(), TransactionsConfig::default()).map_err(failed)?;
        let node = Node {
            config,
            cluster_id,
            topics,
            groups,
            transactions,
            #[cfg(feature = "faults")]
            faults: crate::faults::Faults::default(),
            endings: Mutex::default(),
            unfinished: Notify::new(),
            _lock: lock,
        };
        // Decided before the process died: readers must not wait for it any longer. One log that cannot be
        // read holds up its own transactions and nothing else.
        if node.finish().is_err() {
            node.unfinished.notify_one();
        }
        Ok(node)
    }

    /// Makes a topic unless it is there; one that has fewer partitions grows.
    pub(crate) fn create_topic(&self, topic: &str, partitions: i32) -> Result<TopicOutcome, Error> {
        let refused = |reason: String| Error::Topic { topic: topic.to_owned(), reason };
        if let Some(fault) = name::fault(topic) {
            return Err(refused(fault.into()));
        }
        if partitions < 1 {
            return Err(refused("it needs at least one partition".into()));
        }
        match self.topics.create(topic, partitions, Config::default()) {
            Ok(_) => Ok(TopicOutcome::Made),
            Err(CreateError::Exists) => self.grow_topic(topic, partitions).map_err(refused),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    fn grow_topic(&self, name: &str, partitions: i32) -> Result<TopicOutcome, String> {
        let changing = self.topics.changing();
        let topic = self.topics.get(name).ok_or("it was deleted meanwhile")?;
        let from = topic.partitions().len() as i32;
        match partitions.cmp(&from) {
            Ordering::Equal => Ok(TopicOutcome::Unchanged),
            Ordering::Less => Err(format!("it has {from} partitions, and partitions cannot be taken away")),
            Ordering::Greater => {
                self.topics.grow(&changing, &topic, partitions).map_err(|e| e.to_string())?;
                Ok(TopicOutcome::Grown { from })
            }
        }
    }

    /// Whether a transactional batch may be appended now.
    pub(crate) fn verify_transaction(
        &self,
        transactional_id: Option<&str>,
        header: &BatchHeader,
        place: (&str, i32),
        version: i16,
    ) -> Result<(), ResponseError> {
        let id = transactional_id.ok_or(ResponseError::InvalidRecord)?;
        self.transactions.verify_partition(id, header.producer_id, header.producer_epoch, place, version)
    }

    /// Ends a transaction: a marker into every partition, the groups' offsets, and only then it counts
    /// as ended. What fails is tried again in the background; done twice, it does no harm.
    pub(crate) fn carry_out(&self, ending: &Ending) -> Result<(), ResponseError> {
        // One after the other: a second marker that came late could end the producer's next transaction.
        let mut marked = lock(&self.endings);
        self.end(ending, &mut marked).inspect_err(|_| self.unfinished.notify_one())
    }

    /// Does all that can be done now; the first failure is given, and what is missing is left for the next
    /// time. Partitions that have their marker do not get another.
    fn end(&self, ending: &Ending, marked: &mut Marked) -> Result<(), ResponseError> {
        let done = marked.entry((ending.producer_id, ending.epoch)).or_default();
        let mut outcome = Ok(());
        for place in &ending.partitions {
            if done.contains(place) {
                continue;
            }
            match self.mark(ending, place) {
                Ok(()) => drop(done.insert(place.clone())),
                Err(error) => {
                    let ((topic, partition), id) = (place, &ending.transactional_id);
                    error!(topic, partition, transactional_id = id, "cannot end a transaction here yet");
                    outcome = outcome.and(Err(error));
                }
            }
        }
        self.groups
            .complete_transaction(ending.producer_id, &ending.groups, ending.commit)
            .map_err(|e| storage_error(&e))?;
        outcome?;
        self.transactions.complete(ending).map_err(|e| storage_error(&e))?;
        marked.remove(&(ending.producer_id, ending.epoch));
        Ok(())
    }

    /// Writes the marker of an ending into a partition, unless that is gone.
    fn mark(&self, ending: &Ending, (name, index): &(String, i32)) -> Result<(), ResponseError> {
        let Some(topic) = self.topics.get(name) else {
            return Ok(());
        };
        let Some(partition) = topic.partition(*index) else {
            return Ok(());
        };
        let marker = Marker { producer_id: ending.producer_id, epoch: ending.epoch, commit: ending.commit };
        match partition.mark(marker, topic.config().settings(), clock::now_ms()) {
            Ok(()) | Err(ResponseError::UnknownTopicOrPartition) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends what was decided and not carried out, as much of it as can be.
    fn finish(&self) -> Result<(), ResponseError> {
        let mut marked = lock(&self.endings);
        let unfinished = self.transactions.unfinished();
        let ended = unfinished.iter().map(|ending| self.end(ending, &mut marked));
        ended.fold(Ok(()), Result::and)
    }

    /// Leaves everything on the disk, so that not even a power cut takes anything back.
    pub(crate) fn close(&self) {
        self.topics.close();
        for (journal, synced) in [
            ("topics", self.topics.flush()),
            ("groups", self.groups.flush()),
            ("transactions", self.transactions.flush()),
        ] {
            if let Err(cause) = synced {
                warn!(journal, %cause, "cannot force a journal onto the disk");
            }
        }
    }

    /// Forgets what groups committed for a topic that is gone.
    pub(crate) fn topic_deleted(&self, topic: &str) -> io::Result<()> {
        self.groups.topic_deleted(topic)
    }
}

/// Aborts the transactions that have run out of time, as they do.
pub(crate) async fn expire_transactions(node: Arc<Node>) {
    loop {
        for ending in node.transactions.next_expired().await {
            // A failure is reported where it happens and tried again by the other task.
            let _ = node.carry_out(&ending);
        }
    }
}

/// Tries endings again that could not be carried out.
pub(crate) async fn finish_transactions(node: Arc<Node>) {
    let mut wait = TRY_AGAIN;
    loop {
        node.unfinished.notified().await;
        clock::sleep(wait).await;
        match node.finish() {
            Ok(()) => wait = TRY_AGAIN,
            Err(_) => {
                wait = (wait * 2).min(TRY_AGAIN_AT_LATEST);
                node.unfinished.notify_one();
            }
        }
    }
}

fn hold(dir: &Path) -> Result<File, Error> {
    let failed = |source| Error::Open { path: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(failed)?;
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { path: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// The id of this cluster, made at the first start.
fn cluster_id(dir: Option<&Path>) -> io::Result<String> {
    let fresh = || Uuid::new_v4().simple().to_string()[..22].to_owned();
    let Some(path) = dir.map(|dir| dir.join("cluster-id")) else {
        return Ok(fresh());
    };
    match fs::read_to_string(&path) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        Ok(_) | Err(_) => {}
    }
    let id = fresh();
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, &id)?;
    fs::rename(temporary, path)?;
    Ok(id)
}
