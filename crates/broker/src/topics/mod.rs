//! The topics of the broker: their names, ids, partitions and configurations, kept in a journal. What
//! is asked for comes in; a change is answered only when it is in the journal. Knows nothing of the wire.

pub(crate) mod config;
mod journal;
pub(crate) mod known;
pub(crate) mod name;
pub(crate) mod partition;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::{fs, io};

use bytes::Bytes;
use tracing::{info, warn};
use uuid::Uuid;

use self::config::Config;
use self::journal::{Entry, Kept};
use self::partition::Partition;
use crate::journal::Journal;
use crate::log::{Handles, Place};
use crate::sync::{lock, read, write};

/// Entries of topics that are gone are swept out when the file is larger than this.
const COMPACT_ABOVE: u64 = 1 << 20;

/// A topic. Made anew under the same name it is another one, with another id.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) id: Uuid,
    partitions: RwLock<Arc<[Arc<Partition>]>>,
    config: RwLock<Arc<Config>>,
}

impl Topic {
    pub(crate) fn partitions(&self) -> Arc<[Arc<Partition>]> {
        read(&self.partitions).clone()
    }

    pub(crate) fn partition(&self, index: i32) -> Option<Arc<Partition>> {
        read(&self.partitions).get(usize::try_from(index).ok()?).cloned()
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        read(&self.config).clone()
    }

    fn kept(&self) -> Kept {
        Kept {
            name: self.name.clone(),
            id: self.id,
            partitions: self.partitions().len() as i32,
            config: self.config().overrides().clone(),
        }
    }
}

/// Why a topic could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateError {
    #[error("a topic of that name exists")]
    Exists,
    #[error("the name collides with the topic {0}")]
    Collides(String),
    #[error("cannot write the topics' journal")]
    Io(#[from] io::Error),
}

/// All topics.
#[derive(Debug)]
pub(crate) struct Topics {
    /// Held by whoever changes a topic, before any other lock here: a change is read, judged, written down
    /// and made before the next one is.
    changes: Mutex<()>,
    known: RwLock<Known>,
    journal: Journal,
    logs: Option<PathBuf>,
    handles: Arc<Handles>,
}

/// The right to change topics, which one request has at a time.
pub(crate) struct Changing<'a>(#[allow(dead_code, reason = "held, not read")] MutexGuard<'a, ()>);

#[derive(Debug, Default)]
struct Known {
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: HashMap<Uuid, Arc<Topic>>,
}

impl Topics {
    /// Reads the journal in `dir`; in memory without one. No log is opened yet.
    pub(crate) fn open(dir: Option<&Path>, handles: Arc<Handles>) -> io::Result<Topics> {
        let (journal, entries) = Journal::open(dir.map(|dir| dir.join("topics.journal")).as_deref())?;
        let topics = Topics {
            changes: Mutex::default(),
            known: RwLock::default(),
            journal,
            logs: dir.map(|dir| dir.join("logs")),
            handles,
        };
        for kept in journal::fold(&entries)? {
            let config = Config::new(kept.config.clone()).unwrap_or_else(|fault| {
                // Taken when it was set; a later version may know better. The data must stay reachable.
                warn!(topic = kept.name, %fault, "a topic's configuration is no longer valid, defaults hold");
                Config::default()
            });
            topics.insert(&topics.build(&kept, config));
        }
        topics.sweep(&journal::deleted(&entries))?;
        Ok(topics)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Topic>> {
        read(&self.known).by_name.get(name).cloned()
    }

    pub(crate) fn by_id(&self, id: Uuid) -> Option<Arc<Topic>> {
        read(&self.known).by_id.get(&id).cloned()
    }

    /// All of them by name.
    pub(crate) fn all(&self) -> Vec<Arc<Topic>> {
        read(&self.known).by_name.values().cloned().collect()
    }

    pub(crate) fn has_partition(&self, name: &str, partition: i32) -> bool {
        self.get(name).is_some_and(|topic| topic.partition(partition).is_some())
    }

    /// Whether a topic of that name may be made.
    pub(crate) fn check_free(&self, name: &str) -> Result<(), CreateError> {
        check_free(&read(&self.known), name)
    }

    pub(crate) fn create(
        &self,
        name: &str,
        partitions: i32,
        config: Config,
    ) -> Result<Arc<Topic>, CreateError> {
        let _changing = self.changing();
        self.check_free(name)?;
        let kept = Kept {
            name: name.to_owned(),
            id: Uuid::new_v4(),
            partitions,
            config: config.overrides().clone(),
        };
        self.journal.append(&Entry::Create(kept.clone()).encode())?;
        let topic = self.build(&kept, config);
        self.insert(&topic);
        info!(topic = kept.name, partitions, "made a topic");
        Ok(topic)
    }

    /// Waits until no other request changes a topic.
    pub(crate) fn changing(&self) -> Changing<'_> {
        Changing(lock(&self.changes))
    }

