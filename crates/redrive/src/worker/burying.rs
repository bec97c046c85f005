//! Dead letters on their way: written, made smaller, or tried again while their partition waits.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use redrive_core::flow::{Id, Now};
use redrive_core::headers::Name;
use redrive_core::letter::{Letter, Size};
use redrive_core::route::Reason;
use redrive_core::settings::LetterPartition;
use redrive_core::{Origin, Topic};
use redrive_kafka::{Error as KafkaError, Outgoing, Publisher, Refusal};
use tracing::{info, warn};

use super::engine::{Engine, chain};
use super::telling::Story;
use super::troubles::About;
use super::{News, back_off};
use crate::listener::Event as Heard;

/// The letters on their way.
#[derive(Default)]
pub(crate) struct Burials {
    letters: HashMap<Id, OnItsWay>,
    /// What was refused, by when it is tried again.
    again: BTreeSet<(Duration, Id)>,
    /// The records whose letter or output is refused or late, with the partitions that they hold.
    stuck: HashMap<Id, i32>,
    errors: u64,
    renewal: Renewal,
}

/// When the publisher may be made anew: many letters are refused at once, and one new publisher is enough
/// for all of them until they are tried again.
#[derive(Default)]
struct Renewal {
    next: Duration,
}

impl Renewal {
    fn is_due(&mut self, now: Duration, pause: Duration) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next = now.saturating_add(pause);
        }
        is_due
    }
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

    pub(super) fn count_error(&mut self) {
        self.errors += 1;
    }

    pub(super) fn forget(&mut self, is_gone: impl Fn(Id) -> bool) {
        self.letters.retain(|id, _| !is_gone(*id));
        self.again.retain(|(_, id)| !is_gone(*id));
        self.stuck.retain(|id, _| !is_gone(*id));
    }

    fn holds(&self, partition: i32) -> bool {
        self.stuck.values().any(|held| *held == partition)
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
            let (outgoing, story) = (self.outgoing(&letter), Story::of(ticket));
            if let Some(output) = self.saving.output() {
                output.add_letter(at, outgoing, letter, story);
            }
            self.throttle(at.0);
            self.flow.buried(id, now);
            return;
        }
        self.burials.letters.insert(id, OnItsWay { letter, size: Size::Whole, tries: 0 });
        self.send_letter(id);
    }

    fn send_letter(&mut self, id: Id) {
        let Some(way) = self.burials.letters.get(&id) else { return };
        let letter = way.letter.clone().shrunk(way.size, None);
        let outgoing = self.outgoing(&letter);
        let topic = outgoing.topic.clone();
        let published = self.telling(id, topic, self.publisher.publish(outgoing));
        let news = self.news.clone();
        tokio::spawn(async move {
            let result = published.await;
            let _ = news.send(News::Buried { id, result });
        });
    }

    /// What is published, told of once if it is late. It is not given up then: nobody would know
    /// whether it is there, and publishing it again might make two of it.
    pub(super) fn telling<T, F: Future<Output = T> + Send>(
        &self,
        id: Id,
        topic: Topic,
        published: F,
    ) -> impl Future<Output = T> + Send + use<T, F> {
        let (clock, news) = (self.clock.clone(), self.news.clone());
        let timeout = self.spec.settled.settled.publish_timeout;
        async move {
            let mut published = std::pin::pin!(published);
            tokio::select! {
                biased;
                result = &mut published => return result,
                () = clock.sleep(timeout) => {}
            }
            let _ = news.send(News::Late { id, error: Publisher::late(topic) });
            published.await
        }
    }

    /// Something that is published for a record is late: its partition waits with it.
    pub(super) fn late(&mut self, id: Id, error: &KafkaError) {
        let Some(ticket) = self.flow.ticket(id) else { return };
        let partition = ticket.record.at.partition;
        self.burials.stuck.insert(id, partition);
        self.burials.errors += 1;
        self.hold(partition, error);
        if self.burials.letters.contains_key(&id) {
            let topic = &self.spec.settled.settled.letters;
            self.hear(id, |told| Heard::LetterRefused { told, topic, error });
        }
    }

    /// It is known what became of it: its partition goes on, unless another record holds it.
    pub(super) fn no_longer_stuck(&mut self, id: Id) {
        if let Some(partition) = self.burials.stuck.remove(&id) {
            self.release(partition);
        }
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
            Ok(at) => {
                let (way, story) = (self.burials.letters.remove(&id), self.flow.ticket(id).map(Story::of));
                if let Some((way, story)) = way.zip(story) {
                    self.tell_buried(&story, &way.letter, Some(at));
                }
                self.flow.buried(id, now);
                self.no_longer_stuck(id);
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
        let tries = way.tries;
        let again = now.steady.saturating_add(back_off(tries - 1));
        self.burials.again.insert((again, id));
        self.burials.stuck.insert(id, partition);
        self.burials.errors += 1;
        self.renew_publisher(&error, now, back_off(tries - 1));
        self.hold(partition, &error);
        let topic = &self.spec.settled.settled.letters;
        self.hear(id, |told| Heard::LetterRefused { told, topic, error: &error });
    }

    /// An error that is none of the usual may be one that a producer does not recover from.
    fn renew_publisher(&mut self, error: &KafkaError, now: Now, pause: Duration) {
        let is_unusual = matches!(error, KafkaError::Publish { kind: Refusal::Other, .. });
        if !is_unusual || !self.burials.renewal.is_due(now.steady, pause) {
            return;
        }
        match Publisher::new(&self.kafka, &self.publishing) {
            Ok(publisher) => self.publisher = publisher,
            Err(error) => warn!(error = chain(&error), "the publisher cannot be made anew"),
        }
    }

    pub(super) fn tell_buried(&mut self, story: &Story, letter: &Letter, at: Option<Origin>) {
        self.tally.buried(story.reason);
        if let Some(replay) = letter.headers.text(Name::Replay.as_str()) {
            self.report_buried(replay, at, why(letter).as_deref());
        }
        let (topic, reason) = (&self.spec.settled.settled.letters, story.reason);
        info!(origin = %letter.origin, %reason, %topic, attempts = story.attempts, "buried");
        self.hear_story(story, |told| Heard::AfterLetter { told, reason, topic, headers: &letter.headers });
    }

    /// A letter of this partition cannot be written: the partition waits, the others go on.
    pub(super) fn hold(&mut self, partition: i32, error: &KafkaError) {
        let (letters, kind) = match error {
            KafkaError::Publish { kind, topic, .. } => (topic, *kind),
            _ => (&self.spec.settled.settled.letters, Refusal::Other),
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
            format!("partition {partition} is held: what it publishes is not written: {}", chain(error));
        self.troubles.raise(About::Held(partition), what, &remedy);
        self.flow.hold(partition, true);
    }

    /// The partition goes on, unless another letter of it is refused.
    pub(super) fn release(&mut self, partition: i32) {
        if !self.burials.holds(partition) && !self.is_shelf_stuck(partition) {
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

/// Of what an error says so much is told with what became of a letter.
const TOLD: usize = 200;

/// Why a record is a letter, in a line.
fn why(letter: &Letter) -> Option<String> {
    let text = |name: Name| letter.headers.text(name.as_str());
    let message = text(Name::ErrorMessage).filter(|message| !message.is_empty());
    let said = match (text(Name::ErrorType), message) {
        (Some(kind), Some(message)) => format!("{kind}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => text(Name::Reason)?.to_owned(),
    };
    let line = said.lines().next().unwrap_or_default();
    Some(line.chars().take(TOLD).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_letters_that_are_refused_at_once_make_one_new_publisher() {
        let (mut renewal, pause) = (Renewal::default(), Duration::from_secs(1));
        let at = Duration::from_millis;
        assert!(renewal.is_due(at(5_000), pause));
        assert!((0..100).all(|_| !renewal.is_due(at(5_001), pause)));
        assert!(!renewal.is_due(at(5_999), pause) && renewal.is_due(at(6_000), pause));
    }
}
