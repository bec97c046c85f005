//! `redrive dlq list`: letters, the newest first.

use std::io;

use clap::{Args, ValueEnum};
use redrive::Origin;
use redrive_letters::{Cursor, Page, Query, Sort, State, Summary, export, query};
use serde_json::{Value, json};

use super::choice;
use super::filter::Question;
use super::place::{Opened, Place};
use super::{Output, words};
use crate::exit::Exit;
use crate::{bytes_text, human, output, screen, table, when};

/// How many letters one question asks for.
const PAGE: usize = 500;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq list                                        open letters of redrive.toml's cluster
  redrive dlq list --topic orders --since 2h --error 'connection refused'
  redrive dlq list --group f1-3k9x0m2v7a1c --limit 20     of one failure group
  redrive dlq list --key customer-7 --state all -o ndjson
  redrive dlq list --brokers localhost:9092 --letters-like '.*-dlt'

An ID is where the letter lies, topic/partition/offset. Without --state only open letters are listed.")]
pub(super) struct List {
    /// Only these letters
    ids: Vec<Origin>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    filter: Question,
    /// At most so many
    #[arg(long, value_name = "N", default_value = "100", value_parser = output::limit)]
    limit: usize,
    /// Go on from where another list ended
    #[arg(long)]
    cursor: Option<Cursor>,
    /// In which order
    #[arg(long, value_enum, default_value = "newest")]
    sort: Order,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    Newest,
    Oldest,
    /// The most attempts first
    Attempts,
}

impl List {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let mut opened = match self.place.open().await {
            Ok(opened) => opened,
            Err(exit) => return Ok(exit),
        };
        let usual: &[State] = if self.ids.is_empty() { &[State::Open] } else { &[] };
        let sort = match self.sort {
            Order::Newest => Sort::Newest,
            Order::Oldest => Sort::Oldest,
            Order::Attempts => Sort::Attempts,
        };
        let query = match self.filter.query(self.ids.clone(), usual, opened.now) {
            Ok(query) => Query { sort, ..query },
            Err(exit) => return Ok(exit),
        };
        let found = match self.read(&mut opened, &query).await {
            Ok(found) => found,
            Err(error) => return Ok(opened.reached.failed(&error)),
        };
        self.tell(&found, &opened)?;
        let all_there = match choice::are_all_there(&opened.reached, &mut opened.index, &self.ids) {
            Ok(all_there) => all_there,
            Err(exit) => return Ok(exit),
        };
        Ok(match (found.letters.is_empty(), all_there) {
            (true, _) => Exit::NothingMatched,
            (false, false) => Exit::Partly,
            (false, true) => Exit::Ok,
        })
    }

    async fn read(&self, opened: &mut Opened, query: &Query) -> Result<Page, redrive_letters::Error> {
        let mut next: Option<Cursor> = self.cursor;
        let mut found = Page { letters: Vec::new(), next: None, total: None };
        while found.letters.len() < self.limit {
            let most = PAGE.min(self.limit - found.letters.len());
            let settings = &opened.reached.settings;
            let page = query::with_header(&mut opened.index, settings, query, most, next).await?;
            found.letters.extend(page.letters);
            found.total = found.total.or(page.total);
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        found.next = next;
        Ok(found)
    }

    fn tell(&self, found: &Page, opened: &Opened) -> io::Result<()> {
        let letters = &found.letters;
        match self.output {
            Output::Table if letters.is_empty() => {}
            Output::Table => screen::lines(rows(letters, opened))?,
            Output::Json => {
                let letters: Vec<Value> = letters.iter().map(export::metadata).collect();
                let next = found.next.map(|next| next.to_string());
                let document = json!({ "letters": letters, "total": found.total, "next": next });
                screen::data(&format!("{document:#}\n"))?;
            }
            Output::Ndjson => {
                screen::lines(letters.iter().map(|letter| format!("{}\n", export::metadata(letter))))?;
            }
        }
        let shown = human::count(letters.len() as u64, "letter", "letters");
        let of = found.total.map_or(String::new(), |total| format!(" of {total}"));
        let more = found.next.map_or(String::new(), |next| format!("; more with --cursor {next}"));
        screen::say(&format!("{shown}{of}{more}"));
        Ok(())
    }
}

fn rows(letters: &[Summary], opened: &Opened) -> impl Iterator<Item = String> + use<> {
    let row = |letter: &Summary| {
        vec![
            letter.at.to_string(),
            when::from_now(letter.time, opened.now),
            words::origin(letter),
            letter.group.clone().unwrap_or_else(|| "-".to_owned()),
            words::bytes(letter.key.as_deref()),
            letter.class.map_or("-", |class| class.name()).to_owned(),
            letter.reason.map_or("-".to_owned(), |reason| reason.to_string()),
            letter.attempts.to_string(),
            words::state(letter),
            letter.failure.to_string(),
            bytes_text::cut(&words::error(letter.error_type.as_deref(), letter.message.as_deref()), 80),
        ]
    };
    let head =
        ["ID", "WHEN", "ORIGIN", "GROUP", "KEY", "CLASS", "REASON", "TRIES", "STATE", "FAILURE", "ERROR"];
    table::lines(&head, letters.iter().map(row).collect())
}
