//! A job as the records of `redrive.state` tell of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::Duration;

use redrive_core::Timestamp;

use super::value::{Begun, End, Ending, Kind, Mark, Outcome, Turn, Want, What, Whereto, Wish};
use super::{JobId, Moved, Selection};
use crate::fingerprint::normalised;

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// Where it begun in the log: of two jobs, the one with the lower place is the earlier.
    pub order: i64,
    /// What it set out to do.
    pub begun: Begun,
    /// Its letters.
    pub selection: Selection,
    /// How far it came.
    pub mark: Mark,
    /// What is wanted of it, if anybody ever said.
    pub wish: Option<Wish>,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// Which process goes on with it.
    pub turn: Option<Turn>,
    /// The letters that it wrote again elsewhere, some at a time.
    pub(crate) moved: BTreeMap<u32, Moved>,
    pub(super) outcomes: Outcomes,
    /// Why letters were left out, not taken or failed again, of the first that were.
    pub(super) whys: BTreeMap<u64, String>,
    /// Where letters are that failed again, of the first that did.
    pub(super) again: BTreeMap<u64, String>,
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has letters left and may go on.
    Running,
    /// The same, and the process that went on with it is gone: somebody has to resume it.
    Interrupted,
    /// Somebody wants it to wait.
    Paused,
    /// Somebody wants it to end.
    Cancelling,
    /// It is over.
    Ended(Ending),
}

impl Standing {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Paused => "paused",
            Self::Cancelling => "cancelling",
            Self::Ended(Ending::Finished) => "finished",
            Self::Ended(Ending::Cancelled) => "cancelled",
            Self::Ended(Ending::Withdrawn) => "withdrawn",
        }
    }
}

/// A process that goes on with a job says so at least so often; after so long it is taken for gone.
pub(crate) const ALIVE: Duration = Duration::from_secs(5);
const GONE: Duration = Duration::from_secs(30);

/// What became of a job's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Letters of the job.
    pub letters: u64,
    /// Those that were sent.
    pub sent: u64,
    /// Those that were left out on the way.
    pub skipped: u64,
    /// Of those sent: the handler took them.
    pub handled: u64,
    /// They failed again, and are letters again.
    pub buried: u64,
    /// They failed again, and wait to be tried again.
    pub waiting: u64,
    /// A rule gave them up.
    pub dropped: u64,
    /// Their worker did not take them.
    pub refused: u64,
}

impl Counts {
    /// Sent, and nothing was heard of them yet.
    #[must_use]
    pub fn unheard(&self) -> u64 {
        self.sent.saturating_sub(self.handled + self.failed())
    }

    /// Those that did not go well: letters again, waiting again, given up or not taken.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.buried + self.waiting + self.dropped + self.refused
    }

    /// How many of a hundred that were heard of did not go well; none if nothing was heard.
    #[must_use]
    pub fn failed_share(&self) -> Option<f64> {
        let heard = self.handled + self.failed();
        // Counts are far below what a float holds exactly.
        (heard > 0).then(|| 100.0 * self.failed() as f64 / heard as f64)
    }
}

/// A byte for each letter that something was heard of; as long as the highest of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Outcomes(Vec<u8>);

/// Of so many letters of a job it is kept why.
const WHYS: usize = 1_000;

/// No job has more letters; a number beyond it is nobody's.
const MOST: u64 = 1 << 28;

impl Outcomes {
    pub(super) fn set(&mut self, number: u64, what: Option<What>) {
        let Some(place) = usize::try_from(number).ok().filter(|_| number < MOST) else { return };
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        self.0[place] = what.map_or(0, |what| match what {
            What::Handled => 1,
            What::Waiting => 2,
            What::Buried => 3,
            What::Skipped => 4,
            What::Dropped => 5,
            What::Refused => 6,
        });
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// Another one where something else became of a letter.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write(&self.0);
        hasher.finish()
    }

    fn get(&self, number: u64) -> Option<What> {
        match self.0.get(usize::try_from(number).ok()?)? {
            1 => Some(What::Handled),
            2 => Some(What::Waiting),
            3 => Some(What::Buried),
            4 => Some(What::Skipped),
            5 => Some(What::Dropped),
            6 => Some(What::Refused),
            _ => None,
        }
    }

    fn count(&self, upto: u64) -> [u64; 7] {
        let upto = usize::try_from(upto).unwrap_or(usize::MAX).min(self.0.len());
        self.0[..upto].iter().fold([0; 7], |mut counts, what| {
            counts[usize::from(*what).min(6)] += 1;
            counts
        })
    }
}

impl Job {
    /// A job that has just begun.
    pub(super) fn new(id: JobId, order: i64, begun: Begun, selection: Selection) -> Self {
        let (mark, outcomes) = (Mark::default(), Outcomes::default());
        Self {
            id,
            order,
            begun,
            selection,
            mark,
            wish: None,
            end: None,
            turn: None,
            moved: BTreeMap::new(),
            outcomes,
            whys: BTreeMap::new(),
            again: BTreeMap::new(),
        }
    }

