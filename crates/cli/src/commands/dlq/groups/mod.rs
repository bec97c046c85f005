//! `redrive dlq groups`: failures by their cause.

mod change;

use std::io;

use clap::Args;
use redrive_letters::groups::HOUR;
use redrive_letters::{Group, export};
use serde_json::{Value, json};

use super::filter::Question;
use super::place::{Opened, Place};
use super::{Output, spark, words};
use crate::exit::Exit;
use crate::{bytes_text, human, output, screen, table, when};

/// How many bars a trend has.
const BARS: usize = 24;

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  redrive dlq groups                          what fails, the most open letters first
  redrive dlq groups --topic orders --since 1d
  redrive dlq groups --all -o json            those without open letters, too
  redrive dlq groups mute f1-3k9x0m2v7a1c --reason 'known, fixed next week'

Letters are of one group if their topic, consumer group, error type, message and causes are the same, whatever numbers,
ids, dates and quoted texts the message holds. STATE is new (seen first within a day), ongoing, muted, resolved (said so, or
all of its letters were resolved, or sent back and handled), or regressed (resolved and seen again). TREND is from the first to the last letter that is meant."
)]
pub(super) struct Groups {
    #[command(subcommand)]
    change: Option<change::Change>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    filter: Question,
    /// Those without open letters, too
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = output::limit)]
    limit: Option<usize>,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Groups {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        if let Some(change) = &self.change {
            return change.run().await;
        }
        let mut opened = match self.place.open().await {
            Ok(opened) => opened,
            Err(exit) => return Ok(exit),
        };
        let query = match self.filter.query(Vec::new(), &[], opened.now) {
            Ok(query) => query,
            Err(exit) => return Ok(exit),
        };
        let mut groups = match opened.index.groups(&query, opened.now) {
            Ok(groups) => groups,
            Err(error) => return Ok(opened.reached.failed(&error)),
        };
        let closed = groups.iter().filter(|group| group.open == 0).count();
        groups.retain(|group| self.all || group.open > 0);
        let total = groups.len();
        groups.truncate(self.limit.unwrap_or(usize::MAX));
        match self.output {
            Output::Table if groups.is_empty() => {}
            Output::Table => screen::lines(rows(&groups, &opened))?,
            Output::Json => {
                let groups: Vec<Value> = groups.iter().map(export::group).collect();
                screen::data(&format!("{:#}\n", json!({ "groups": groups })))?;
            }
            Output::Ndjson => {
                screen::lines(groups.iter().map(|group| format!("{}\n", export::group(group))))?;
            }
        }
        let hidden = if self.all || closed == 0 {
            String::new()
        } else {
            format!(
                "; {} without open letters, which --all shows",
                human::count(closed as u64, "more", "more")
            )
        };
        screen::say(&format!("{}{hidden}", human::count(total as u64, "failure group", "failure groups")));
        Ok(if groups.is_empty() { Exit::NothingMatched } else { Exit::Ok })
    }
}

fn rows(groups: &[Group], opened: &Opened) -> impl Iterator<Item = String> + use<> {
    // One scale of time for all of them, so that they can be compared.
    let from = groups.iter().map(|group| group.first.millis().div_euclid(HOUR)).min().unwrap_or(0);
    let to = groups.iter().map(|group| group.last.millis().div_euclid(HOUR)).max().unwrap_or(0);
    let row = |group: &Group| {
        vec![
            group.failure.to_string(),
            group.standing.name().to_owned(),
            group.open.to_string(),
            group.count.to_string(),
            group.keys.to_string(),
            when::from_now(group.first, opened.now),
            when::from_now(group.last, opened.now),
            format!("{:<1$}", spark::line(&group.hours, from, to, BARS), 1),
            group.source.clone(),
            group.group.clone().unwrap_or_else(|| "-".to_owned()),
            bytes_text::cut(&words::error(group.error_type.as_deref(), Some(&group.message)), 80),
        ]
    };
    let head =
        ["ID", "STATE", "OPEN", "LETTERS", "KEYS", "FIRST", "LAST", "TREND", "TOPIC", "GROUP", "ERROR"];
    table::lines(&head, groups.iter().map(row).collect())
}
