//! `redrive dlq groups mute|resolve|open`: what is to be thought of failure groups, on every machine.

use std::io;

use clap::{Args, Subcommand};
use redrive::Clock;
use redrive_letters::groups::{self, Said};
use redrive_letters::{Fingerprint, Group, Query, Wish, journal, told};

use super::super::asking;
use super::super::place::{Opened, Place};
use crate::exit::Exit;
use crate::screen;

#[derive(Subcommand)]
pub(super) enum Change {
    /// Nobody wants to hear of these groups: redrive status no longer tells of them
    Mute(Changed),
    /// The cause is gone: a letter that comes later makes the group `regressed`
    Resolve(Changed),
    /// Somebody should look again, whatever was said before
    Open(Changed),
}

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq groups mute f1-3k9x0m2v7a1c --reason 'known, fixed next week'
  redrive dlq groups resolve f1-3k9x0m2v7a1c f1-kz56nyes2xse --reason 'fixed in 1.4' --dry-run

It is said of the group; its letters stay as they are. redrive dlq resolve --group ID resolves the letters, and
redrive dlq replay --group ID sends them back.
Exit codes: 0 done, 1 failed, 3 some groups are not there, 4 none is.")]
pub(super) struct Changed {
    /// The failure groups, as `redrive dlq groups` shows them
    #[arg(value_name = "ID", required = true)]
    ids: Vec<Fingerprint>,
    #[command(flatten)]
    place: Place,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    /// Why; it is written into the journal
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    reason: String,
}

impl Change {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let (wish, changed) = match self {
            Self::Mute(changed) => (Wish::Muted, changed),
            Self::Resolve(changed) => (Wish::Resolved, changed),
            Self::Open(changed) => (Wish::Open, changed),
        };
        Ok(match changed.go(wish).await {
            Ok(exit) => exit?,
            Err(exit) => exit,
        })
    }
}

impl Changed {
    async fn go(&self, wish: Wish) -> Result<io::Result<Exit>, Exit> {
        asking::reason(!self.dry_run, &self.reason)?;
        let Opened { reached, mut index, now, .. } = self.place.open().await?;
        let query = Query { failures: self.ids.clone(), ..Query::default() };
        let found = index.groups(&query, now).map_err(|error| reached.failed(&error))?;
        drop(index);
        let missing = self.ids.iter().filter(|id| found.iter().all(|group| group.failure != **id));
        let missing: Vec<String> = missing.map(ToString::to_string).collect();
        if !missing.is_empty() {
            screen::say(&format!(
                "error: no letter is of {}\nhelp: redrive dlq groups --all lists the groups there are",
                missing.join(", ")
            ));
        }
        if found.is_empty() {
            return Err(Exit::NothingMatched);
        }
        if !self.dry_run {
            let said = Said { wish, by: journal::writer(), why: self.reason.clone() };
            groups::say(&reached.settings, &Clock::system(), &said, &found).await.map_err(|error| {
                screen::say(&format!("error: {}", told(&error)));
                Exit::Failed
            })?;
        }
        let verb = if self.dry_run { "would be" } else { "is" };
        let line = |group: &Group| {
            format!("{} {verb} {}, was {}\n", group.failure, wish.name(), group.standing.name())
        };
        let exit = if missing.is_empty() { Exit::Ok } else { Exit::Partly };
        Ok(screen::lines(found.iter().map(line)).map(|()| exit))
    }
}
