//! `redrive dlq erase --key K`: what is kept of a person, removed as far as Kafka removes, and the rest told.

use std::collections::BTreeSet;
use std::io;

use clap::Args;
use redrive::{Clock, Settings};
use redrive_core::{Origin, Timestamp, Topic};
use redrive_kafka::{Admin, TopicState};
use redrive_letters::cleanup::{self, Erasure, Followers, Stays};
use redrive_letters::jobs::{Kind, Options, Whereto};
use redrive_letters::replay::{Candidate, Wanted};
use redrive_letters::{Query, journal};

use super::asking;
use super::deletable;
use super::place::{Opened, Place};
use super::shelved::{self, Waiting};
use crate::commands::replay;
use crate::exit::Exit;
use crate::{bytes_text, cluster, human, screen, when};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq erase --key customer-7 --dry-run
  redrive dlq erase --key customer-7 --reason 'asked by mail of 2026-11-01' --yes

On compacted letter topics each letter that is keyed by its origin gets a tombstone. Elsewhere Kafka deletes only the
beginning of a partition: letters go before which nothing else lies. For each of the others it is said where it is
and until when Kafka keeps it; it stays in the index, too. What waits on shelves is cancelled first: its worker makes a
letter of it, which is erased with the others; without a worker it stays until one comes, and that is told. The topics
that were consumed are not changed: it is told until when they keep their records, and files of redrive dlq export are
not known here. The key itself is written nowhere: the journal holds its SHA-256.
Exit codes: 0 nothing is left, 1 failed, 3 something is left, 4 nothing matched.")]
pub(super) struct Erase {
    /// The key, as text or as 0x and hexadecimal digits
    #[arg(short, long)]
    key: String,
    #[command(flatten)]
    place: Place,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    /// Why; it is written into the journal
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Do not ask first
    #[arg(short, long)]
    yes: bool,
}

