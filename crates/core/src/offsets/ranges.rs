//! A set of offsets as ranges: sorted, apart from one another, none empty.

use std::ops::Range;

/// A set of offsets that mostly come in runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ranges(Vec<Range<i64>>);

impl Ranges {
    /// Whether the offset is in the set.
    #[must_use]
    pub fn contains(&self, offset: i64) -> bool {
        let next = self.0.partition_point(|range| range.end <= offset);
        self.0.get(next).is_some_and(|range| range.contains(&offset))
    }

    /// Adds a range; an empty one adds nothing.
    pub fn insert(&mut self, range: Range<i64>) {
        if range.is_empty() {
            return;
        }
        let from = self.0.partition_point(|known| known.end < range.start);
        let to = self.0.partition_point(|known| known.start <= range.end);
        let touched = &self.0[from..to];
        let start = touched.first().map_or(range.start, |first| first.start.min(range.start));
        let end = touched.last().map_or(range.end, |last| last.end.max(range.end));
        self.0.splice(from..to, [start..end]);
    }

    /// Forgets every offset below `bound`.
    pub fn drop_below(&mut self, bound: i64) {
        let gone = self.0.partition_point(|range| range.end <= bound);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(bound);
        }
    }

    /// Where the run of offsets that begins at or spans `offset` ends; `offset` itself if it is not in the set.
    #[must_use]
    pub fn end_of_run_at(&self, offset: i64) -> i64 {
        let next = self.0.partition_point(|range| range.end <= offset);
        self.0.get(next).filter(|range| range.contains(&offset)).map_or(offset, |range| range.end)
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Range<i64>> {
        self.0.iter()
    }

    /// How many ranges there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Range<i64>> for Ranges {
    fn from_iter<I: IntoIterator<Item = Range<i64>>>(ranges: I) -> Self {
        let mut set = Self::default();
        ranges.into_iter().for_each(|range| set.insert(range));
        set
    }
}
