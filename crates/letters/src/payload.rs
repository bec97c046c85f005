//! A whole letter, read back from Kafka by its id; its payload from where it is, byte for byte.

use bytes::Bytes;
use redrive_core::{Origin, Record};
use redrive_kafka::{Picker, Settings, Walk};

use crate::error::Error;
use crate::letter::Letter;

/// A letter with everything that it carries.
#[derive(Debug, Clone)]
pub struct Whole {
    /// What is known of it.
    pub letter: Letter,
    /// Its record, as it lies there.
    pub record: Record,
}

/// Reads a letter.
pub async fn read(settings: &Settings, at: &Origin) -> Result<Whole, Error> {
    let picked = Picker::new(settings)?.pick(at.clone(), at.offset).await?;
    let record = picked.into_iter().find(|record| record.at == *at);
    let record = record.ok_or_else(|| Error::NoLetter(at.clone()))?;
    Ok(Whole { letter: Letter::read(&record), record })
}

/// The bytes of letters that are read at once.
const BUDGET: usize = 8 << 20;
/// The letters that are read at once.
const RUN: usize = 1_000;

/// Reads many letters: what lies in one partition in one go.
pub struct Runs {
    walk: Walk,
}

impl Runs {
    /// Nothing is read yet.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        Ok(Self { walk: Walk::new(settings)? })
    }

    /// The first of these letters that follow each other in one partition, and how many were looked for; those
    /// that are gone are not in the answer.
    pub async fn next(&self, letters: &[Origin]) -> Result<(Vec<Whole>, usize), Error> {
        let Some(first) = letters.first() else { return Ok((Vec::new(), 0)) };
        let follows = |pair: &&[Origin]| {
            let [one, other] = pair else { return false };
            (&one.topic, one.partition) == (&other.topic, other.partition) && one.offset < other.offset
        };
        let run = 1 + letters.windows(2).take(RUN - 1).take_while(follows).count();
        let offsets: Vec<i64> = letters.iter().take(run).map(|letter| letter.offset).collect();
        let walked = self.walk.bring(first.clone(), offsets, BUDGET).await?;
        let whole = |record: Record| Whole { letter: Letter::read(&record), record };
        Ok((walked.records.into_iter().map(whole).collect(), walked.asked.max(1)))
    }
}

impl Whole {
    /// The payload, from the letter or from where it points to; none if the record has none.
    pub async fn payload(&self, settings: &Settings) -> Result<Option<Bytes>, Error> {
        let Some(pointer) = self.letter.pointer.as_ref().filter(|_| self.record.value.is_none()) else {
            return Ok(self.record.value.clone());
        };
        // It was consumed, so it is read as it was consumed: whether its transaction ended or not.
        let picked = Picker::of_consumed(settings)?.pick(pointer.clone(), pointer.offset).await?;
        match picked.into_iter().find(|record| record.at == *pointer) {
            Some(original) => Ok(original.value),
            None => Err(Error::NoPayload { letter: self.letter.at.clone(), pointer: pointer.clone() }),
        }
    }
}
