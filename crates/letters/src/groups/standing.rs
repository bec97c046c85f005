//! What is the matter with a failure group: what somebody said of it, and whether it was seen again since.

use std::time::Duration;

use redrive_core::Timestamp;

use crate::state::{GroupWish, Wish};

/// For how long a group is new.
const NEW: Duration = Duration::from_secs(24 * 3_600);

/// What is the matter with a failure group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Seen first within a day.
    New,
    /// Known for longer.
    Ongoing,
    /// Nobody wants to hear of it.
    Muted,
    /// Somebody said that its cause is gone, or all of its letters were dealt with; it was not seen since.
    Resolved,
    /// It was resolved, and seen again.
    Regressed,
}

/// What was seen of a failure group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The first of its letters.
    pub first: Timestamp,
    /// The first and the last of those that are not dealt with.
    pub left: Option<(Timestamp, Timestamp)>,
    /// When one was dealt with last: resolved, deleted, or sent back and handled.
    pub dealt: Option<Timestamp>,
}

impl Standing {
    /// As it is named everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Ongoing => "ongoing",
            Self::Muted => "muted",
            Self::Resolved => "resolved",
            Self::Regressed => "regressed",
        }
    }

    /// By what was said, and what was seen.
    #[must_use]
    pub fn of(said: Option<&GroupWish>, seen: &Seen, now: Timestamp) -> Self {
        let fresh = if now.since(seen.first) < NEW { Self::New } else { Self::Ongoing };
        let reopened = match said.map(|said| (said.wish, said.at)) {
            None => None,
            Some((Wish::Open, at)) => Some(at),
            Some((Wish::Muted, _)) => return Self::Muted,
            Some((Wish::Resolved, at)) => {
                let is_back = seen.left.is_some_and(|(_, last)| last > at);
                return if is_back { Self::Regressed } else { Self::Resolved };
            }
        };
        // Whoever opens a group again knows of what was dealt with before.
        let dealt = seen.dealt.filter(|dealt| reopened.is_none_or(|reopened| *dealt > reopened));
        match (dealt, seen.left) {
            (None, _) => fresh,
            (Some(_), None) => Self::Resolved,
            (Some(dealt), Some((first, _))) if first > dealt => Self::Regressed,
            (Some(_), Some(_)) => fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fingerprint;

    #[test]
    fn a_group_stands_by_what_was_said_and_what_was_seen() {
        let hours = |hours: i64| Timestamp::from_millis(hours * 3_600_000);
        let said = |wish| GroupWish {
            failure: Fingerprint::from_number(1),
            wish,
            by: "ann".to_owned(),
            at: hours(50),
            why: None,
        };
        let standing = |wish: Option<Wish>, first: i64, last: i64| {
            let left = Some((hours(first), hours(last)));
            Standing::of(
                wish.map(said).as_ref(),
                &Seen { first: hours(first), left, dealt: None },
                hours(100),
            )
        };
        let table = [
            (None, 90, 99, Standing::New),
            (None, 70, 99, Standing::Ongoing),
            (Some(Wish::Open), 70, 99, Standing::Ongoing),
            (Some(Wish::Muted), 90, 99, Standing::Muted),
            (Some(Wish::Resolved), 10, 49, Standing::Resolved),
            (Some(Wish::Resolved), 10, 50, Standing::Resolved),
            (Some(Wish::Resolved), 10, 51, Standing::Regressed),
            (Some(Wish::Resolved), 90, 99, Standing::Regressed),
        ];
        for (wish, first, last, expected) in table {
            assert_eq!(standing(wish, first, last), expected, "{wish:?} {first} {last}");
        }
        let dealt = |wish: Option<Wish>, left: Option<(i64, i64)>, dealt: i64| {
            let left = left.map(|(first, last)| (hours(first), hours(last)));
            let seen = Seen { first: hours(10), left, dealt: Some(hours(dealt)) };
            Standing::of(wish.map(said).as_ref(), &seen, hours(100))
        };
        let table = [
            (None, None, 60, Standing::Resolved),
            (None, Some((61, 70)), 60, Standing::Regressed),
            (None, Some((59, 70)), 60, Standing::Ongoing),
            (Some(Wish::Open), None, 40, Standing::Ongoing),
            (Some(Wish::Open), None, 60, Standing::Resolved),
            (Some(Wish::Muted), None, 60, Standing::Muted),
            (Some(Wish::Resolved), Some((40, 45)), 60, Standing::Resolved),
            (Some(Wish::Resolved), Some((40, 55)), 60, Standing::Regressed),
        ];
        for (wish, left, at, expected) in table {
            assert_eq!(dealt(wish, left, at), expected, "{wish:?} {left:?} {at}");
        }
    }
}
