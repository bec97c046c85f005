//! What a job does next, from what was sent and what was heard: goes on, waits, or pauses because too many fail
//! again. Plain data in, plain data out.

use std::str::FromStr;

use crate::jobs::{Counts, Options, Want};

/// It pauses when more of a hundred fail again, unless something else is said.
pub const MAX_FAILED: f64 = 20.0;

/// A share of a hundred, as people write it: `10%`, or `10`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
        let good = number.ok().filter(|number| (0.0..=100.0).contains(number));
        good.map(Self).ok_or_else(|| format!("`{text}` is not a share from 0% to 100%; write 10%"))
    }
}

/// So many must be heard of before a share of them says anything.
const SAMPLE: u64 = 20;

/// What is known when it is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// The letters below this number are dealt with.
    pub upto: u64,
    /// What became of all.
    pub counts: Counts,
    /// What became of the first ones.
    pub canary: Counts,
    /// What had become of all when this process went on with the job: that is known to whoever let it go on.
    pub known: Counts,
    /// What is wanted.
    pub want: Option<Want>,
    /// Whether the first ones took longer to be heard of than anybody wants to wait.
    pub is_late: bool,
    /// Whether somebody lets it go on whatever becomes of the first ones.
    pub is_let_go: bool,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Send on, up to this number.
    Send(u64),
    /// Wait for what becomes of the first ones.
    Listen,
    /// Wait: somebody wants it so.
    Hold,
    /// Stop here and say why, so that somebody looks.
    Pause(String),
    /// The same, because of the first ones.
    PauseAtFirst(String),
    /// End here: somebody wants it so.
    Cancel,
    /// All is sent.
    Done,
}

/// What to do next.
#[must_use]
pub fn next(seen: &Seen, options: &Options) -> Next {
    match seen.want {
        Some(Want::Cancel) => return Next::Cancel,
        Some(Want::Pause) => return Next::Hold,
        Some(Want::Run) | None => {}
    }
    let letters = seen.counts.letters;
    if seen.upto >= letters {
        return Next::Done;
    }
    let most = options.max_failed.unwrap_or(MAX_FAILED);
    let canary = options.canary.unwrap_or(0).min(letters);
    if seen.upto < canary {
        return Next::Send(canary);
    }
    // Once they are passed, nobody waits for them any more.
    if seen.upto == canary && canary > 0 && !seen.is_let_go {
        let failed = seen.canary.failed();
        let heard = seen.canary.handled + failed;
        // By what was sent, not by what was read back of that, which may be behind.
        let unheard = canary.saturating_sub(heard + seen.canary.skipped);
        let share = seen.canary.failed_share().unwrap_or(0.0);
        let is_news = failed > seen.known.failed();
        if share > most && is_news && unheard == 0 {
            return Next::PauseAtFirst(format!("{failed} of the first {heard} failed again"));
        }
        match (unheard, seen.is_late) {
            (0, _) => {}
            (_, false) => return Next::Listen,
            (unheard, true) => {
                return Next::PauseAtFirst(format!("nothing was heard of {unheard} of the first {canary}"));
            }
        }
    }
    let since = Counts {
        handled: seen.counts.handled.saturating_sub(seen.known.handled),
        buried: seen.counts.buried.saturating_sub(seen.known.buried),
        waiting: seen.counts.waiting.saturating_sub(seen.known.waiting),
        dropped: seen.counts.dropped.saturating_sub(seen.known.dropped),
        refused: seen.counts.refused.saturating_sub(seen.known.refused),
        ..seen.counts
    };
    let (failed, heard) = (since.failed(), since.handled + since.failed());
    if heard >= SAMPLE && since.failed_share().is_some_and(|share| share > most) {
        return Next::Pause(format!("{failed} of {heard} failed again"));
    }
    Next::Send(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(upto: u64, handled: u64, buried: u64) -> Seen {
        let counts = Counts { letters: 1_000, sent: upto, handled, buried, ..Counts::default() };
        Seen { upto, counts, canary: Counts { letters: 20, sent: upto.min(20), ..counts }, ..Seen::default() }
    }

    #[test]
    fn the_first_ones_go_ahead_and_the_others_when_they_went_well() {
        let options = Options { canary: Some(20), max_failed: Some(10.0), ..Options::default() };
        assert_eq!(next(&heard(0, 0, 0), &options), Next::Send(20));
        assert_eq!(next(&heard(20, 18, 1), &options), Next::Listen);
        let behind = Seen { upto: 20, ..heard(0, 0, 0) };
        assert_eq!(next(&behind, &options), Next::Listen, "what was sent is not read back yet");
        assert_eq!(next(&heard(20, 18, 2), &options), Next::Send(1_000));
        let failed = heard(20, 17, 3);
        assert_eq!(next(&failed, &options), Next::PauseAtFirst("3 of the first 20 failed again".to_owned()));
        let known = Seen { known: failed.counts, ..failed };
        assert_eq!(next(&known, &options), Next::Send(1_000), "whoever lets it go on knows of them");
        let late = Seen { is_late: true, ..heard(20, 5, 0) };
        let why = "nothing was heard of 15 of the first 20".to_owned();
        assert_eq!(next(&late, &options), Next::PauseAtFirst(why));
        let let_go = Seen { is_let_go: true, ..late };
        assert_eq!(next(&let_go, &options), Next::Send(1_000), "somebody knows that, and lets it go on");
    }

    #[test]
    fn it_pauses_when_too_many_fail_again_and_a_few_say_nothing() {
        let options = Options::default();
        assert_eq!(next(&heard(500, 0, 19), &options), Next::Send(1_000));
        assert_eq!(next(&heard(500, 100, 25), &options), Next::Send(1_000), "a fifth is bearable");
        let told = Next::Pause("26 of 126 failed again".to_owned());
        assert_eq!(next(&heard(500, 100, 26), &options), told);
        assert_eq!(next(&heard(1_000, 0, 1_000), &options), Next::Done, "nothing is left to hold back");
    }

    #[test]
    fn a_share_is_of_a_hundred() {
        assert_eq!(("10%".parse(), "2.5".parse()), (Ok(Share(10.0)), Ok(Share(2.5))));
        for text in ["200%", "-1", "many", "", "NaN"] {
            assert!(text.parse::<Share>().unwrap_err().contains("write 10%"), "{text}");
        }
    }

    #[test]
    fn what_people_want_comes_first() {
        let wanted = |want| next(&Seen { want: Some(want), ..heard(1_000, 0, 0) }, &Options::default());
        assert_eq!(wanted(Want::Pause), Next::Hold);
        assert_eq!(wanted(Want::Cancel), Next::Cancel);
        assert_eq!(wanted(Want::Run), Next::Done);
    }
}