    /// How it stands by now: nothing may have been heard of its process for long, or it said that it stops.
    #[must_use]
    pub fn standing_at(&self, now: Timestamp) -> Standing {
        let is_gone = self.mark.stopped || now.since(self.last_heard()) >= GONE;
        match self.standing() {
            Standing::Running if is_gone => Standing::Interrupted,
            standing => standing,
        }
    }

    /// How it stands; whether a process goes on with it is not looked at.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match (&self.end, self.wish.as_ref().map(|wish| wish.want)) {
            (Some(end), _) => Standing::Ended(end.how),
            (None, Some(Want::Pause)) => Standing::Paused,
            (None, Some(Want::Cancel)) => Standing::Cancelling,
            (None, Some(Want::Run) | None) => Standing::Running,
        }
    }

    /// What became of its letters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { letters: self.begun.letters, ..self.counts_of_first(u64::MAX) }
    }

    /// The same for the first of its letters.
    #[must_use]
    pub fn counts_of_first(&self, letters: u64) -> Counts {
        let upto = self.mark.upto.min(letters);
        let [_, handled, waiting, buried, skipped, dropped, refused] = self.outcomes.count(upto);
        let sent = upto.saturating_sub(skipped);
        Counts { letters, sent, skipped, handled, buried, waiting, dropped, refused }
    }

    /// What became of the letter of this number, as far as it was told.
    #[must_use]
    pub fn outcome(&self, number: u64) -> Option<What> {
        self.outcomes.get(number)
    }

    /// Why the letter of this number was left out, not taken or failed again, if that was told.
    #[must_use]
    pub fn why(&self, number: u64) -> Option<&str> {
        self.whys.get(&number).map(String::as_str)
    }

    /// Where the letter of this number is a letter again, if that was told.
    #[must_use]
    pub fn again(&self, number: u64) -> Option<&str> {
        self.again.get(&number).map(String::as_str)
    }

    /// Why letters were left out, not taken or failed again, and how many of the first of them for each reason. Those
    /// that differ by a number or a name only are one, in the words of the first.
    #[must_use]
    pub fn whys(&self) -> BTreeMap<&str, u64> {
        let mut alike: BTreeMap<String, (&str, u64)> = BTreeMap::new();
        for why in self.whys.values() {
            alike.entry(normalised(why)).or_insert((why.as_str(), 0)).1 += 1;
        }
        alike.into_values().collect()
    }

    /// Something else was told of a letter.
    pub(super) fn tell(&mut self, number: u64, outcome: Option<Outcome>) {
        self.outcomes.set(number, outcome.as_ref().map(|outcome| outcome.what));
        let (why, again) = outcome.map_or((None, None), |outcome| (outcome.why, outcome.letter));
        for (kept, told) in [(&mut self.whys, why), (&mut self.again, again)] {
            match told {
                Some(told) if kept.len() < WHYS => drop(kept.insert(number, told)),
                Some(_) | None => drop(kept.remove(&number)),
            }
        }
    }

    /// Whether it dealt with the letter of this number: sent it and it was taken, or whatever it does.
    #[must_use]
    pub fn has_done(&self, number: u64) -> bool {
        let is_taken = !matches!(self.outcomes.get(number), Some(What::Skipped | What::Refused));
        number < self.mark.upto && is_taken
    }

    /// Whether it is going to deal with the letter of this number, if nobody ends it.
    #[must_use]
    pub fn will_do(&self, number: u64) -> bool {
        self.end.is_none() && number >= self.mark.upto && number < self.begun.letters
    }

    /// Whether nobody watches the process that goes on with it, so that another like it may.
    #[must_use]
    pub fn is_unattended(&self) -> bool {
        self.turn.as_ref().map_or(self.begun.options.unattended, |turn| turn.unattended)
    }

    /// When it was last heard of: begun, gone on with, or something else wanted of it.
    #[must_use]
    pub fn last_heard(&self) -> Timestamp {
        let wish = self.wish.as_ref().map_or(0, |wish| wish.at);
        let alive = self.mark.alive.unwrap_or(0);
        Timestamp::from_millis(self.begun.at.max(self.mark.at).max(alive).max(wish))
    }

    /// How many of its letters go where nothing is heard of them.
    #[must_use]
    pub fn silent(&self) -> u64 {
        let all = match self.begun.to {
            Whereto::Usual | Whereto::Retry => 0,
            Whereto::Origin | Whereto::Topic(_) => self.begun.letters,
        };
        self.begun.silent.unwrap_or(all)
    }

    /// Whether all was sent or given up, and all was heard of that is ever heard of.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.end.is_some() && self.counts().unheard() <= self.silent()
    }

    /// That it goes on, by whom, when and why: where it waits because of its first letters, whatever becomes of those.
    #[must_use]
    pub fn go_on(&self, by: &str, at: Timestamp, why: &str) -> Wish {
        let canary = self.wish.as_ref().is_some_and(|wish| wish.canary);
        Wish { want: Want::Run, by: by.to_owned(), at: at.millis(), why: why.to_owned(), canary }
    }

    /// Whether it sends letters, so that no other may while it holds them.
    #[must_use]
    pub fn sends(&self) -> bool {
        self.begun.kind == Kind::Replay
    }
}
