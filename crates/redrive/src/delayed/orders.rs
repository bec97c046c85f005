//! Orders: appended to the shelf, and followed until their answers count.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use redrive_core::shelf::{Deed, Entry, Order, Outcome, Verdict};
use redrive_core::{Origin, Topic};
use redrive_kafka::{Admin, Error as KafkaError, GroupState, Outgoing, Publisher, Publishing, Reader};
use uuid::Uuid;

use super::attendance::{self, Attendance};
use super::view::View;
use super::{Error, Identity};
use crate::Clock;

/// What somebody wants done with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// Which record; to open a lane, which letter.
    pub origin: Origin,
    /// What.
    pub deed: Deed,
}

/// What came of a wish.
#[derive(Debug)]
pub enum Answer {
    /// The owner's word, or what the log says where nothing is left to order.
    Said(Verdict),
    /// The order stands in the log; no worker was seen that could carry it out. The next one will.
    Queued,
    /// The order stands in the log; a worker is there and has not answered in time.
    Unanswered,
    /// The order could not be written.
    NotGiven(KafkaError),
}

impl Answer {
    /// Whether what was wanted is done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match self {
            Self::Said(Verdict::Due { .. } | Verdict::Cancelled | Verdict::Opened) => true,
            Self::Said(Verdict::Replayed | Verdict::Announced { .. }) => true,
            Self::Said(Verdict::TooLate | Verdict::Finished | Verdict::Unknown) => false,
            Self::Said(Verdict::Already | Verdict::StillWaiting | Verdict::Taken { .. }) => false,
            Self::Said(Verdict::TooLarge) => false,
            Self::Queued | Self::Unanswered | Self::NotGiven(_) => false,
        }
    }
}

impl View {
    /// Gives orders and waits for their answers, which come in the order of the wishes. What the log says
    /// meanwhile is in this view afterwards. `by` and `reason` are written down with each.
    pub async fn give(
        &mut self,
        wishes: &[Wish],
        (by, reason): (&str, &str),
        wait: Duration,
        clock: &Clock,
    ) -> Result<Vec<Answer>, Error> {
        let deadline = clock.now().steady.saturating_add(wait);
        for wish in wishes {
            let partition = wish.origin.partition;
            if !self.parts.contains_key(&partition) {
                let (shelf, partitions) = (self.shelf.clone(), self.partitions);
                return Err(Error::NoPartition { shelf, partitions, partition });
            }
        }
        let group = self.group().await;
        let presence = |wish: &Wish| match &group {
            Some(Ok(group)) => attendance::of(group, &wish.origin.topic, wish.origin.partition),
            Some(Err(_)) => Attendance::Unsure,
            // Nobody has ever owned it.
            None => Attendance::Unseen,
        };
        let (mut answers, mut given) = (HashMap::new(), HashMap::new());
        let publisher = Publisher::new(&self.settings, &Publishing::default())?;
        let mut sent = Vec::new();
        for (index, wish) in wishes.iter().enumerate() {
            if let Some(verdict) = self.needless(wish).filter(|_| presence(wish) == Attendance::Absent) {
                answers.insert(index, Answer::Said(verdict));
                continue;
            }
            let order = Order {
                id: Uuid::new_v4().to_string(),
                origin: wish.origin.offset,
                deed: wish.deed,
                by: by.to_owned(),
                reason: reason.to_owned(),
                job: None,
            };
            let outgoing = outgoing(self.shelf(), wish.origin.partition, &order);
            sent.push((index, order.id, publisher.publish(outgoing)));
        }
        for (index, id, published) in sent {
            match published.await {
                Ok(_) => drop(given.insert(id, index)),
                Err(error) => drop(answers.insert(index, Answer::NotGiven(error))),
            }
        }
        let mut awaited: HashMap<_, _> = given.clone();
        awaited.retain(|_, index| presence(&wishes[*index]) != Attendance::Absent);
        for (index, verdict) in self.follow(awaited, wishes, deadline, clock).await? {
            answers.insert(index, Answer::Said(verdict));
        }
        let unanswered = |wish: &Wish| match presence(wish) {
            Attendance::Absent | Attendance::Unseen => Answer::Queued,
            Attendance::Present | Attendance::Unsure => Answer::Unanswered,
        };
        let answer = |(index, wish)| answers.remove(&index).unwrap_or_else(|| unanswered(wish));
        Ok(wishes.iter().enumerate().map(answer).collect())
    }