    /// Deletes a topic and its files.
    pub(crate) fn delete(&self, topic: &Topic) -> io::Result<()> {
        {
            let _changing = self.changing();
            if self.by_id(topic.id).is_none() {
                return Ok(());
            }
            // First written down: a topic that cannot be is still there, whole.
            self.journal.append(&Entry::Delete { id: topic.id }.encode())?;
            let mut known = write(&self.known);
            known.by_id.remove(&topic.id);
            known.by_name.remove(&topic.name);
            drop(known);
            self.compact();
        }
        topic.partitions().iter().for_each(|partition| partition.delete());
        info!(topic = topic.name, "deleted a topic");
        match self.dir(topic.id).map(fs::remove_dir_all) {
            Some(Err(e)) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Gives a topic more partitions, `count` in all.
    pub(crate) fn grow(&self, _: &Changing<'_>, topic: &Topic, count: i32) -> io::Result<()> {
        self.journal.append(&Entry::Grow { id: topic.id, partitions: count }.encode())?;
        let mut partitions = write(&topic.partitions);
        let more = partitions.len() as i32..count;
        *partitions =
            partitions.iter().cloned().chain(more.map(|index| self.partition(topic.id, index))).collect();
        Ok(())
    }

    pub(crate) fn configure(&self, _: &Changing<'_>, topic: &Topic, config: Config) -> io::Result<()> {
        self.journal
            .append(&Entry::Configure { id: topic.id, config: config.overrides().clone() }.encode())?;
        *write(&topic.config) = Arc::new(config);
        self.compact();
        Ok(())
    }

    /// Writes the journal anew when most of it is history. Whoever calls this changes topics.
    fn compact(&self) {
        let entries: Vec<_> = match self.journal.len_bytes() > COMPACT_ABOVE {
            true => self.all().iter().map(|topic| Entry::Create(topic.kept()).encode()).collect(),
            false => return,
        };
        let live: usize = entries.iter().map(Bytes::len).sum();
        if self.journal.len_bytes() < 2 * live as u64 {
            return;
        }
        if let Err(cause) = self.journal.rewrite(entries) {
            // What was there is still there, only longer.
            warn!(%cause, "cannot write the topics' journal anew");
        }
    }

    /// Leaves every log that was used so that the next start is quick.
    pub(crate) fn close(&self) {
        for topic in self.all() {
            for partition in topic.partitions().iter() {
                if let Err(cause) = partition.close() {
                    warn!(topic = topic.name, partition = partition.index, %cause, "cannot close a log");
                }
            }
        }
    }

    /// Forces the journal onto the disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.journal.sync()
    }

    fn insert(&self, topic: &Arc<Topic>) {
        let mut known = write(&self.known);
        known.by_name.insert(topic.name.clone(), topic.clone());
        known.by_id.insert(topic.id, topic.clone());
    }

    fn build(&self, kept: &Kept, config: Config) -> Arc<Topic> {
        Arc::new(Topic {
            name: kept.name.clone(),
            id: kept.id,
            partitions: RwLock::new(
                (0..kept.partitions).map(|index| self.partition(kept.id, index)).collect(),
            ),
            config: RwLock::new(Arc::new(config)),
        })
    }

    fn partition(&self, id: Uuid, index: i32) -> Arc<Partition> {
        let dir = self.dir(id).map(|dir| dir.join(index.to_string()));
        Arc::new(Partition::new(index, Place { dir, handles: self.handles.clone() }))
    }

    /// By id, not by name: what a deleted topic left behind never becomes part of its successor.
    fn dir(&self, id: Uuid) -> Option<PathBuf> {
        Some(self.logs.as_ref()?.join(id.to_string()))
    }

    /// Removes the files of topics that were deleted just before a crash. Files that no entry speaks of are
    /// left alone: what is gone may be the entry.
    fn sweep(&self, deleted: &HashSet<Uuid>) -> io::Result<()> {
        let Some(logs) = &self.logs else { return Ok(()) };
        fs::create_dir_all(logs)?;
        for entry in fs::read_dir(logs)? {
            let entry = entry?;
            let id = entry.file_name().to_str().and_then(|name| Uuid::parse_str(name).ok());
            match id {
                Some(id) if deleted.contains(&id) => fs::remove_dir_all(entry.path())?,
                Some(id) if self.by_id(id).is_none() => {
                    warn!(path = %entry.path().display(), "the logs of a topic that nobody knows are left alone");
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }
}

fn check_free(known: &Known, name: &str) -> Result<(), CreateError> {
    if known.by_name.contains_key(name) {
        return Err(CreateError::Exists);
    }
    match known.by_name.keys().find(|other| name::collides(name, other)) {
        Some(other) => Err(CreateError::Collides(other.clone())),
        None => Ok(()),
    }
}
