//! The letters of a job, packed: a byte or two for each, in the order in which they are dealt with. The number of
//! a letter is its place in that order.
//!
//! A chunk begins with its version. Then come runs: the length of the topic's name and the name (no length: the
//! same topic as before), the partition, how many letters, and for each how far its offset is from the one before
//! of that partition in the chunk.

use std::collections::HashMap;

use bytes::Bytes;
use redrive_core::offsets::leb128;
use redrive_core::{Origin, Topic};

/// The form of a chunk.
const VERSION: u8 = 1;

/// A chunk is written before it is larger than this.
const CHUNK: usize = 200_000;

/// The letters of a job in the order in which they are dealt with, by where they lie.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    chunks: Vec<Bytes>,
    letters: u64,
}

/// Bytes that are no part of a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSelection {
    /// A form that this version does not know.
    #[error("the selection has the form {0}, which a later version wrote")]
    Version(u8),
    /// It ends too early, or says what cannot be.
    #[error("the selection is damaged")]
    Damaged,
}

impl Selection {
    /// Packs letters.
    pub fn of<'a>(letters: impl IntoIterator<Item = &'a Origin>) -> Self {
        let mut packing = Packing::default();
        letters.into_iter().for_each(|letter| packing.push(letter));
        packing.end()
    }

    /// Chunks as they were read, in order.
    pub fn read(chunks: Vec<Bytes>) -> Result<Self, BadSelection> {
        let mut letters = 0;
        for chunk in &chunks {
            let mut unpacking = Unpacking::of(chunk)?;
            while unpacking.next()?.is_some() {
                letters += 1;
            }
        }
        Ok(Self { chunks, letters })
    }

    /// As they are written, in order.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// How many letters.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.letters
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.letters == 0
    }

    /// All letters in order; their places are their numbers.
    pub fn iter(&self) -> impl Iterator<Item = Origin> + '_ {
        // Damaged ones are not made.
        let unpackings = self.chunks.iter().filter_map(|chunk| Unpacking::of(chunk).ok());
        unpackings.flat_map(|mut unpacking| std::iter::from_fn(move || unpacking.next().ok().flatten()))
    }
}

#[derive(Default)]
struct Packing {
    chunks: Vec<Bytes>,
    letters: u64,
    chunk: Vec<u8>,
    topic: Option<Topic>,
    last: HashMap<(Topic, i32), i64>,
    run: Option<Run>,
}

/// Letters of one partition, one after the other.
struct Run {
    topic: Topic,
    partition: i32,
    letters: u64,
    deltas: Vec<u8>,
}

impl Packing {
    fn push(&mut self, letter: &Origin) {
        let is_of = |run: &Run| run.partition == letter.partition && run.topic == letter.topic;
        if !self.run.as_ref().is_some_and(is_of) {
            self.end_run();
            self.run = Some(Run {
                topic: letter.topic.clone(),
                partition: letter.partition,
                letters: 0,
                deltas: Vec::new(),
            });
        }
        let last = self.last.entry((letter.topic.clone(), letter.partition)).or_default();
        let delta = letter.offset.wrapping_sub(std::mem::replace(last, letter.offset));
        self.letters += 1;
        let Some(run) = &mut self.run else { return };
        leb128::put(&mut run.deltas, leb128::zigzag(delta));
        run.letters += 1;
        let size = run.deltas.len();
        if self.chunk.len() + size >= CHUNK {
            self.end_chunk();
        }
    }

    fn end_run(&mut self) {
        let Some(run) = self.run.take() else { return };
        if self.chunk.is_empty() {
            self.chunk.push(VERSION);
        }
        if self.topic.as_ref() == Some(&run.topic) {
            leb128::put(&mut self.chunk, 0);
        } else {
            leb128::put(&mut self.chunk, run.topic.as_str().len() as u64);
            self.chunk.extend_from_slice(run.topic.as_str().as_bytes());
            self.topic = Some(run.topic);
        }
        leb128::put(&mut self.chunk, u64::from(run.partition.cast_unsigned()));
        leb128::put(&mut self.chunk, run.letters);
        self.chunk.extend_from_slice(&run.deltas);
    }

