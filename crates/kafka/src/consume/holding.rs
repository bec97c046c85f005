//! Which partitions are ours, which are read and in which turn, which are asked back. It decides what to
//! tell librdkafka; it tells it nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use super::event::Turn;

#[derive(Default)]
pub(crate) struct Holding {
    turns: u64,
    /// Given to us by the group and neither given up nor lost.
    ours: BTreeSet<i32>,
    /// In librdkafka's assignment.
    begun: BTreeMap<i32, Begun>,
    /// Asked back and not given up yet.
    revoked: BTreeSet<i32>,
    /// Asked back and given up, while others of the same revocation are not.
    given: BTreeSet<i32>,
    /// To be assigned anew when the revocation is over.
    later: BTreeSet<i32>,
}

struct Begun {
    /// None once it was given up: what still comes is nobody's.
    turn: Option<Turn>,
    /// The lowest offset that has not been handed over in this turn.
    next: i64,
    stopped: bool,
}

/// How librdkafka is made to fetch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The partition is new to it.
    Assign,
    /// It is fetching: elsewhere, from now on.
    Seek,
    /// It has stopped by itself and does not seek: away with it, and again.
    Anew,
    /// As [`Start::Anew`], but not now: to take any partition away would end the revocation that is under
    /// way, with partitions that are still being drained.
    Later,
}

/// What follows from giving up.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct GivenUp {
    /// Not asked back: they stay ours, but nothing more is fetched.
    pub(crate) still: Vec<i32>,
    /// Set when nothing that was asked back is held any more.
    pub(crate) over: Option<Over>,
}

/// The end of a revocation.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Over {
    /// To take from librdkafka's assignment; with none, it must be told so all the same.
    pub(crate) unassign: Vec<i32>,
    /// To assign anew after that, and from where on.
    pub(crate) anew: Vec<(i32, i64)>,
}

impl Holding {
    pub(crate) fn assigned(&mut self, partitions: &[i32]) {
        self.ours.extend(partitions);
    }

    pub(crate) fn revoked(&mut self, partitions: &[i32]) {
        self.revoked.extend(partitions);
    }

    /// No longer ours, at once: what to take from librdkafka's assignment.
    pub(crate) fn lost(&mut self, partitions: &[i32]) -> Vec<i32> {
        let lost: BTreeSet<i32> = partitions.iter().copied().collect();
        self.ours.retain(|partition| !lost.contains(partition));
        self.revoked.retain(|partition| !lost.contains(partition));
        self.given.retain(|partition| !lost.contains(partition));
        self.forget(&lost)
    }

    /// All that librdkafka has, at the end.
    pub(crate) fn everything(&mut self) -> Vec<i32> {
        let all: Vec<i32> = self.begun.keys().copied().collect();
        *self = Self { turns: self.turns, ..Self::default() };
        all
    }

    /// A new turn, and how to start it; none if the partition is not ours, or asked back.
    pub(crate) fn begin(&mut self, partition: i32, offset: i64) -> Option<(Turn, Start)> {
        if !self.ours.contains(&partition) || self.revoked.contains(&partition) {
            return None;
        }
        self.turns += 1;
        let turn = Turn(self.turns);
        let before = self.begun.insert(partition, Begun { turn: Some(turn), next: offset, stopped: false });
        let start = match before {
            None => Start::Assign,
            Some(before) if before.stopped => self.anew(partition),
            Some(_) => Start::Seek,
        };
        Some((turn, start))
    }

    /// How to start a partition that would not seek.
    pub(crate) fn anew(&mut self, partition: i32) -> Start {
        if self.revoked.is_empty() {
            return Start::Anew;
        }
        self.later.insert(partition);
        Start::Later
    }

    /// What was said by `begin` did not come to pass.
    pub(crate) fn unbegin(&mut self, partition: i32) {
        self.begun.remove(&partition);
    }

    pub(crate) fn give_up(&mut self, partitions: &[i32]) -> GivenUp {
        let mut given_up = GivenUp::default();
        let waiting = !self.revoked.is_empty();
        for partition in partitions {
            let begun = self.begun.get_mut(partition);
            let was_begun = begun.map(|begun| begun.turn = None).is_some();
            if self.revoked.remove(partition) {
                self.given.insert(*partition);
            } else if was_begun && !self.given.contains(partition) {
                given_up.still.push(*partition);
            }
        }
        if waiting && self.revoked.is_empty() {
            given_up.over = Some(self.over());
        }
        given_up
    }