impl Erase {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        Ok(match self.go().await {
            Ok(exit) | Err(exit) => exit,
        })
    }

    async fn go(&self) -> Result<Exit, Exit> {
        asking::reason(!self.dry_run, &self.reason)?;
        let keys = bytes_text::named(&self.key);
        let query = Query { keys: keys.clone(), ..Query::default() };
        let mut opened = self.place.open().await?;
        let settings = opened.reached.settings.clone();
        let mut letters = self.letters(&mut opened, &query)?;
        let waiting = shelved::waiting(&settings, &self.place, &keys).await?;
        if letters.is_empty() && waiting.is_empty() {
            screen::say("nothing is kept under that key in letters or on shelves");
            return Err(Exit::NothingMatched);
        }
        let mut erasure = self.plan(&mut opened, &letters).await?;
        let counted = self.counted(&letters, &waiting);
        screen::say(&format!("{counted} of that key"));
        if self.dry_run {
            tell(&erasure, "would get", "would be deleted");
            shelved::tell(&waiting);
            self.tell_sources(&settings, &letters, &waiting).await?;
            let is_rest = self.tell_rest(&settings, &erasure.stay).await?;
            return Ok(if is_rest { Exit::Partly } else { Exit::Ok });
        }
        if !asking::is_agreed(self.yes, &format!("erase {counted}")).map_err(|_| Exit::Failed)? {
            return Err(Exit::Usage);
        }
        let selection = format!("key-sha256={}", journal::sha256(self.key.as_bytes()));
        let (goes, waits) = (erasure.goes().len() as u64, shelved::count(&waiting));
        let count = [("letters", goes), ("waiting", waits), ("left", erasure.stay.len() as u64)];
        asking::write_down(&settings, "erase", &selection, &count, &self.reason).await?;
        let mut is_rest = false;
        if !waiting.is_empty() {
            // What waits becomes letters first, which are erased with the others.
            is_rest |= !shelved::cancel(&settings, &self.place, &keys, &waiting, &self.reason).await?;
            opened = self.place.open().await?;
            letters = self.letters(&mut opened, &query)?;
            is_rest |= !shelved::are_letters(&waiting, &letters);
            erasure = self.plan(&mut opened, &letters).await?;
        }
        let goes = erasure.goes();
        self.erase(&settings, &erasure, &goes, selection).await?;
        tell(&erasure, "have", "deleted");
        let gone: BTreeSet<&Origin> = goes.iter().collect();
        let erased: Vec<Candidate> =
            letters.iter().filter(|letter| gone.contains(&letter.at)).cloned().collect();
        opened.index.erase(&goes).map_err(|error| opened.reached.failed(&error))?;
        is_rest |= !self.open_lanes(&settings, opened.reached.config.as_ref(), &erased).await?;
        self.tell_sources(&settings, &letters, &waiting).await?;
        is_rest |= self.tell_rest(&settings, &erasure.stay).await?;
        Ok(if is_rest { Exit::Partly } else { Exit::Ok })
    }

    fn letters(&self, opened: &mut Opened, query: &Query) -> Result<Vec<Candidate>, Exit> {
        let found = opened.index.candidates_of(query);
        found.map_err(|error| opened.reached.failed(&error))
    }

    fn counted(&self, letters: &[Candidate], waiting: &Waiting) -> String {
        let counted = human::count(letters.len() as u64, "letter", "letters");
        match shelved::count(waiting) {
            0 => counted,
            waits => format!("{counted} and {}", human::count(waits, "waiting record", "waiting records")),
        }
    }

    /// What erasing these letters comes to.
    async fn plan(&self, opened: &mut Opened, letters: &[Candidate]) -> Result<Erasure, Exit> {
        let places: Vec<Origin> = letters.iter().map(|letter| letter.at.clone()).collect();
        deletable::topics(&opened.reached, &opened.topics, places.iter().map(|letter| &letter.topic)).await?;
        let all = opened.index.select(&Query::default());
        let all = all.map_err(|error| opened.reached.failed(&error))?;
        let erasure = Erasure::plan(&opened.reached.settings, &places, &all).await;
        erasure.map_err(|error| replay::failed(&error, &self.place.file.name()))
    }

    /// Opens the lanes that letters closed which are gone now; whether all are open, or are to be.
    async fn open_lanes(
        &self,
        settings: &Settings,
        config: Option<&redrive_config::Config>,
        letters: &[Candidate],
    ) -> Result<bool, Exit> {
        let (clock, by) = (Clock::system(), journal::writer());
        let who = (by.as_str(), self.reason.as_str());
        let named = replay::shelves(config);
        let opened =
            cleanup::open_all((settings, &clock), named, letters, Followers::Release, who, shelved::WAIT)
                .await;
        let opened = opened.map_err(|error| replay::failed(&error, &self.place.file.name()))?;
        let mut all_open = true;
        for (shelf, opened) in &opened {
            match opened {
                Ok(opened) => {
                    for (origin, is_good) in opened.all().filter(|(_, is_good)| !is_good) {
                        all_open &= is_good;
                        screen::say(&format!("the lane that {origin} closed on {shelf} is not open yet"));
                    }
                }
                Err(error) => {
                    screen::say(&format!("error: {}", screen::told(error)));
                    all_open = false;
                }
            }
        }
        Ok(all_open)
    }

    /// Removes what goes.
    async fn erase(
        &self,
        settings: &Settings,
        erasure: &Erasure,
        goes: &[Origin],
        selection: String,
    ) -> Result<(), Exit> {
        let failed = |error| replay::failed(&error, &self.place.file.name());
        if goes.is_empty() {
            return Ok(());
        }
        let wanted = Wanted {
            kind: Kind::Erase,
            by: journal::writer(),
            reason: self.reason.clone(),
            query: selection,
            to: Whereto::Usual,
            options: Options::default(),
            lanes: None,
        };
        let done = cleanup::carry_out(settings, &Clock::system(), &wanted, goes).await.map_err(failed)?;
        if done.is_none_or(|done| done.held > 0) {
            screen::say(
                "error: a replay has just begun to send some of them\nhelp: redrive replay list shows it; erase them again when it has ended",
            );
            return Err(Exit::Failed);
        }
        for cut in &erasure.purge.cuts {
            cleanup::delete_below(settings, cut).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Says what Kafka keeps of the records themselves, where they were consumed, and of what waited.
    async fn tell_sources(
        &self,
        settings: &Settings,
        letters: &[Candidate],
        waiting: &Waiting,
    ) -> Result<(), Exit> {
        let failed = |error: redrive_kafka::Error| cluster::failed(&error, &self.place.file.name());
        let waits = waiting.values().flatten().map(|origin| origin.topic.clone());
        let origins = letters.iter().filter_map(|letter| Some(letter.origin.as_ref()?.topic.clone()));
        let sources: BTreeSet<Topic> = origins.chain(waits).collect();
        let sources: Vec<Topic> = sources.into_iter().collect();
        let found = Admin::new(settings).map_err(failed)?.describe(&sources).await.map_err(failed)?;
        let now = Clock::system().now().wall;
        for (topic, state) in &found {
            screen::say(&format!(
                "note: {topic} has what was produced under that key, {}; it is not changed here",
                kept(state, now)
            ));
        }
        for shelf in waiting.keys() {
            screen::say(&format!(
                "note: the log of {shelf} has what waited until its worker trims it, when most of it is done"
            ));
        }
        Ok(())
    }

    /// Says of each letter that stays where it is and until when Kafka keeps it; whether there are any.
    async fn tell_rest(&self, settings: &Settings, stay: &[(Origin, Stays)]) -> Result<bool, Exit> {
        let failed = |error: redrive_kafka::Error| cluster::failed(&error, &self.place.file.name());
        let topics: BTreeSet<Topic> = stay.iter().map(|(letter, _)| letter.topic.clone()).collect();
        let topics: Vec<Topic> = topics.into_iter().collect();
        let found = Admin::new(settings).map_err(failed)?.describe(&topics).await.map_err(failed)?;
        let now = Clock::system().now().wall;
        for (letter, why) in stay {
            let until = found
                .get(&letter.topic)
                .map_or("as long as it is set up to".to_owned(), |state| kept(state, now));
            screen::say(&format!("{letter} stays, {until}: {why}"));
        }
        let has = |which: Stays| stay.iter().any(|(_, why)| *why == which);
        if has(Stays::Behind) {
            screen::say("help: redrive dlq purge --up-to deletes letters with those that lie before them");
        }
        if has(Stays::OtherKey) {
            screen::say(
                "help: a record without a value under the letter's own key removes it, and every other of that key and topic",
            );
        }
        if has(Stays::Held) {
            screen::say("help: redrive replay list shows the replay; erase them again when it has ended");
        }
        Ok(!stay.is_empty())
    }
}

/// Says what goes.
fn tell(erasure: &Erasure, get: &str, deleted: &str) {
    let tombstones = erasure.tombstones.len();
    if tombstones > 0 {
        screen::say(&format!("{tombstones} {get} a tombstone: they are gone when Kafka compacts the topic"));
    }
    for cut in &erasure.purge.cuts {
        screen::say(&format!("{} {deleted} below {}", cut.asked.len(), cut.below));
    }
}

/// Until when Kafka keeps what is in a topic.
fn kept(topic: &TopicState, now: Timestamp) -> String {
    let setting = |name: &str| topic.settings.get(name).map(|one| one.value.as_str());
    let is_deleted = setting("cleanup.policy").is_none_or(|policy| policy.contains("delete"));
    match setting("retention.ms").and_then(|value| value.parse::<i64>().ok()) {
        Some(millis) if millis >= 0 && is_deleted => {
            let latest = Timestamp::from_millis(now.millis().saturating_add(millis));
            format!("until {} at the latest", when::shown(latest))
        }
        _ => "for ever, as its topic is set up".to_owned(),
    }
}