    /// Who is in the group of this shelf, if it is anybody's.
    async fn group(&self) -> Option<Result<GroupState, KafkaError>> {
        let Identity { group, .. } = self.identity()?;
        match Admin::new(&self.settings) {
            Ok(admin) => Some(admin.group(group).await),
            Err(error) => Some(Err(error)),
        }
    }

    /// What the log says of a wish about something that does not wait, or is not closed.
    fn needless(&self, wish: &Wish) -> Option<Verdict> {
        let part = self.parts.get(&wish.origin.partition)?;
        let offset = wish.origin.offset;
        let stands = match wish.deed {
            Deed::Resolve | Deed::Announce { .. } => part.shelf.is_closing(offset),
            Deed::Release | Deed::Reschedule { .. } | Deed::Cancel => part.shelf.waiting.contains(offset),
        };
        (!stands).then(|| part.absent(offset))
    }

    /// Reads on until every one of these orders has an outcome that counts, or the time is over.
    async fn follow(
        &mut self,
        mut awaited: HashMap<String, usize>,
        wishes: &[Wish],
        deadline: Duration,
        clock: &Clock,
    ) -> Result<Vec<(usize, Verdict)>, Error> {
        let ids = awaited.iter().map(|(id, index)| (wishes[*index].origin.partition, id.clone())).collect();
        let outcomes = self.outcomes(ids, deadline, clock).await?;
        let said =
            outcomes.into_iter().filter_map(|outcome| Some((awaited.remove(&outcome.id)?, outcome.verdict)));
        Ok(said.collect())
    }

    /// Reads on until every one of these orders, by partition and id, has an outcome that counts, or the time is
    /// over.
    pub(crate) async fn outcomes(
        &mut self,
        mut awaited: BTreeSet<(i32, String)>,
        deadline: Duration,
        clock: &Clock,
    ) -> Result<Vec<Outcome>, Error> {
        let mut said = Vec::new();
        let partitions: BTreeSet<i32> = awaited.iter().map(|(partition, _)| *partition).collect();
        let read = |_: &Self, partition: i32, outcome: Option<Outcome>| {
            if let Some(outcome) = outcome
                && awaited.remove(&(partition, outcome.id.clone()))
            {
                said.push(outcome);
            }
            awaited.is_empty()
        };
        self.read_on(&partitions, deadline, clock, read).await?;
        Ok(said)
    }

    /// Reads on until each of these letters closes its lane, or the time is over: a record that was cancelled
    /// becomes a letter only after the answer.
    pub async fn until_closed(
        &mut self,
        letters: &BTreeSet<Origin>,
        wait: Duration,
        clock: &Clock,
    ) -> Result<(), Error> {
        let is_open = |view: &Self, letter: &Origin| view.closure(letter).is_none();
        let mut open: BTreeSet<&Origin> = letters.iter().filter(|letter| is_open(self, letter)).collect();
        let partitions = open.iter().map(|letter| letter.partition).collect();
        let deadline = clock.now().steady.saturating_add(wait);
        let read = |view: &Self, _, _| {
            open.retain(|letter| is_open(view, letter));
            open.is_empty()
        };
        self.read_on(&partitions, deadline, clock, read).await
    }

    /// Reads these partitions on until `read`, which is called after each entry, says that it is enough, or the time is
    /// over.
    async fn read_on(
        &mut self,
        partitions: &BTreeSet<i32>,
        deadline: Duration,
        clock: &Clock,
        mut read: impl FnMut(&Self, i32, Option<Outcome>) -> bool,
    ) -> Result<(), Error> {
        let mut from = partitions.iter().filter_map(|partition| {
            let offset = self.parts.get(partition)?.next;
            Some(Origin { topic: self.shelf.clone(), partition: *partition, offset })
        });
        let Some(first) = from.next() else { return Ok(()) };
        let reader = Reader::from_each(&self.settings, first, &from.collect::<Vec<_>>())?;
        loop {
            let record = tokio::select! {
                biased;
                record = reader.next() => record?,
                () = clock.sleep_until(deadline) => return Ok(()),
            };
            let partition = record.at.partition;
            let Some(part) = self.parts.get_mut(&partition) else { continue };
            let outcome = part.read(&record, &self.keep);
            let outcome = outcome.map_err(|source| Error::Entry { at: record.at, source })?;
            if read(self, partition, outcome) {
                return Ok(());
            }
        }
    }
}

fn outgoing(shelf: &Topic, partition: i32, order: &Order) -> Outgoing {
    let written = Entry::Order(order.clone()).write();
    Outgoing {
        partition: Some(partition),
        key: written.key,
        value: written.value,
        headers: written.headers,
        ..Outgoing::to(shelf.clone())
    }
}
