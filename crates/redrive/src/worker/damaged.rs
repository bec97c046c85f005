//! Records of the source that became letters of this group before: with `skip-damaged`, whoever reads the source
//! anew does not handle them. The letters themselves are the register.

use std::collections::{BTreeMap, HashSet};

use redrive_core::headers::Name;
use redrive_core::{Origin, Record, Topic};
use redrive_kafka::{Admin, Error, Passage, Settings, read_through};
use tracing::{debug, info};

use super::engine::Engine;

/// The damaged offsets of the partitions that are read.
#[derive(Default)]
pub(crate) struct Damaged(BTreeMap<i32, HashSet<i64>>);

/// Whose letters are looked for.
#[derive(Clone)]
pub(super) struct Register {
    pub(super) settings: Settings,
    pub(super) letters: Topic,
    pub(super) source: Topic,
    pub(super) group: String,
}

struct Reading {
    register: Register,
    partition: i32,
    offsets: HashSet<i64>,
}

impl Register {
    /// The offsets of a partition of the source that letters say they came from.
    pub(super) async fn read(&self, partition: i32) -> Result<HashSet<i64>, Error> {
        let admin = Admin::new(&self.settings)?;
        let found = admin.outline(std::slice::from_ref(&self.letters)).await?;
        let Some(state) = found.get(&self.letters) else { return Ok(HashSet::new()) };
        let reading = Reading { register: self.clone(), partition, offsets: HashSet::new() };
        // In all of its partitions: letters may be filed by their keys.
        let partitions = (0..state.partitions).collect();
        let read = read_through(&self.settings, self.letters.clone(), partitions, reading, Reading::pass);
        Ok(read.await?.offsets)
    }
}

impl Reading {
    fn pass(&mut self, passage: Passage) {
        let Passage::Record(record) = passage else { return };
        let Register { source, group, .. } = &self.register;
        let origin = origin(&record, group);
        let is_ours = |origin: &Origin| origin.topic == *source && origin.partition == self.partition;
        self.offsets.extend(origin.filter(is_ours).map(|origin| origin.offset));
    }
}

/// Where the record of a letter of this group was consumed.
fn origin(letter: &Record, group: &str) -> Option<Origin> {
    let text = |name: Name| letter.headers.text(name.as_str());
    if text(Name::Group) != Some(group) {
        return None;
    }
    text(Name::Origin)?.parse().ok()
}

impl Engine {
    /// Where letters are looked for, if that is wanted.
    pub(super) fn register(&self) -> Option<Register> {
        let settled = &self.spec.settled.settled;
        settled.skip_damaged.then(|| Register {
            settings: self.kafka.clone(),
            letters: settled.letters.clone(),
            source: settled.topic.clone(),
            group: settled.group.clone(),
        })
    }

    /// These are damaged.
    pub(super) fn are_damaged(&mut self, partition: i32, offsets: HashSet<i64>) {
        if !offsets.is_empty() {
            info!(partition, offsets = offsets.len(), "records that are letters already are skipped");
        }
        self.damaged.0.insert(partition, offsets);
    }

    /// A record was read: it goes its way, or is passed over.
    pub(super) fn arrive(&mut self, record: Record) {
        let Origin { partition, offset, .. } = record.at;
        let is_damaged = self.damaged.0.get(&partition).is_some_and(|damaged| damaged.contains(&offset));
        if !is_damaged {
            return self.flow.arrive(record);
        }
        if self.flow.skip(partition, offset) {
            self.tally.skipped += 1;
            debug!(origin = %record.at, "skipped: it is a letter already");
        }
    }
}
