//! `redrive dlq resolve`: letters that need nothing more.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use clap::Args;
use redrive::{Clock, Settings};
use redrive_core::{Origin, Timestamp, Topic};
use redrive_letters::cleanup::{self, Followers, Sources};
use redrive_letters::jobs::{Kind, Options, Whereto};
use redrive_letters::journal;
use redrive_letters::replay::{Candidate, Wanted};
use redrive_letters::{Query, State};

use super::asking;
use super::choice::{self, Choice};
use super::place::{Opened, Place};
use crate::commands::replay::{failed, shelves};
use crate::exit::Exit;
use crate::when::length;
use crate::{human, screen};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq resolve orders.billing.dlq/3/1042 --reason 'booked by hand'
  redrive dlq resolve --day 2026-11-01 --topic orders --reason 'refunded' --yes
  redrive dlq resolve --group f1-k3f9q2 --dry-run
  redrive dlq resolve --key customer-7 --tombstone-source --reason 'closed' --dry-run

A resolved letter is no longer open; Kafka keeps it as long as it keeps letters. On a compacted letter topic, whose
letters are keyed by their origins, a tombstone is written for each, and Kafka removes them. A lane that a letter
closed is opened: what waits behind it is handled, or with --bury-followers becomes letters, too.
Exit codes: 0 done, 1 failed, 3 some are left, 4 nothing matched.")]
pub(super) struct Resolve {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    place: Place,
    /// Only letters of this day, in UTC: 2026-11-01
    #[arg(long, value_name = "DATE", value_parser = day, conflicts_with_all = ["since", "after", "before"])]
    day: Option<(Timestamp, Timestamp)>,
    /// What waits behind the letters becomes letters, too, in place of being handled
    #[arg(long)]
    bury_followers: bool,
    /// Write tombstones into the topics that the letters came from, too, where those are compacted: every consumer
    /// sees the keys as deleted. Not for a key that a later record has
    #[arg(long)]
    tombstone_source: bool,
    /// Only say what would happen, and to how many
    #[arg(long)]
    dry_run: bool,
    /// Why; it is written into the journal. More than single letters want it
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Do not ask first
    #[arg(short, long)]
    yes: bool,
    /// How long to wait for the workers to open lanes
    #[arg(long, value_name = "DURATION", value_parser = length, default_value = "10s")]
    wait: Duration,
}

/// From midnight to midnight.
fn day(text: &str) -> Result<(Timestamp, Timestamp), String> {
    let bad = |_| format!("`{text}` is not a day; write 2026-11-01");
    let begins: jiff::Timestamp = format!("{text}T00:00:00Z").parse().map_err(bad)?;
    let begins = Timestamp::from_millis(begins.as_millisecond());
    Ok((begins, begins.plus(Duration::from_secs(86_400))))
}

