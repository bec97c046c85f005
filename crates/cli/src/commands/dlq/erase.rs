//! `redrive dlq erase --key K`: what is kept of a person, removed as far as Kafka removes, and the rest told.

use std::collections::BTreeSet;
use std::io;

use clap::Args;
use redrive::{Clock, Settings};
use redrive_core::{Origin, Timestamp, Topic};
use redrive_kafka::{Admin, TopicState};
use redrive_letters::cleanup::{self, Erased, Erasure, Followers, Stays};
use redrive_letters::jobs::{Followed, Kind, Options, Whereto};
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
  redrive dlq erase --key customer-7 --rewrite --dry-run
  redrive dlq erase --resume --reason 'the machine was restarted' --yes

On compacted letter topics each letter that is keyed by its origin gets a tombstone. Elsewhere Kafka deletes only the
beginning of a partition: letters go before which nothing else lies. With --rewrite the others that lie before are
written again first, unchanged and in their order, behind all that is there: they have new places then, and whoever
consumes the letter topic sees them again; what became of each is known as before. Without it, each letter that Kafka
keeps is told with its place and until when. No command shows it any more in either case. What waits on shelves is cancelled first: its worker makes a
letter of it, which is erased with the others; without a worker it stays until one comes, and that is told. The topics
that were consumed are not changed: it is told until when they keep their records, and files of redrive dlq export are
not known here. The key itself is written nowhere: the journal holds its SHA-256.
Exit codes: 0 nothing is left, 1 failed, 3 something is left, 4 nothing matched.")]
pub(super) struct Erase {
    /// The key, as text or as 0x and hexadecimal digits
    #[arg(short, long, required_unless_present = "resume", default_value = "", hide_default_value = true)]
    key: String,
    /// Write letters again that lie before those of the key, so that Kafka can delete these
    #[arg(long)]
    rewrite: bool,
    /// Finish what was begun before and was interrupted
    #[arg(long, conflicts_with_all = ["key", "rewrite"])]
    resume: bool,
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
        if self.resume {
            return self.finish().await;
        }
        let keys = bytes_text::named(&self.key);
        let query = Query { keys: keys.clone(), ..Query::default() };
        let mut opened = self.place.open().await?;
        let settings = opened.reached.settings.clone();
        let mut letters = self.letters(&mut opened, &query)?;
        let waiting = shelved::waiting(&settings, &self.place, &keys).await?;
        let selection = format!("key-sha256={}", journal::sha256(self.key.as_bytes()));
        let before = self.still_there(&opened, &selection).await?;
        self.tell_unfinished(&settings).await?;
        if letters.is_empty() && waiting.is_empty() && before.is_empty() {
            screen::say("nothing is kept under that key in letters or on shelves");
            return Err(Exit::NothingMatched);
        }
        let mut plan = self.plan(&mut opened, &letters, &before).await?;
        let counted = self.counted(&letters, &waiting);
        screen::say(&format!("{counted} of that key"));
        if !before.is_empty() {
            let count = human::count(before.len() as u64, "letter", "letters");
            screen::say(&format!("{count} of that key erased before, which Kafka still has"));
        }
        if self.dry_run {
            let erasure = &plan.erasure;
            tell(erasure, "would get", "would be deleted", "would be written again");
            shelved::tell(&waiting);
            self.tell_sources(&settings, &letters, &waiting).await?;
            let is_rest = self.tell_rest(&settings, &erasure.stay).await?;
            return Ok(if is_rest { Exit::Partly } else { Exit::Ok });
        }
        if !asking::is_agreed(self.yes, &format!("erase {counted}")).map_err(|_| Exit::Failed)? {
            return Err(Exit::Usage);
        }
        let (goes, waits) = (plan.erasure.goes().len() as u64, shelved::count(&waiting));
        let moved = plan.erasure.rewrites.iter().map(|rewrite| rewrite.moved).sum();
        let left = plan.erasure.stay.len() as u64;
        let count = [("letters", goes), ("waiting", waits), ("moved", moved), ("left", left)];
        asking::write_down(&settings, "erase", &selection, &count, &self.reason).await?;
        let mut is_rest = false;
        if !waiting.is_empty() {
            // What waits becomes letters first, which are erased with the others.
            is_rest |= !shelved::cancel(&settings, &self.place, &keys, &waiting, &self.reason).await?;
            opened = self.place.open().await?;
            letters = self.letters(&mut opened, &query)?;
            is_rest |= !shelved::are_letters(&waiting, &letters);
            plan = self.plan(&mut opened, &letters, &before).await?;
        }
        let erasure = &plan.erasure;
        is_rest |= !self.erase(&settings, &plan, selection).await?;
        tell(erasure, "have", "deleted", "written again");
        let gone: BTreeSet<Origin> = erasure.erased().into_iter().collect();
        let erased: Vec<Candidate> =
            letters.iter().filter(|letter| gone.contains(&letter.at)).cloned().collect();
        // What is said of them now leaves the index with them.
        opened = self.place.open().await?;
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

    /// What was erased before under this key and is still in Kafka, in the topics that are meant.
    async fn still_there(&self, opened: &Opened, selection: &str) -> Result<Vec<Origin>, Exit> {
        let there = cleanup::still_there(&opened.reached.settings, selection).await;
        let mut there = there.map_err(|error| replay::failed(&error, &self.place.file.name()))?;
        there.retain(|letter| opened.topics.contains(&letter.topic));
        Ok(there)
    }

