//! What became of letters that were sent back, told when it is certain.

use super::{Action, Fate, Flow, Id, Notice};
use crate::Origin;
use crate::shelf::{Done, is_it};

/// The end of a letter that was sent back, until the log says that its record is complete.
#[derive(Debug)]
pub(super) struct End {
    replay: String,
    origin: Origin,
    fate: Fate,
    /// What names it on the shelf, if it came from there.
    shelved: Option<Done>,
}

impl Flow {
    /// A record is over; it may be one that was sent back.
    pub(super) fn note_end(&mut self, id: Id, fate: Fate) {
        let Some(ticket) = self.tickets.get(id) else { return };
        let Some(replay) = ticket.replay(&self.settings.group) else { return };
        let (replay, origin) = (replay.to_owned(), ticket.record.at.clone());
        let (number, shelved) = (origin.partition, ticket.shelved);
        let Some(partition) = self.partitions.get_mut(number) else { return };
        if partition.aside.is_none() {
            self.actions.push_back(Action::Tell(Notice::SentBack { replay, origin, fate }));
            return;
        }
        partition.ends.push(End { replay, origin, fate, shelved });
    }

    /// The log says how far the partition has come.
    pub(super) fn tell_ends(&mut self, number: i32) {
        let Some(partition) = self.partitions.get_mut(number) else { return };
        if partition.ends.is_empty() {
            return;
        }
        let Some(shelf) = partition.aside.as_ref().map(|aside| &aside.owner.shelf) else { return };
        let Some(progress) = shelf.progress() else { return };
        let is_certain = |end: &End| {
            let offset = end.origin.offset;
            match end.shelved {
                Some(done) => !shelf.waiting.get(offset).is_some_and(|waiting| is_it(&waiting, done)),
                None => offset < progress.mark() || progress.ahead().contains(offset),
            }
        };
        for End { replay, origin, fate, .. } in partition.ends.extract_if(.., |end| is_certain(end)) {
            self.actions.push_back(Action::Tell(Notice::SentBack { replay, origin, fate }));
        }
    }
}
