//! The records of a lane in the order of their offsets. Most lanes hold one record at a time, so the
//! first one costs no allocation.

use std::collections::BTreeMap;

use super::lane::Place;

#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    /// The lowest; empty only if all is.
    first: Option<(i64, Place)>,
    rest: BTreeMap<i64, Place>,
}

impl Records {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn contains(&self, offset: i64) -> bool {
        self.first.is_some_and(|(first, _)| first == offset) || self.rest.contains_key(&offset)
    }

    /// Puts a record in, or in another place.
    pub(super) fn insert(&mut self, offset: i64, place: Place) {
        match self.first {
            None => self.first = Some((offset, place)),
            Some((first, _)) if first == offset => self.first = Some((offset, place)),
            Some((first, lowest)) if offset < first => {
                self.rest.insert(first, lowest);
                self.first = Some((offset, place));
            }
            Some(_) => {
                self.rest.insert(offset, place);
            }
        }
    }

    /// Takes a record out, and says where it was.
    pub(super) fn remove(&mut self, offset: i64) -> Option<Place> {
        match self.first {
            Some((first, place)) if first == offset => {
                self.first = self.rest.pop_first();
                Some(place)
            }
            Some(_) | None => self.rest.remove(&offset),
        }
    }

    pub(super) fn get_mut(&mut self, offset: i64) -> Option<&mut Place> {
        match &mut self.first {
            Some((first, place)) if *first == offset => Some(place),
            Some(_) | None => self.rest.get_mut(&offset),
        }
    }

    pub(super) fn first_mut(&mut self) -> Option<(i64, &mut Place)> {
        self.first.as_mut().map(|(offset, place)| (*offset, place))
    }

    /// The highest below `offset`.
    pub(super) fn last_below(&self, offset: i64) -> Option<(i64, Place)> {
        if self.rest.is_empty() {
            return self.first.filter(|(first, _)| *first < offset);
        }
        let rest = self.rest.range(..offset).next_back().map(|(offset, place)| (*offset, *place));
        rest.or(self.first.filter(|(first, _)| *first < offset))
    }

    /// Those from `offset` on, the lowest first.
    pub(super) fn at_or_above_mut(&mut self, offset: i64) -> impl Iterator<Item = (i64, &mut Place)> {
        let first = self.first.as_mut().filter(|(first, _)| *first >= offset);
        let first = first.map(|(first, place)| (*first, place));
        first.into_iter().chain(self.rest.range_mut(offset..).map(|(offset, place)| (*offset, place)))
    }

    /// The one with the handler, or about to be.
    pub(super) fn running(&self) -> Option<i64> {
        let mut all = self.first.iter().map(|(offset, place)| (*offset, *place));
        let first = all.find(|(_, place)| *place == Place::Running);
        let mut rest = self.rest.iter().filter(|(_, place)| **place == Place::Running);
        first.map(|(offset, _)| offset).or_else(|| rest.next().map(|(offset, _)| *offset))
    }

    pub(super) fn first(&self) -> Option<(i64, Place)> {
        self.first
    }
}
