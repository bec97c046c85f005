//! `redrive dlq purge`: letters deleted, as far as Kafka deletes.

use std::io;

use clap::Args;
use redrive::{Clock, Settings};
use redrive_core::Origin;
use redrive_letters::cleanup::{self, Purge};
use redrive_letters::jobs::{Kind, Options, Whereto};
use redrive_letters::replay::Wanted;
use redrive_letters::{Index, Query, State, journal};

use super::asking;
use super::choice::{self, Choice};
use super::deletable;
use super::filter::Filter;
use super::place::{Opened, Place, Reached};
use crate::commands::replay::failed;
use crate::exit::Exit;
use crate::{human, screen};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq purge --all --before 30d --dry-run          what would really be deleted
  redrive dlq purge --up-to orders.billing.dlq/3/1042 --reason 'moved to the archive' --yes

Kafka deletes the beginning of a partition and nothing else. By a question, only letters are deleted before which
nothing lies that was not asked for; the others are told and stay. Open letters are meant unless --state says otherwise. With --up-to, everything below the offset goes,
whatever it is.
Exit codes: 0 done, 1 failed, 3 some are left, 4 nothing matched.")]
pub(super) struct PurgeCommand {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    place: Place,
    /// Everything below this offset of a letter topic: topic/partition/offset
    #[arg(long, value_name = "OFFSET", conflicts_with_all = ["ids", "all"], conflicts_with_all = Filter::NAMES)]
    up_to: Option<Origin>,
    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Why; it is written into the journal
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Do not ask first
    #[arg(short, long)]
    yes: bool,
}

impl PurgeCommand {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        Ok(match self.go().await {
            Ok(exit) | Err(exit) => exit,
        })
    }

    async fn go(&self) -> Result<Exit, Exit> {
        let query = self.choice.query(&[State::Open], self.up_to.is_some())?;
        asking::reason(!self.dry_run, &self.reason)?;
        let Opened { reached, mut index, topics, .. } = self.place.open().await?;
        if let Some(below) = &self.up_to {
            deletable::topics(&reached, &topics, [&below.topic]).await?;
            deletable::offset(&reached, below).await?;
        }
        let settings = reached.settings.clone();
        let worded = self.place.worded(&query);
        let all_there = self.choice.are_all_there(&reached, &mut index)?;
        let asked = choice::answerable(&reached, &mut index, &query, &worded).await?;
        let (purge, open) = self.plan(&reached, &mut index, &asked)?;
        drop(index);
        if purge.letters() == 0 && self.up_to.is_none() {
            if purge.stay.is_empty() {
                screen::say(&format!("no letter matches: {worded}"));
            }
            self.say(&purge, open, "would be");
            return Err(Exit::NothingMatched);
        }
        deletable::topics(&reached, &topics, purge.cuts.iter().map(|cut| &cut.below.topic)).await?;
        self.say(&purge, open, if self.dry_run { "would be" } else { "will be" });
        let letters: Vec<Origin> = purge.cuts.iter().flat_map(|cut| cut.asked.iter().cloned()).collect();
        let held = cleanup::about_to_be_sent(&settings, &letters).await;
        let held = held.map_err(|error| failed(&error, &self.place.file.name()))?;
        if held > 0 {
            screen::say(&format!(
                "error: a replay is about to send {held} of them, so nothing is deleted\nhelp: redrive replay list shows it; cancel it first"
            ));
            return Err(Exit::Failed);
        }
        let exit = if purge.stay.is_empty() && all_there { Exit::Ok } else { Exit::Partly };
        if self.dry_run {
            return Ok(exit);
        }
        let question = format!("delete {} for good", human::count(purge.letters(), "letter", "letters"));
        if !asking::is_agreed(self.yes, &question).map_err(|_| Exit::Failed)? {
            return Err(Exit::Usage);
        }
        let selection = self.up_to.as_ref().map_or(worded, |at| format!("up-to={at}"));
        let count = [("letters", purge.letters())];
        asking::write_down(&settings, "purge", &selection, &count, &self.reason).await?;
        self.delete(&settings, &purge, &letters, selection).await?;
        Ok(exit)
    }

    /// What goes, and how many of it nobody has dealt with.
    fn plan(&self, reached: &Reached, index: &mut Index, query: &Query) -> Result<(Purge, u64), Exit> {
        let failed = |error| reached.failed(&error);
        let all = index.select(&Query::default()).map_err(failed)?;
        let purge = match &self.up_to {
            Some(below) => Purge::below(below, &all),
            None => Purge::of(&index.select(query).map_err(failed)?, &all),
        };
        let open = index.select(&Query { states: vec![State::Open], ..Query::default() }).map_err(failed)?;
        let goes: std::collections::HashSet<&Origin> = purge.cuts.iter().flat_map(|cut| &cut.asked).collect();
        let open = open.iter().filter(|letter| goes.contains(letter)).count() as u64;
        Ok((purge, open))
    }

    fn say(&self, purge: &Purge, open: u64, verb: &str) {
        for cut in &purge.cuts {
            let letters = human::count(cut.asked.len() as u64, "letter", "letters");
            screen::say(&format!("everything below {} {verb} deleted: {letters}", cut.below));
        }
        if open > 0 {
            screen::say(&format!("warning: {open} of them are open: nobody has dealt with them"));
        }
        if !purge.stay.is_empty() {
            let stay = human::count(purge.stay.len() as u64, "letter", "letters");
            screen::say(&format!(
                "{stay} that match stay: letters lie before them that do not match, and Kafka deletes only beginnings\nhelp: resolve those first, or name an offset with --up-to"
            ));
        }
    }

    async fn delete(
        &self,
        settings: &Settings,
        purge: &Purge,
        letters: &[Origin],
        selection: String,
    ) -> Result<(), Exit> {
        let wanted = Wanted {
            kind: Kind::Purge,
            by: journal::writer(),
            reason: self.reason.clone(),
            query: selection,
            to: Whereto::Usual,
            options: Options::default(),
            lanes: None,
        };
        if !letters.is_empty() {
            let done = cleanup::carry_out(settings, &Clock::system(), &wanted, letters).await;
            let done = done.map_err(|error| failed(&error, &self.place.file.name()))?;
            if done.is_none_or(|done| done.held > 0) {
                screen::say(
                    "error: a replay is about to send some of them\nhelp: redrive replay list shows it; cancel it first",
                );
                return Err(Exit::Failed);
            }
        }
        for cut in &purge.cuts {
            let begins = cleanup::delete_below(settings, cut).await;
            let begins = begins.map_err(|error| failed(&error, &self.place.file.name()))?;
            let topic = &cut.below.topic;
            let told = format!("partition {} of {topic} begins at {begins} now\n", cut.below.partition);
            screen::data(&told).map_err(|_| Exit::Failed)?;
        }
        Ok(())
    }
}
