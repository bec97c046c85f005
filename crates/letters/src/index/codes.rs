//! Words of letters as small numbers in the index. They are written down there: a change is a new version of it.

use redrive_core::Class;
use redrive_core::route::Reason;

use crate::Dialect;
use crate::state::{Outcome, State};

pub(crate) fn class(class: Option<Class>) -> i64 {
    match class {
        None => 0,
        Some(Class::Permanent) => 1,
        Some(Class::Transient) => 2,
        Some(Class::Outage) => 3,
        Some(Class::NotReady) => 4,
    }
}

pub(crate) fn class_of(code: i64) -> Option<Class> {
    Class::ALL.into_iter().find(|one| class(Some(*one)) == code)
}

pub(crate) fn reason(reason: Option<Reason>) -> i64 {
    match reason {
        None => 0,
        Some(Reason::Permanent) => 1,
        Some(Reason::Exhausted) => 2,
        Some(Reason::Expired) => 3,
        Some(Reason::Undecodable) => 4,
        Some(Reason::Follower) => 5,
        Some(Reason::Rejected) => 6,
        Some(Reason::Cancelled) => 7,
    }
}

pub(crate) fn reason_of(code: i64) -> Option<Reason> {
    Reason::ALL.into_iter().find(|one| reason(Some(*one)) == code)
}

pub(crate) fn dialect(dialect: Dialect) -> i64 {
    match dialect {
        Dialect::Unknown => 0,
        Dialect::Redrive => 1,
        Dialect::Spring => 2,
        Dialect::CloudStream => 3,
        Dialect::Connect => 4,
        Dialect::Streams => 5,
        Dialect::Share => 6,
        Dialect::Smallrye => 7,
        Dialect::Seeds => 8,
    }
}

pub(crate) fn dialect_of(code: i64) -> Dialect {
    Dialect::ALL.into_iter().find(|one| dialect(*one) == code).unwrap_or(Dialect::Unknown)
}

pub(crate) fn state(state: State) -> i64 {
    match state {
        State::Open => 0,
        State::Replaying => 1,
        State::Replayed => 2,
        State::Resolved => 3,
        State::Purged => 4,
        State::Erased => ERASED,
    }
}

/// Nothing is kept of a letter; no kind has this state.
const ERASED: i64 = 6;

/// A letter that was sent back and that its handler took: of a kind of its own, so that failure groups are told from
/// their kinds alone.
const SUCCEEDED: i64 = 5;

/// The state of a kind: what is the matter with a letter, and whether it went well.
pub(crate) fn state_of_kind(now: State, outcome: Option<Outcome>) -> i64 {
    match (now, outcome) {
        (State::Replayed, Some(Outcome::Handled)) => SUCCEEDED,
        (now, _) => state(now),
    }
}

pub(crate) fn state_of(code: i64) -> State {
    let code = if code == SUCCEEDED { state(State::Replayed) } else { code };
    let mut all = State::ALL.into_iter().chain([State::Erased]);
    all.find(|one| state(*one) == code).unwrap_or(State::Open)
}

/// Whether nothing more is to be done about letters of a kind in this state.
pub(crate) fn is_dealt_with(code: i64) -> bool {
    match state_of(code) {
        State::Open | State::Replaying => false,
        State::Replayed => code == SUCCEEDED,
        State::Resolved | State::Purged | State::Erased => true,
    }
}

pub(crate) fn outcome(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Handled => 1,
        Outcome::Waiting => 2,
        Outcome::Buried => 3,
    }
}

pub(crate) fn outcome_of(code: Option<i64>) -> Option<Outcome> {
    Outcome::ALL.into_iter().find(|one| Some(outcome(*one)) == code)
}

/// The record has no value: a tombstone that failed.
pub(crate) const TOMBSTONE: i64 = 1;
/// The payload is somewhere else.
pub(crate) const POINTER: i64 = 2;
/// The lane is the key.
pub(crate) const LANE_IS_KEY: i64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        assert!(Class::ALL.into_iter().all(|one| class_of(class(Some(one))) == Some(one)));
        assert!(Reason::ALL.into_iter().all(|one| reason_of(reason(Some(one))) == Some(one)));
        assert!(Dialect::ALL.into_iter().all(|one| dialect_of(dialect(one)) == one));
        assert!(State::ALL.into_iter().all(|one| state_of(state(one)) == one));
        assert_eq!(state_of(state(State::Erased)), State::Erased);
        let succeeded = state_of_kind(State::Replayed, Some(Outcome::Handled));
        assert_eq!((state_of(succeeded), is_dealt_with(succeeded)), (State::Replayed, true));
        assert!(!is_dealt_with(state_of_kind(State::Replayed, Some(Outcome::Buried))));
        assert!(Outcome::ALL.into_iter().all(|one| outcome_of(Some(outcome(one))) == Some(one)));
        assert_eq!((class_of(0), reason_of(0), outcome_of(None)), (None, None, None));
    }
}