    /// What erasing these letters comes to, and those of which it was said before.
    async fn plan(
        &self,
        opened: &mut Opened,
        letters: &[Candidate],
        before: &[Origin],
    ) -> Result<Plan, Exit> {
        let places: BTreeSet<Origin> =
            letters.iter().map(|letter| letter.at.clone()).chain(before.iter().cloned()).collect();
        let places: Vec<Origin> = places.into_iter().collect();
        deletable::topics(&opened.reached, &opened.topics, places.iter().map(|letter| &letter.topic)).await?;
        let all = opened.index.select(&Query::default());
        let all = all.map_err(|error| opened.reached.failed(&error))?;
        let erasure = Erasure::plan(&opened.reached.settings, &places, &all, self.rewrite).await;
        let erasure = erasure.map_err(|error| replay::failed(&error, &self.place.file.name()))?;
        let kept = all.into_iter().filter(|letter| places.binary_search(letter).is_err()).collect();
        Ok(Plan { erasure, kept })
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

    /// Removes what goes, and has all that is erased known as such; whether nothing is left to be done.
    async fn erase(&self, settings: &Settings, plan: &Plan, selection: String) -> Result<bool, Exit> {
        let failed = |error| replay::failed(&error, &self.place.file.name());
        let Plan { erasure, kept } = plan;
        if erasure.erased().is_empty() {
            return Ok(true);
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
        let done = cleanup::erase(settings, &Clock::system(), &wanted, erasure, kept).await;
        let Some(done) = done.map_err(failed)? else {
            screen::say(
                "error: a replay has just begun to send some of them\nhelp: redrive replay list shows it; erase them again when it has ended",
            );
            return Err(Exit::Failed);
        };
        Ok(is_over(&done))
    }

    /// Says which erasures were begun and are not over.
    async fn tell_unfinished(&self, settings: &Settings) -> Result<(), Exit> {
        let failed = |error: redrive_kafka::Error| cluster::failed(&error, &self.place.file.name());
        let state = Followed::read(settings).await.map_err(failed)?.state;
        for job in cleanup::unfinished(&state) {
            screen::say(&format!(
                "note: job {} of {}, begun by {}, erases letters and is not over\nhelp: redrive dlq erase --resume finishes it, unless a process does",
                job.id,
                when::shown(job.begun.time()),
                job.begun.by
            ));
        }
        Ok(())
    }

    /// Finishes what was interrupted.
    async fn finish(&self) -> Result<Exit, Exit> {
        let mut opened = self.place.open().await?;
        let settings = opened.reached.settings.clone();
        let failed = |error| replay::failed(&error, &self.place.file.name());
        let state = Followed::read(&settings).await.map_err(|error| failed(error.into()))?.state;
        let jobs = cleanup::unfinished(&state);
        if jobs.is_empty() {
            screen::say("no erasure is left to be finished");
            return Err(Exit::NothingMatched);
        }
        let kept = opened.index.select(&Query::default());
        let kept = kept.map_err(|error| opened.reached.failed(&error))?;
        let mut is_rest = false;
        for job in jobs {
            let count = human::count(job.begun.letters, "letter", "letters");
            screen::say(&format!("job {} of {}: {count}", job.id, when::shown(job.begun.time())));
            if self.dry_run {
                continue;
            }
            if !asking::is_agreed(self.yes, "finish it").map_err(|_| Exit::Failed)? {
                return Err(Exit::Usage);
            }
            let count = [("letters", job.begun.letters)];
            asking::write_down(&settings, "erase resume", &job.begun.query, &count, &self.reason).await?;
            let by = journal::writer();
            let done = cleanup::finish(&settings, &Clock::system(), &job.id, &by, &kept).await;
            let done = done.map_err(failed)?;
            screen::say(&format!("{} written again", human::count(done.moved, "letter", "letters")));
            is_rest |= !is_over(&done);
        }
        Ok(if is_rest { Exit::Partly } else { Exit::Ok })
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
            screen::say(
                "help: --rewrite writes those that lie before them again, and deletes them; redrive dlq purge --up-to deletes all",
            );
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

/// What erasing comes to, and the letters that are kept.
struct Plan {
    erasure: Erasure,
    kept: Vec<Origin>,
}

/// Whether nothing is left to be done; says what is.
fn is_over(done: &Erased) -> bool {
    for (below, other) in &done.left {
        screen::say(&format!(
            "nothing is deleted below {below} yet: job {other} is not over and has to do with letters that lie there\nhelp: redrive replay list --all shows it; redrive dlq erase --resume finishes job {} when it has ended",
            done.job
        ));
    }
    done.left.is_empty()
}

/// Says what goes.
fn tell(erasure: &Erasure, get: &str, deleted: &str, written: &str) {
    let tombstones = erasure.tombstones.len();
    if tombstones > 0 {
        screen::say(&format!("{tombstones} {get} a tombstone: they are gone when Kafka compacts the topic"));
    }
    for cut in &erasure.purge.cuts {
        screen::say(&format!("{} {deleted} below {}", cut.asked.len(), cut.below));
    }
    for rewrite in &erasure.rewrites {
        let others = human::count(rewrite.moved, "other letter", "other letters");
        screen::say(&format!(
            "{} {deleted} below {}, after {others} {written} behind all that is there",
            rewrite.erased.len(),
            rewrite.below
        ));
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
