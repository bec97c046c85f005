//! What a partition remembers of its idempotent producers: the epoch and the last five batches of
//! each. A batch header comes in; the answer is to append it, to name the batch it repeats, or an error.

use std::collections::{HashMap, VecDeque};

use kafka_protocol::ResponseError;
use serde::{Deserialize, Serialize};

use super::batch::BatchHeader;

/// As many batches as a client may have in flight.
const REMEMBERED: usize = 5;

/// What to do with a batch that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Append,
    /// It is here already, from this offset on, appended at this time.
    Repeats {
        base_offset: i64,
        timestamp: i64,
    },
}

/// The producers of a partition by their id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Producers(HashMap<i64, Producer>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Producer {
    pub(crate) epoch: i16,
    pub(crate) last_timestamp: i64,
    batches: VecDeque<Remembered>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    first: i32,
    last: i32,
    base_offset: i64,
    timestamp: i64,
}

impl Producer {
    /// The last sequence number, or minus one if it is not known.
    pub(crate) fn last_sequence(&self) -> i32 {
        self.batches.back().map_or(-1, |batch| batch.last)
    }
}

impl Producers {
    /// Decides on a batch from a client. Nothing changes.
    pub(crate) fn check(&self, header: &BatchHeader) -> Result<Verdict, ResponseError> {
        let Some(producer) = self.0.get(&header.producer_id) else {
            return Ok(Verdict::Append);
        };
        if header.producer_epoch < producer.epoch {
            return Err(ResponseError::InvalidProducerEpoch);
        }
        if header.producer_epoch > producer.epoch {
            return match header.base_sequence {
                0 => Ok(Verdict::Append),
                _ => Err(ResponseError::OutOfOrderSequenceNumber),
            };
        }
        let (first, last) = (header.base_sequence, header.last_sequence());
        if let Some(same) = producer
            .batches
            .iter()
            .find(|b| (b.first, b.last) == (first, last))
        {
            return Ok(Verdict::Repeats {
                base_offset: same.base_offset,
                timestamp: same.timestamp,
            });
        }
        match producer.batches.back() {
            // Known by a marker alone: its numbers start again.
            None if first == 0 => Ok(Verdict::Append),
            Some(before) if follows(before.last, first) => Ok(Verdict::Append),
            None | Some(_) => Err(ResponseError::OutOfOrderSequenceNumber),
        }
    }

    /// Whether a marker with this epoch may be written.
    pub(crate) fn check_marker(&self, producer_id: i64, epoch: i16) -> Result<(), ResponseError> {
        match self.0.get(&producer_id) {
            Some(producer) if epoch < producer.epoch => Err(ResponseError::InvalidProducerEpoch),
            _ => Ok(()),
        }
    }

    /// Takes note of a batch that is in the log, with its offsets.
    pub(crate) fn appended(&mut self, header: &BatchHeader) {
        if header.producer_id < 0 {
            return;
        }
        let fresh = || Producer {
            epoch: header.producer_epoch,
            last_timestamp: -1,
            batches: VecDeque::new(),
        };
        let producer = self.0.entry(header.producer_id).or_insert_with(fresh);
        if producer.epoch != header.producer_epoch {
            producer.epoch = header.producer_epoch;
            producer.batches.clear();
        }
        producer.last_timestamp = header.max_timestamp;
        if header.is_control() {
            return;
        }
        if producer.batches.len() == REMEMBERED {
            producer.batches.pop_front();
        }
        producer.batches.push_back(Remembered {
            first: header.base_sequence,
            last: header.last_sequence(),
            base_offset: header.base_offset,
            timestamp: if header.is_log_append_time() {
                header.max_timestamp
            } else {
                -1
            },
        });
    }

    /// Forgets who has not written since `before`, save those that `keep` names.
    pub(crate) fn expire(&mut self, before: i64, keep: impl Fn(i64) -> bool) {
        self.0
            .retain(|id, producer| producer.last_timestamp >= before || keep(*id));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &Producer)> {
        self.0.iter().map(|(id, producer)| (*id, producer))
    }
}

fn follows(last: i32, first: i32) -> bool {
    last.checked_add(1).unwrap_or(0) == first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{batch, testing};

    fn header(epoch: i16, sequence: i32, offset: i64) -> BatchHeader {
        let mut header = batch::check(&testing::batch(2).sequence(7, epoch, sequence).build()).unwrap();
        header.base_offset = offset;
        header
    }

    fn after(batches: &[(i16, i32, i64)]) -> Producers {
        let mut producers = Producers::default();
        for (epoch, sequence, offset) in batches {
            producers.appended(&header(*epoch, *sequence, *offset));
        }
        producers
    }

    #[test]
    fn the_next_batch_is_appended_and_a_gap_is_refused() {
        let producers = after(&[(0, 0, 10)]);
        assert_eq!(producers.check(&header(0, 2, 0)), Ok(Verdict::Append));
        assert_eq!(
            producers.check(&header(0, 3, 0)),
            Err(ResponseError::OutOfOrderSequenceNumber)
        );
    }

    #[test]
    fn a_repeated_batch_is_answered_with_its_first_offset() {
        let producers = after(&[(0, 0, 10), (0, 2, 12), (0, 4, 14)]);
        assert_eq!(
            producers.check(&header(0, 2, 0)),
            Ok(Verdict::Repeats {
                base_offset: 12,
                timestamp: -1
            })
        );
    }

    #[test]
    fn only_the_last_five_batches_are_remembered() {
        let producers = after(&[(0, 0, 0), (0, 2, 2), (0, 4, 4), (0, 6, 6), (0, 8, 8), (0, 10, 10)]);
        assert_eq!(
            producers.check(&header(0, 0, 0)),
            Err(ResponseError::OutOfOrderSequenceNumber)
        );
        assert!(matches!(
            producers.check(&header(0, 2, 0)),
            Ok(Verdict::Repeats { .. })
        ));
    }

    #[test]
    fn an_older_epoch_is_fenced_and_a_newer_one_starts_at_zero() {
        let producers = after(&[(3, 0, 0)]);
        assert_eq!(
            producers.check(&header(2, 2, 0)),
            Err(ResponseError::InvalidProducerEpoch)
        );
        assert_eq!(
            producers.check(&header(4, 2, 0)),
            Err(ResponseError::OutOfOrderSequenceNumber)
        );
        assert_eq!(producers.check(&header(4, 0, 0)), Ok(Verdict::Append));
    }

    #[test]
    fn sequence_numbers_start_again_after_the_largest() {
        assert!(follows(i32::MAX, 0));
        assert!(!follows(i32::MAX, 1));
    }

    #[test]
    fn an_unknown_producer_may_begin_anywhere() {
        assert_eq!(
            Producers::default().check(&header(0, 500, 0)),
            Ok(Verdict::Append)
        );
    }
}