    fn end_chunk(&mut self) {
        self.end_run();
        if !self.chunk.is_empty() {
            self.chunks.push(Bytes::from(std::mem::take(&mut self.chunk)));
        }
        self.topic = None;
        self.last.clear();
    }

    fn end(mut self) -> Selection {
        self.end_chunk();
        Selection { chunks: self.chunks, letters: self.letters }
    }
}

struct Unpacking<'a> {
    bytes: &'a [u8],
    at: usize,
    topic: Option<Topic>,
    partition: i32,
    left: u64,
    last: HashMap<(Topic, i32), i64>,
}

impl<'a> Unpacking<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, BadSelection> {
        match bytes.first() {
            Some(&VERSION) => {
                Ok(Self { bytes, at: 1, topic: None, partition: 0, left: 0, last: HashMap::new() })
            }
            Some(&other) => Err(BadSelection::Version(other)),
            None => Err(BadSelection::Damaged),
        }
    }

    fn next(&mut self) -> Result<Option<Origin>, BadSelection> {
        if self.left == 0 {
            if self.at == self.bytes.len() {
                return Ok(None);
            }
            self.begin_run()?;
        }
        let topic = self.topic.clone().ok_or(BadSelection::Damaged)?;
        let delta = leb128::unzigzag(self.number()?);
        let last = self.last.entry((topic.clone(), self.partition)).or_default();
        *last = last.wrapping_add(delta);
        self.left -= 1;
        Ok(Some(Origin { topic, partition: self.partition, offset: *last }))
    }

    fn begin_run(&mut self) -> Result<(), BadSelection> {
        let length = usize::try_from(self.number()?).map_err(|_| BadSelection::Damaged)?;
        if length > 0 {
            let end = self.at.checked_add(length).ok_or(BadSelection::Damaged)?;
            let name = self.bytes.get(self.at..end).ok_or(BadSelection::Damaged)?;
            let name = std::str::from_utf8(name).map_err(|_| BadSelection::Damaged)?;
            self.topic = Some(name.parse().map_err(|_| BadSelection::Damaged)?);
            self.at = end;
        }
        self.partition = i32::try_from(self.number()?).map_err(|_| BadSelection::Damaged)?;
        self.left = self.number()?;
        if self.left == 0 { Err(BadSelection::Damaged) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<u64, BadSelection> {
        leb128::take(self.bytes, &mut self.at).ok_or(BadSelection::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn letters() -> impl Strategy<Value = Vec<Origin>> {
        let letter = ("[ab]{1,2}", 0..3_i32, 0..i64::MAX).prop_map(|(topic, partition, offset)| Origin {
            topic: topic.parse().unwrap(),
            partition,
            offset,
        });
        prop::collection::vec(letter, 0..200)
    }

    proptest! {
        #[test]
        fn letters_come_back_in_their_order(letters in letters()) {
            let selection = Selection::of(&letters);
            let again = Selection::read(selection.chunks().to_vec());
            prop_assert_eq!(again.as_ref(), Ok(&selection));
            prop_assert_eq!(selection.len(), letters.len() as u64);
            prop_assert_eq!(selection.iter().collect::<Vec<_>>(), letters);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first %= 3;
            }
            if let Ok(selection) = Selection::read(vec![Bytes::from(bytes)]) {
                prop_assert_eq!(selection.iter().count() as u64, selection.len());
            }
        }
    }

    #[test]
    fn half_a_million_letters_are_a_few_chunks_that_a_record_holds() {
        let topic: Topic = "orders.billing.dlq".parse().unwrap();
        let letters: Vec<Origin> = (0..500_000)
            .map(|n| Origin {
                topic: topic.clone(),
                partition: n / 100_000,
                offset: i64::from(n % 100_000) * 2,
            })
            .collect();
        let selection = Selection::of(&letters);
        assert!(selection.chunks().iter().all(|chunk| chunk.len() <= CHUNK + 300));
        assert!(selection.chunks().len() <= 4, "{}", selection.chunks().len());
        assert!(selection.iter().eq(letters));
    }

    #[test]
    fn a_form_of_a_later_version_is_named() {
        assert_eq!(Selection::read(vec![Bytes::from_static(&[9, 1])]), Err(BadSelection::Version(9)));
        assert_eq!(Selection::read(vec![Bytes::new()]), Err(BadSelection::Damaged));
    }
}
