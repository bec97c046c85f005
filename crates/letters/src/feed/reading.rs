//! Reads partitions to the ends they have now, and writes what it reads: one thread reads and understands, another
//! writes.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use hashbrown::HashSet;
use redrive::Clock;
use redrive_core::{Origin, Record, Topic};
use redrive_kafka::{Scan, Scanned};

use super::{Progress, Work};
use crate::error::Error;
use crate::index::Index;
use crate::index::entry::Entry;
use crate::index::write::Run;

/// How many letters one transaction holds, if so many wait: each writes the pages that it touched, and keys are
/// scattered over all of them.
const BATCH: usize = 50_000;
/// How many handfuls may wait to be written: about as many letters as a transaction holds, so that the next
/// ones are read and understood while those are written.
const HANDFULS: usize = 100;
/// How long nothing may come while there must be something.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a transaction waits for more letters.
const MOMENT: Duration = Duration::from_millis(20);
const WAIT: Duration = Duration::from_millis(100);

/// A partition that has something to read.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) from: Origin,
    pub(super) end: i64,
    pub(super) place: i64,
    pub(super) topic: i64,
    pub(super) is_compacted: bool,
}

impl Work {
    /// Reads these partitions to their ends; how many letters came.
    pub(super) fn read(
        &mut self,
        index: &mut Index,
        places: Vec<Place>,
        clock: &Clock,
        tell: &mut impl FnMut(Progress),
    ) -> Result<u64, Error> {
        if places.is_empty() {
            return Ok(0);
        }
        let (runs, written) = sync_channel(HANDFULS);
        let reading = Reading::of(places);
        thread::scope(|scope| {
            let writer = thread::Builder::new().name("index letters".to_owned());
            let writer = writer.spawn_scoped(scope, move || write(index, &written)).map_err(Error::Thread)?;
            let read = reading.through(&mut self.scan, &runs, clock, tell);
            drop(runs);
            let written = writer.join().unwrap_or(Ok(0));
            // Where writing failed reading found nobody to give to: the writer knows why.
            let written = written?;
            read.map(|()| written)
        })
    }
}

fn write(index: &mut Index, runs: &Receiver<Run>) -> Result<u64, Error> {
    let mut added = 0;
    while let Ok(first) = runs.recv() {
        let mut batch = vec![first];
        let mut letters: usize = batch[0].entries.len();
        while letters < BATCH {
            // What is fetched already comes within moments.
            let Ok(more) = runs.recv_timeout(MOMENT) else { break };
            letters += more.entries.len();
            batch.push(more);
        }
        added += index.add(batch)?;
    }
    Ok(added)
}

struct Reading {
    places: HashMap<(Topic, i32), Place>,
    /// What comes next of those that are not through.
    open: HashMap<(Topic, i32), i64>,
    known: HashSet<u64>,
    of: u64,
}

impl Reading {
    fn of(places: Vec<Place>) -> Self {
        let key = |place: &Place| (place.from.topic.clone(), place.from.partition);
        let open = places.iter().map(|place| (key(place), place.from.offset)).collect();
        let of = places.iter().map(|place| u64::try_from(place.end - place.from.offset).unwrap_or(0)).sum();
        let places = places.into_iter().map(|place| (key(&place), place)).collect();
        Self { places, open, known: HashSet::new(), of }
    }

    fn through(
        mut self,
        scan: &mut Scan,
        runs: &SyncSender<Run>,
        clock: &Clock,
        tell: &mut impl FnMut(Progress),
    ) -> Result<(), Error> {
        for place in self.places.values() {
            scan.add(&place.from)?;
        }
        let read = self.pass(scan, runs, clock, tell);
        for (topic, partition) in self.places.keys() {
            scan.remove(topic, *partition);
        }
        read
    }

    fn pass(
        &mut self,
        scan: &mut Scan,
        runs: &SyncSender<Run>,
        clock: &Clock,
        tell: &mut impl FnMut(Progress),
    ) -> Result<(), Error> {
        let mut heard = clock.now().steady;
        let mut trouble = None;
        while !self.open.is_empty() {
            let came = scan.next(WAIT);
            if came.is_empty() {
                if clock.now().steady.saturating_sub(heard) > PATIENCE {
                    let at = self.open.iter().next().map(|((topic, partition), offset)| Origin {
                        topic: topic.clone(),
                        partition: *partition,
                        offset: *offset,
                    });
                    return Err(trouble.unwrap_or(Error::Silent { at, patience: PATIENCE }));
                }
                continue;
            }
            heard = clock.now().steady;
            for scanned in came {
                match scanned {
                    Scanned::Records(records) => {
                        if !self.take(records, runs) {
                            return Ok(());
                        }
                    }
                    Scanned::End(at) => {
                        let key = (at.topic, at.partition);
                        if !self.end(&key, at.offset, runs) {
                            return Ok(());
                        }
                    }
                    // It was cut off at its beginning meanwhile: what is gone need not be read.
                    Scanned::OutOfRange { topic, partition } => {
                        let key = (topic, partition);
                        let begins = scan.begins(std::slice::from_ref(&key))?;
                        let Some(begin) = begins.get(&key).copied() else { continue };
                        let next = self.open.get(&key).copied().unwrap_or(begin).max(begin);
                        scan.add(&Origin { topic: key.0, partition, offset: next })?;
                    }
                    Scanned::Failed(error) => trouble = Some(error.into()),
                }
            }
            tell(self.progress());
        }
        Ok(())
    }

    /// Hands over letters; false if nobody takes them.
    fn take(&mut self, records: Vec<Record>, runs: &SyncSender<Run>) -> bool {
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return true };
        let key = (first.at.topic.clone(), first.at.partition);
        let next = last.at.offset + 1;
        let (Some(place), Some(expected)) = (self.places.get(&key), self.open.get_mut(&key)) else {
            return true;
        };
        let from = *expected;
        *expected = next.max(from);
        let known = &mut self.known;
        let entries = records
            .into_iter()
            .filter(|record| record.at.offset >= from)
            .map(|record| Entry::read(record, |fingerprint| !known.insert(fingerprint.number())));
        let run = Run {
            place: place.place,
            topic: place.topic,
            is_compacted: place.is_compacted,
            entries: entries.collect(),
            next,
        };
        let (is_through, handed) = (next >= place.end, runs.send(run).is_ok());
        if is_through {
            self.open.remove(&key);
        }
        handed
    }

    fn end(&mut self, key: &(Topic, i32), next: i64, runs: &SyncSender<Run>) -> bool {
        let (Some(place), Some(_)) = (self.places.get(key), self.open.remove(key)) else { return true };
        let run = Run {
            place: place.place,
            topic: place.topic,
            is_compacted: place.is_compacted,
            entries: Vec::new(),
            next,
        };
        runs.send(run).is_ok()
    }

    fn progress(&self) -> Progress {
        let left: u64 = self
            .open
            .iter()
            .filter_map(|(key, next)| u64::try_from(self.places.get(key)?.end - next).ok())
            .sum();
        Progress { read: self.of.saturating_sub(left), of: self.of }
    }
}
