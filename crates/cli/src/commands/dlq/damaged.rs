//! `redrive dlq damaged`: the offsets of records that became letters, for whoever reads a topic from the start.

use std::io;

use clap::Args;
use redrive_letters::State;

use super::choice::{self, Choice};
use super::place::{Opened, Place};

use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq damaged --topic orders --group billing > damaged.ndjson

A line of JSON for each offset of the source that a letter says it came from, in order, each once.")]
pub(super) struct DamagedCommand {
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    place: Place,
}

impl DamagedCommand {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        Ok(match self.go().await {
            Ok(exit) => exit?,
            Err(exit) => exit,
        })
    }

    async fn go(&self) -> Result<io::Result<Exit>, Exit> {
        let query = self.choice.query(&State::ALL, true)?;
        let Opened { reached, mut index, .. } = self.place.open().await?;
        let asked = choice::answerable(&reached, &mut index, &query, &self.place.worded(&query)).await?;
        let damaged = index.damaged(&asked).map_err(|error| reached.failed(&error))?;
        if damaged.is_empty() {
            screen::say(&format!("no letter matches: {query}"));
            return Err(Exit::NothingMatched);
        }
        let lines = damaged.iter().filter_map(|one| serde_json::to_string(one).ok());
        Ok(screen::lines(lines.map(|line| format!("{line}\n"))).map(|()| Exit::Ok))
    }
}
