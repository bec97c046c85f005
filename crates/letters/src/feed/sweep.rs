//! What is gone from Kafka leaves the index: below the beginning of a partition, and in gaps that compaction made.

use redrive_core::Origin;
use redrive_kafka::Picker;
use tokio::runtime::Handle;

use super::Work;
use super::reading::Place;
use crate::error::Error;
use crate::index::{Index, TopicRow};

/// How many letters that Kafka may have dropped are looked for at a time.
const MOST: usize = 20_000;

impl Work {
    /// Takes out what is below the beginnings of partitions. How many letters that were, and the partitions that have
    /// something to read.
    pub(super) fn sweep(&self, index: &mut Index, topics: &[TopicRow]) -> Result<(u64, Vec<Place>), Error> {
        let partitions: Vec<_> = topics
            .iter()
            .flat_map(|row| {
                let count = self.found.read.get(&row.name).map_or(0, |state| state.partitions);
                (0..count).map(|partition| (row.name.clone(), partition))
            })
            .collect();
        let (begins, ends) = (self.scan.begins(&partitions)?, self.scan.ends(&partitions)?);
        let (mut left, mut places) = (0, Vec::new());
        for (topic, partition) in partitions {
            let Some(row) = topics.iter().find(|row| row.name == topic) else { continue };
            let key = (topic.clone(), partition);
            let (Some(begin), Some(end)) = (begins.get(&key).copied(), ends.get(&key).copied()) else {
                continue;
            };
            let mut position = index.place(row.id, partition, begin)?;
            if position.next > end {
                // It was cut off at its end, or is another topic of that name.
                index.empty_place(position.place, begin)?;
                (position.first, position.next) = (begin, begin);
            }
            if position.first < begin {
                left += index.sweep(position.place, begin)?;
                position.next = position.next.max(begin);
            }
            if position.next < end {
                let from = Origin { topic, partition, offset: position.next };
                places.push(Place {
                    from,
                    end,
                    place: position.place,
                    topic: row.id,
                    is_compacted: row.is_compacted,
                });
            }
        }
        Ok((left, places))
    }

    /// Looks for letters that compaction may have dropped; how many it has.
    pub(super) fn compacted(&self, index: &mut Index, topics: &[TopicRow]) -> Result<u64, Error> {
        if !topics.iter().any(|row| row.is_compacted) {
            return Ok(0);
        }
        let superseded = index.superseded()?;
        if superseded.is_empty() {
            return Ok(0);
        }
        let (picker, runtime) = (Picker::new(&self.settings)?, Handle::current());
        let mut gone = Vec::new();
        // Below this, of this place, it is known what is there.
        let mut known = (0, 0, Vec::new());
        for (place, offset) in superseded.into_iter().take(MOST) {
            let number = crate::index::place::id(place, offset);
            if known.0 != place || offset >= known.1 {
                let Some(at) = index.located(number)? else { continue };
                let picked = runtime.block_on(picker.pick_or_miss(at, i64::MAX))?;
                let there = picked.records.iter().map(|record| record.at.offset).collect::<Vec<_>>();
                known = (place, picked.known_to.max(offset + 1), there);
            }
            if known.2.binary_search(&offset).is_err() {
                gone.push(number);
            }
        }
        index.take_out(&gone)
    }
}