    fn over(&mut self) -> Over {
        let given = std::mem::take(&mut self.given);
        self.ours.retain(|partition| !given.contains(partition));
        let unassign = self.forget(&given);
        let later = std::mem::take(&mut self.later);
        let anew =
            later.into_iter().filter_map(|partition| Some((partition, self.begun.get(&partition)?.next)));
        Over { unassign, anew: anew.collect() }
    }

    fn forget(&mut self, partitions: &BTreeSet<i32>) -> Vec<i32> {
        self.later.retain(|partition| !partitions.contains(partition));
        let begun = partitions.iter().copied().filter(|partition| self.begun.remove(partition).is_some());
        begun.collect()
    }

    /// The turn of a record that was fetched; none if nobody wants it, or it was handed over before.
    ///
    /// librdkafka fetches some records twice when it pauses a partition for a rebalance while they are
    /// being taken: it goes back to a position that is not yet up to date.
    pub(crate) fn accept(&mut self, partition: i32, offset: i64) -> Option<Turn> {
        let begun = self.begun.get_mut(&partition)?;
        let turn = begun.turn?;
        if offset < begun.next {
            return None;
        }
        begun.next = offset + 1;
        Some(turn)
    }

    /// librdkafka has given the partition up by itself; the turn in which that was.
    pub(crate) fn stopped(&mut self, partition: i32) -> Option<Turn> {
        let begun = self.begun.get_mut(&partition)?;
        begun.stopped = true;
        begun.turn
    }

    /// Whether the partition is being read.
    pub(crate) fn reads(&self, partition: i32) -> bool {
        self.begun.get(&partition).is_some_and(|begun| begun.turn.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(partitions: &[i32]) -> Holding {
        let mut holding = Holding::default();
        holding.assigned(partitions);
        holding
    }

    #[test]
    fn a_revocation_is_over_when_the_last_partition_is_given_up() {
        let mut holding = holding(&[0, 1, 2]);
        holding.begin(0, 0).unwrap();
        holding.begin(2, 0).unwrap();
        holding.revoked(&[0, 1]);
        assert_eq!(holding.give_up(&[1]), GivenUp::default());
        let over = Over { unassign: vec![0], anew: vec![] };
        assert_eq!(holding.give_up(&[0]), GivenUp { still: vec![], over: Some(over) });
        assert!(holding.accept(0, 7).is_none() && holding.accept(2, 7).is_some());
        assert!(holding.begin(0, 0).is_none(), "it is another's now");
    }

    #[test]
    fn partitions_that_never_began_end_a_revocation_too() {
        let mut holding = holding(&[0, 1]);
        holding.revoked(&[0, 1]);
        assert!(holding.begin(0, 0).is_none(), "it is asked back");
        assert_eq!(holding.give_up(&[0, 1]).over, Some(Over::default()));
        assert_eq!(holding.give_up(&[0, 1]), GivenUp::default(), "once is enough");
    }

    #[test]
    fn what_is_given_up_unasked_stays_ours_and_silent() {
        let mut holding = holding(&[4]);
        let (first, start) = holding.begin(4, 10).unwrap();
        assert_eq!(start, Start::Assign);
        assert_eq!(holding.give_up(&[4]), GivenUp { still: vec![4], over: None });
        assert_eq!(holding.accept(4, 10), None);
        let (second, start) = holding.begin(4, 5).unwrap();
        assert!(second > first && start == Start::Seek);
        assert_eq!((holding.accept(4, 4), holding.accept(4, 5)), (None, Some(second)));
        assert_eq!(holding.accept(4, 5), None, "nothing twice in a turn");
    }

    #[test]
    fn a_partition_that_stopped_is_assigned_anew_but_never_amid_a_revocation() {
        let mut holding = holding(&[0, 1]);
        holding.begin(0, 3).unwrap();
        holding.begin(1, 0).unwrap();
        holding.stopped(0);
        assert_eq!(holding.begin(0, 100).unwrap().1, Start::Anew);
        holding.stopped(0);
        holding.revoked(&[1]);
        assert_eq!(holding.begin(0, 200).unwrap().1, Start::Later);
        let over = Over { unassign: vec![1], anew: vec![(0, 200)] };
        assert_eq!(holding.give_up(&[1]).over, Some(over));
    }

    #[test]
    fn what_is_lost_is_gone_at_once() {
        let mut holding = holding(&[0, 1, 2]);
        holding.begin(0, 0).unwrap();
        holding.begin(1, 0).unwrap();
        assert_eq!(holding.lost(&[0, 1, 2]), [0, 1]);
        assert_eq!(holding.accept(0, 0), None);
        assert_eq!(holding.give_up(&[0, 1, 2]), GivenUp::default());
    }
}