impl Resolve {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        Ok(match self.go().await {
            Ok(exit) => exit?,
            Err(exit) => exit,
        })
    }

    fn query(&self) -> Result<Query, Exit> {
        let mut query = self.choice.query(&[State::Open], self.day.is_some())?;
        if let Some((after, before)) = self.day {
            (query.after, query.before) = (Some(after), Some(before));
        }
        Ok(query)
    }

    async fn go(&self) -> Result<io::Result<Exit>, Exit> {
        let query = self.query()?;
        asking::reason(self.choice.is_bulk() && !self.dry_run, &self.reason)?;
        let Opened { reached, mut index, .. } = self.place.open().await?;
        let (settings, config) = (reached.settings.clone(), reached.config.as_ref());
        let worded = self.place.worded(&query);
        let all_there = self.choice.are_all_there(&reached, &mut index)?;
        let asked = choice::answerable(&reached, &mut index, &query, &worded).await?;
        let letters = index.candidates_of(&asked).map_err(|error| reached.failed(&error))?;
        drop(index);
        if letters.is_empty() {
            screen::say(&format!("no letter matches: {worded}"));
            return Err(Exit::NothingMatched);
        }
        let counted = human::count(letters.len() as u64, "letter", "letters");
        let sources = self.sources(&settings, &letters).await?;
        if self.dry_run {
            let exit = if all_there { Exit::Ok } else { Exit::Partly };
            return Ok(screen::data(&format!("{counted} would be resolved\n")).map(|()| exit));
        }
        let question = format!("resolve {counted}");
        if !asking::is_agreed(self.yes || !self.choice.is_bulk(), &question).map_err(|_| Exit::Failed)? {
            return Err(Exit::Usage);
        }
        let count =
            [("letters", letters.len() as u64), ("source-tombstones", sources.tombstones.len() as u64)];
        asking::write_down(&settings, "resolve", &worded, &count, &self.reason).await?;
        let wanted = Wanted {
            kind: Kind::Resolve,
            by: journal::writer(),
            reason: self.reason.clone(),
            query: worded,
            to: Whereto::Usual,
            options: Options::default(),
            lanes: None,
        };
        let places: Vec<Origin> = letters.iter().map(|letter| letter.at.clone()).collect();
        let done = cleanup::carry_out(&settings, &Clock::system(), &wanted, &places).await;
        let Some(done) = done.map_err(|error| failed(&error, &self.place.file.name()))? else {
            screen::say("a replay is about to send all of them\nhelp: redrive replay list shows it");
            return Err(Exit::NothingMatched);
        };
        let mut told = format!("{} resolved", human::count(done.letters, "letter", "letters"));
        if done.tombstones > 0 {
            told.push_str(&format!(", {} with a tombstone", done.tombstones));
        }
        if done.held > 0 {
            told.push_str(&format!(", {} left to the replay that is about to send them", done.held));
        }
        screen::data(&format!("{told}\n")).map_err(|_| Exit::Failed)?;
        if done.without > 0 {
            let letters = human::count(done.without, "letter got", "letters got");
            screen::say(&format!(
                "note: {letters} no tombstone though the topic is compacted: not filed under their origins, so that one would remove others with them; Kafka keeps them"
            ));
        }
        if !sources.tombstones.is_empty() {
            sources.write(&settings).await.map_err(|error| failed(&error, &self.place.file.name()))?;
            let written = human::count(sources.tombstones.len() as u64, "tombstone", "tombstones");
            screen::data(&format!("{written} written to their sources\n")).map_err(|_| Exit::Failed)?;
        }
        let all_open = self.open(&settings, shelves(config), &letters).await;
        Ok(Ok(if done.held > 0 || !all_open || !all_there { Exit::Partly } else { Exit::Ok }))
    }

    /// The tombstones that are asked for, told before they are written.
    async fn sources(&self, settings: &Settings, letters: &[Candidate]) -> Result<Sources, Exit> {
        if !self.tombstone_source {
            return Ok(Sources::default());
        }
        let sources = Sources::of(settings, letters).await;
        let sources = sources.map_err(|error| failed(&error, &self.place.file.name()))?;
        for (topic, count) in sources.by_topic() {
            let tombstones = human::count(count, "tombstone goes", "tombstones go");
            screen::say(&format!(
                "warning: {tombstones} into {topic}: everybody who consumes it sees those keys as deleted, for good"
            ));
        }
        for (why, count) in &sources.not {
            let records = human::count(*count, "record gets", "records get");
            screen::say(&format!("{records} no tombstone: {why}"));
        }
        Ok(sources)
    }

    /// Opens the lanes that the letters closed; whether all are open, or are to be.
    async fn open(
        &self,
        settings: &Settings,
        named: BTreeMap<(Topic, String), Topic>,
        letters: &[Candidate],
    ) -> bool {
        let followers = if self.bury_followers { Followers::Bury } else { Followers::Release };
        let (clock, by) = (Clock::system(), journal::writer());
        let who = (by.as_str(), self.reason.as_str());
        let opened = cleanup::open_all((settings, &clock), named, letters, followers, who, self.wait).await;
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                failed(&error, &self.place.file.name());
                return false;
            }
        };
        let mut all_open = true;
        for (shelf, opened) in &opened {
            match opened {
                Ok(opened) => {
                    for (origin, is_good) in opened.all() {
                        all_open &= is_good;
                        let word = if is_good { "done" } else { "not done" };
                        screen::say(&format!("lane of {origin} on {shelf}: {word}"));
                    }
                }
                Err(error) => {
                    screen::say(&format!("error: {}", screen::told(error)));
                    all_open = false;
                }
            }
        }
        all_open
    }
}
