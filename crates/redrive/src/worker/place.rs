//! Where a partition begins: what was committed, what is there, and what a group that never ran wants.

use redrive_core::settings::Start;

/// What is known about a partition before it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// What the group committed.
    pub(crate) committed: Option<i64>,
    /// Whether that was for a topic of this name that is gone.
    pub(crate) of_another_topic: bool,
    /// Whether the partition is one that was not there yet when the group began.
    pub(crate) came_later: bool,
    /// The first offset that is there, and the next.
    pub(crate) bounds: (i64, i64),
    /// The first offset of the configured time.
    pub(crate) at_time: Option<i64>,
}

/// Where it begins, or why it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where the group was.
    Committed(i64),
    /// At an offset that the group is to commit before anything else.
    New(i64),
    /// Nowhere: something is gone, and only a person may accept that.
    Gap(String),
}

/// Where a partition begins.
pub(crate) fn place(known: Known, start: Start, accept_loss: bool) -> Place {
    let (low, high) = known.bounds;
    let gap = |what: String| match accept_loss {
        true => Place::New(low),
        false => Place::Gap(what),
    };
    match known.committed {
        Some(offset) if known.of_another_topic => gap(format!(
            "the topic was deleted and made anew: offset {offset} was committed in the earlier one, \
             this one has {low} to {high}"
        )),
        Some(offset) if offset < low => gap(format!(
            "{} offsets are gone: {offset} is next for the group, and the topic begins at {low}",
            low - offset
        )),
        Some(offset) if offset > high => gap(format!(
            "offset {offset} is next for the group, and the topic ends at {high}: it was truncated or made anew"
        )),
        Some(offset) => Place::Committed(offset),
        // A partition that came later: its records are new to the group, wherever a new group would begin.
        None if known.came_later => Place::New(low),
        None => Place::New(match start {
            Start::Earliest => low,
            Start::Latest => high,
            Start::At(_) => known.at_time.unwrap_or(high),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::Timestamp;

    const KNOWN: Known = Known {
        committed: None,
        of_another_topic: false,
        came_later: false,
        bounds: (10, 90),
        at_time: Some(40),
    };

    #[test]
    fn a_new_group_begins_where_it_was_told_to() {
        let at = |start| place(KNOWN, start, false);
        assert_eq!(at(Start::Earliest), Place::New(10));
        assert_eq!(at(Start::Latest), Place::New(90));
        assert_eq!(at(Start::At(Timestamp::from_millis(5))), Place::New(40));
        let later = Known { at_time: None, ..KNOWN };
        assert_eq!(place(later, Start::At(Timestamp::from_millis(5)), false), Place::New(90));
    }

    #[test]
    fn a_partition_that_came_later_is_read_from_its_beginning() {
        let known = Known { came_later: true, ..KNOWN };
        assert_eq!(place(known, Start::Latest, false), Place::New(10));
    }

    #[test]
    fn a_group_goes_on_where_it_was() {
        for offset in [10, 50, 90] {
            let known = Known { committed: Some(offset), came_later: true, ..KNOWN };
            assert_eq!(place(known, Start::Latest, false), Place::Committed(offset));
        }
    }

    #[test]
    fn what_is_gone_is_told_and_only_skipped_when_that_is_accepted() {
        let gone = Known { committed: Some(3), came_later: true, ..KNOWN };
        let Place::Gap(what) = place(gone, Start::Earliest, false) else { panic!() };
        assert!(what.starts_with("7 offsets are gone"), "{what}");
        assert_eq!(place(gone, Start::Earliest, true), Place::New(10));
        let beyond = Known { committed: Some(91), ..gone };
        assert!(matches!(place(beyond, Start::Earliest, false), Place::Gap(_)));
        let anew = Known { committed: Some(50), of_another_topic: true, ..gone };
        assert!(matches!(place(anew, Start::Earliest, false), Place::Gap(_)));
    }
}
