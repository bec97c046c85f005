//! Dead letters on their way: written, made smaller, or tried again while their partition waits.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use redrive_core::Origin;
use redrive_core::flow::{Id, Now};
use redrive_core::letter::{Letter, Size};
use redrive_core::route::Reason;
use redrive_core::settings::LetterPartition;
use redrive_kafka::{Error as KafkaError, Outgoing, Publisher, Refusal};
use tracing::{info, warn};

use super::engine::{Engine, chain};
use super::troubles::About;
use super::{News, back_off};
use crate::listener::Event as Heard;

/// The letters on their way.
#[derive(Default)]
pub(crate) struct Burials {
    letters: HashMap<Id, OnItsWay>,
    /// What was refused, by when it is tried again.
    again: BTreeSet<(Duration, Id)>,
    errors: u64,
}

struct OnItsWay {
    letter: Letter,
    size: Size,
    /// How often it was refused.
    tries: u32,
}

impl Burials {
    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.again.first().map(|(at, _)| *at)
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors
    }

    pub(super) fn forget(&mut self, is_gone: impl Fn(Id) -> bool) {
        self.letters.retain(|id, _| !is_gone(*id));
        self.again.retain(|(_, id)| !is_gone(*id));
    }

    fn holds(&self, partition: i32) -> bool {
        self.letters.values().any(|way| way.letter.origin.partition == partition && way.tries > 0)
    }
}

impl Engine {
    /// Writes the letter of a record.
    pub(super) fn bury(&mut self, id: Id, now: Now) {
        let Some(ticket) = self.flow.ticket(id) else { return };
        let reason = ticket.burial.map_or(Reason::Permanent, |burial| burial.reason);
        let letter = self.spec.writer.letter(ticket, now.wall);
        self.hear(id, |told| Heard::BeforeLetter { told, reason });
        if self.saving.is_transactional() {
            let at = (letter.origin.partition, letter.origin.offset);
            let outgoing = self.outgoing(&letter);
            self.tell_buried(id, &letter);
            self.saving.add_letter(at, outgoing, letter);
            self.flow.buried(id, now);
            return;
        }
        self.burials.letters.insert(id, OnItsWay { letter, size: Size::Whole, tries: 0 });
        self.send_letter(id);
    }

    fn send_letter(&mut self, id: Id) {
        let Some(way) = self.burials.letters.get(&id) else { return };
        let letter = way.letter.clone().shrunk(way.size, None);
        let published = self.publisher.publish(self.outgoing(&letter));
        let news = self.news.clone();
        tokio::spawn(async move {
            let result = published.await;
            let _ = news.send(News::Buried { id, result });
        });
    }

    pub(super) fn outgoing(&self, letter: &Letter) -> Outgoing {
        let settled = &self.spec.settled.settled;
        Outgoing {
            topic: settled.letters.clone(),
            partition: match settled.letter_partition {
                LetterPartition::Same => Some(letter.origin.partition),
                LetterPartition::ByKey => None,
            },
            timestamp: letter.timestamp,
            key: letter.key.clone(),
            value: letter.value.clone(),
            headers: letter.headers.clone(),
        }
    }

    pub(super) fn buried(&mut self, id: Id, result: Result<Origin, KafkaError>, now: Now) {
        let Some(way) = self.burials.letters.get(&id) else { return };
        let partition = way.letter.origin.partition;
        let error = match result {
            Ok(_) => {
                if let Some(way) = self.burials.letters.remove(&id) {
                    self.tell_buried(id, &way.letter);
                }
                self.flow.buried(id, now);
                self.release(partition);
                return;
            }
            Err(error) => error,
        };
        let Some(way) = self.burials.letters.get_mut(&id) else { return };
        let too_large = matches!(error, KafkaError::Publish { kind: Refusal::TooLarge, .. });
        if let Some(smaller) = way.size.smaller().filter(|_| too_large) {
            way.size = smaller;
            self.send_letter(id);
            return;
        }
        way.tries += 1;
        let again = now.steady.saturating_add(back_off(way.tries - 1));
        self.burials.again.insert((again, id));
        self.burials.errors += 1;
        self.renew_publisher(&error);
        self.hold(partition, &error);
        let topic = &self.spec.settled.settled.letters;
        self.hear(id, |told| Heard::LetterRefused { told, topic, error: &error });
    }

    /// An error that is none of the usual may be one that a producer does not recover from.
    fn renew_publisher(&mut self, error: &KafkaError) {
        if !matches!(error, KafkaError::Publish { kind: Refusal::Other, .. }) {
            return;
        }
        match Publisher::new(&self.kafka, &self.publishing) {
            Ok(publisher) => self.publisher = publisher,
            Err(error) => warn!(error = chain(&error), "the publisher cannot be made anew"),
        }
    }

    fn tell_buried(&self, id: Id, letter: &Letter) {
        let Some(ticket) = self.flow.ticket(id) else { return };
        let reason = ticket.burial.map_or(Reason::Permanent, |burial| burial.reason);
        let topic = &self.spec.settled.settled.letters;
        info!(origin = %ticket.record.at, %reason, %topic, attempts = ticket.attempts(), "buried");
        self.hear(id, |told| Heard::AfterLetter { told, reason, topic, headers: &letter.headers });
    }

    /// A letter of this partition cannot be written: the partition waits, the others go on.
    pub(super) fn hold(&mut self, partition: i32, error: &KafkaError) {
        let letters = &self.spec.settled.settled.letters;
        let kind = match error {
            KafkaError::Publish { kind, .. } => *kind,
            _ => Refusal::Other,
        };
        let remedy = match kind {
            Refusal::MissingTopic => format!("make the topic {letters}: redrive topics apply"),
            Refusal::MissingPartition => {
                format!("give {letters} as many partitions as the source has: redrive topics apply")
            }
            Refusal::TooLarge => format!("raise max.message.bytes of {letters}: redrive topics apply"),
            Refusal::NotAllowed => format!("allow this user to write to {letters}: redrive acls"),
            Refusal::Timeout => {
                "check that the brokers can be reached and enough replicas are in sync".to_owned()
            }
            _ => "see the broker's reason".to_owned(),
        };
        let what =
            format!("partition {partition} is held: its dead letter cannot be written: {}", chain(error));
        self.troubles.raise(About::Held(partition), what, &remedy);
        self.flow.hold(partition, true);
    }

    /// The partition goes on, unless another letter of it is refused.
    pub(super) fn release(&mut self, partition: i32) {
        if !self.burials.holds(partition) {
            self.troubles.clear(About::Held(partition));
            self.flow.hold(partition, false);
        }
    }

    /// Tries again what was refused, when its time has come.
    pub(super) fn retry_burials(&mut self, now: Now) {
        while let Some((at, id)) = self.burials.again.first().copied().filter(|(at, _)| *at <= now.steady) {
            self.burials.again.remove(&(at, id));
            self.send_letter(id);
        }
    }
}
