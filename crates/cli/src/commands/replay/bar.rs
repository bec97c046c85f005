//! How far a job is: a bar where a person watches, a line now and then elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use redrive::Clock;
use redrive_letters::jobs::Counts;
use redrive_letters::replay::Progress;

use super::words;
use crate::{human, screen};

/// Characters of the bar.
const WIDTH: u64 = 24;
/// So often a bar is drawn at most.
const DRAW: Duration = Duration::from_millis(100);
/// So often a line is written where nobody watches.
const LINE: Duration = Duration::from_secs(5);

pub(super) struct Bar {
    clock: Clock,
    began: Duration,
    drawn: Option<Duration>,
    last: String,
}

impl Bar {
    pub(super) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), began: clock.now().steady, drawn: None, last: String::new() }
    }

    /// Shows how far it is, unless it was shown a moment ago.
    pub(super) fn show(&mut self, progress: &Progress) {
        let now = self.clock.now().steady;
        let is_watched = io::stderr().is_terminal();
        let pause = if is_watched { DRAW } else { LINE };
        if self.drawn.is_some_and(|drawn| now < drawn + pause) {
            return;
        }
        let line = line(progress, now.saturating_sub(self.began), is_watched);
        if line == self.last {
            return;
        }
        self.drawn = Some(now);
        if is_watched {
            screen::progress(&line);
        } else {
            screen::say(&line);
        }
        self.last = line;
    }
}

fn line(progress: &Progress, passed: Duration, is_watched: bool) -> String {
    let Progress { from, upto, counts, waits } = progress;
    let letters = counts.letters.max(1);
    let mut line = if is_watched { format!("{} ", drawn(*upto, letters)) } else { String::new() };
    line.push_str(&format!("{upto}/{} {}%", counts.letters, 100 * upto / letters));
    match waits {
        Some(what) => line.push_str(&format!("  {what}")),
        None => line.push_str(&speed(upto - from, counts.letters.saturating_sub(*upto), passed)),
    }
    if *counts != (Counts { letters: counts.letters, ..Counts::default() }) {
        line.push_str(&format!("  {}", words::counts(counts)));
    }
    line
}

fn drawn(upto: u64, letters: u64) -> String {
    let full = (WIDTH * upto / letters).min(WIDTH);
    let (full, empty) = (usize::try_from(full).unwrap_or(0), usize::try_from(WIDTH - full).unwrap_or(0));
    format!("[{}{}]", "#".repeat(full), "-".repeat(empty))
}

/// How fast it is, and how long what is left takes at that.
fn speed(sent: u64, left: u64, passed: Duration) -> String {
    let seconds = passed.as_secs_f64();
    if sent == 0 || seconds <= 0.0 {
        return String::new();
    }
    // Counts are far below what a float holds exactly.
    let rate = sent as f64 / seconds;
    let eta = Duration::try_from_secs_f64(left as f64 / rate).unwrap_or(Duration::MAX);
    format!("  {rate:.0}/s  {} left", human::rough(eta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_how_far_how_fast_and_how_long() {
        let counts = Counts { letters: 1_000, sent: 480, handled: 400, buried: 3, ..Counts::default() };
        let progress = Progress { from: 0, upto: 500, counts, waits: None };
        let shown = line(&progress, Duration::from_secs(5), true);
        assert_eq!(
            shown,
            "[############------------] 500/1000 50%  100/s  5s left  480 sent, 400 succeeded, 3 failed again, 77 not heard of yet"
        );
        let waits = Progress {
            waits: Some("paused by bob".to_owned()),
            counts: Counts { letters: 1_000, ..Counts::default() },
            ..progress
        };
        assert_eq!(line(&waits, Duration::from_secs(5), false), "500/1000 50%  paused by bob");
    }
}
