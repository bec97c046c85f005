//! Writes deeds to the journal: one process of a writer at a time, and each deed once.
//!
//! Whoever comes takes the turn from the process that has it, so that one that was killed holds up nobody. Who lost
//! it lets the others finish before it asks again: otherwise, where a turn takes long, they would take it from each
//! other for ever.

use std::time::Duration;

use redrive::Clock;
use redrive_kafka::{Error as KafkaError, Outgoing, Settings, Transacting, TransactionFailed, Transactions};
use uuid::Uuid;

use super::store::{Error, prepare, topic};
use super::{Deed, Entry, Journal};
use crate::jobs::{Followed, Head, Key, State, Turn, outgoing, take_turn};

/// How long it is tried when other processes of the same writer come between.
const TRIED: Duration = Duration::from_secs(120);

/// How long another process may have its turn before it counts as gone.
const GONE: Duration = Duration::from_secs(5);

/// The pauses between two tries: at first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Writes a deed down. It is in the journal when this returns.
pub async fn append(settings: &Settings, deed: Deed) -> Result<Entry, Error> {
    prepare(settings).await?;
    let clock = Clock::system();
    let deadline = clock.now().steady.saturating_add(TRIED);
    let mut writing = Writing { settings, clock: &clock, deadline, deed, turn: None, tried: Vec::new() };
    let (mut longest, cap) = PAUSES;
    loop {
        match writing.once().await {
            Err(Error::Write(error)) if may_pass(&error) && clock.now().steady < deadline => {
                let was_taken = matches!(error, TransactionFailed::Fenced(_));
                writing.let_others_finish(was_taken, part_of(longest)).await?;
                longest = (longest * 2).min(cap);
            }
            result => return result,
        }
    }
}

/// Whether it can go well another time: somebody came between, or this producer is of no use any more.
fn may_pass(error: &TransactionFailed) -> bool {
    matches!(
        error,
        TransactionFailed::Fenced(_) | TransactionFailed::Aborted(_) | TransactionFailed::Broken(_)
    )
}

/// A random part of a pause: processes that came between each other do not do so again in step.
fn part_of(pause: Duration) -> Duration {
    let (_, random) = Uuid::new_v4().as_u64_pair();
    pause.mul_f64((random % 1000) as f64 / 1000.0)
}

/// A deed that is being written.
struct Writing<'a> {
    settings: &'a Settings,
    clock: &'a Clock,
    deadline: Duration,
    deed: Deed,
    /// The last turn that this process asked for.
    turn: Option<Turn>,
    /// What was sent. A commit whose answer is lost may have happened, whatever is said of it afterwards.
    tried: Vec<Entry>,
}

impl Writing<'_> {
    async fn once(&mut self) -> Result<Entry, Error> {
        let who = &self.deed.who;
        let id = format!("redrive-journal-{who}");
        let transactions = Transactions::new(self.settings, &id, &Transacting::default()).await?;
        let turn = Turn { turn: Uuid::new_v4().to_string(), unattended: false };
        self.turn = Some(turn.clone());
        let record = outgoing(&Key::JournalTurn(who.clone()), &turn);
        let is_ours = |state: &State| state.turn(who) == Some(&turn);
        let taken = take_turn(self.settings, self.clock, &transactions, record, Vec::new(), is_ours);
        let followed = taken.await?;
        let head = followed.state.heads().get(who);
        if let Some(entry) = self.written(head).await? {
            return Ok(entry);
        }
        let entry = Entry {
            number: head.map_or(0, |head| head.number + 1),
            before: head.map(|head| head.hash.clone()),
            deed: self.deed.clone(),
        };
        let (bytes, hash) = entry.write();
        let head = Head { number: entry.number, hash };
        let record = Outgoing::to(topic()).partition(0).key(who.clone()).value(bytes);
        let head = outgoing(&Key::JournalHead(who.clone()), &head);
        self.tried.push(entry.clone());
        transactions.publish(vec![record, head]).await?;
        Ok(entry)
    }

    /// What was sent and is in the journal after all. `head` is the last entry there: whoever was to end the
    /// transactions of before has ended them when a turn is taken.
    async fn written(&self, head: Option<&Head>) -> Result<Option<Entry>, KafkaError> {
        let may_be = |head: &Head| self.tried.iter().any(|entry| entry.number <= head.number);
        if !head.is_some_and(may_be) {
            return Ok(None);
        }
        let journal = Journal::read(self.settings).await?;
        let mut entries = journal.entries.into_iter().map(|(_, entry)| entry);
        Ok(entries.find(|entry| self.tried.contains(entry)))
    }

    /// Waits until no other process of this writer has its turn, and a pause long none has taken it; or until the
    /// one that has it must be gone. `was_taken` says that there is one, even if its turn cannot be read yet.
    async fn let_others_finish(&self, was_taken: bool, pause: Duration) -> Result<(), KafkaError> {
        let who = self.deed.who.as_str();
        let is_taken =
            |state: &State| state.has_turn_left(who) && (was_taken || state.turn(who) != self.turn.as_ref());
        let mut followed = Followed::read(self.settings).await?;
        while self.clock.now().steady < self.deadline {
            let turn = followed.state.turn(who).cloned();
            let goes_on = |state: &State| !is_taken(state) || state.turn(who) != turn.as_ref();
            if !followed.until(self.clock, GONE, goes_on).await?
                || !followed.until(self.clock, pause, is_taken).await?
            {
                break;
            }
        }
        Ok(())
    }
}
