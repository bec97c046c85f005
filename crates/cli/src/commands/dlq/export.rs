//! `redrive dlq export`: letters as lines of JSON, whole or as they come.

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use redrive::{Clock, Origin};
use redrive_letters::query::Marks;
use redrive_letters::{Query, Runs, State, Summary, Whole, export, query};

use super::choice;
use super::filter::Question;
use super::place::{Opened, Place};
use crate::exit::Exit;
use crate::{human, screen};

/// How often it is looked for new letters.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq export --topic orders > letters.ndjson         whole records, nothing lost
  redrive dlq import letters.ndjson --brokers other:9092     and back
  redrive dlq export --metadata --state all                  what is known, without payloads
  redrive dlq export --follow                                the same of each letter that comes
  redrive dlq export --follow --elastic letters | while read -r line; do ...

A key, value or header that is not UTF-8 is in base64: `value_base64` in place of `value`. A letter that points to its
payload is exported with the payload it points to beside it.")]
pub(super) struct Export {
    /// Only these letters
    ids: Vec<Origin>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    filter: Question,
    /// What is known of each letter, and how to get at its payload, in place of the whole record
    #[arg(long)]
    metadata: bool,
    /// Go on with the metadata of letters that come, until it is told to stop
    #[arg(short, long)]
    follow: bool,
    /// Metadata as lines of a bulk request to Elasticsearch, for this index
    #[arg(long, value_name = "INDEX", num_args = 0..=1, default_missing_value = "redrive-letters")]
    elastic: Option<String>,
}

impl Export {
    /// Whether it goes on until it is told to stop, and so has done what it was asked for when it is.
    pub(super) fn is_endless(&self) -> bool {
        self.follow
    }

    pub(super) async fn run(&self) -> io::Result<Exit> {
        let mut opened = match self.place.open().await {
            Ok(opened) => opened,
            Err(exit) => return Ok(exit),
        };
        let usual: &[State] = if self.ids.is_empty() { &[State::Open] } else { &[] };
        let query = match self.filter.query(self.ids.clone(), usual, opened.now) {
            Ok(query) => query,
            Err(exit) => return Ok(exit),
        };
        if self.follow {
            return self.follow(opened, &query).await;
        }
        let exported = match self.all(&mut opened, &query).await {
            Ok(exported) => exported?,
            Err(error) => return Ok(opened.reached.failed(&error)),
        };
        screen::progress("");
        screen::say(&format!("{} exported", human::count(exported, "letter", "letters")));
        let all_there = match choice::are_all_there(&opened.reached, &mut opened.index, &self.ids) {
            Ok(all_there) => all_there,
            Err(exit) => return Ok(exit),
        };
        Ok(match (exported, all_there) {
            (0, _) => Exit::NothingMatched,
            (_, false) => Exit::Partly,
            (_, true) => Exit::Ok,
        })
    }

    /// Those that are there, in the order in which they lie where they are whole.
    async fn all(
        &self,
        opened: &mut Opened,
        query: &Query,
    ) -> Result<io::Result<u64>, redrive_letters::Error> {
        let is_short = self.metadata || self.elastic.is_some();
        if !is_short && query.header.is_none() {
            let letters = opened.index.select(query)?;
            let mut far = Far::new(letters.len());
            let written = written(opened, &letters, &mut far).await?;
            return Ok(written.map_or_else(|error| ended(error, far.exported), |()| Ok(far.exported)));
        }
        let mut far = Far::new(0);
        let mut next = None;
        loop {
            let settings = &opened.reached.settings;
            let page = query::with_header(&mut opened.index, settings, query, 500, next).await?;
            if is_short {
                for letter in &page.letters {
                    if let Err(error) = print(&self.line(letter)) {
                        return Ok(ended(error, far.exported));
                    }
                    far.one_more();
                }
            } else {
                let mut letters: Vec<Origin> = page.letters.iter().map(|letter| letter.at.clone()).collect();
                letters.sort();
                if let Err(error) = written(opened, &letters, &mut far).await? {
                    return Ok(ended(error, far.exported));
                }
            }
            next = page.next;
            if next.is_none() {
                return Ok(Ok(far.exported));
            }
        }
    }

    async fn follow(&self, opened: Opened, query: &Query) -> io::Result<Exit> {
        let Opened { reached, mut index, .. } = opened;
        let (clock, mut marks) = (Clock::system(), Marks::default());
        loop {
            let found = index.newer(query, &marks).and_then(|found| Ok((found, index.marks()?)));
            let (found, now) = match found {
                Ok(found) => found,
                Err(error) => return Ok(reached.failed(&error)),
            };
            marks = now;
            for letter in found {
                if let Err(error) = print(&self.line(&letter)) {
                    return ended(error, 0).map(|_| Exit::Ok);
                }
            }
            drop(index);
            clock.sleep(LOOK).await;
            index = match reached.catch_up().await {
                Ok((index, _)) => index,
                Err(exit) => return Ok(exit),
            };
        }
    }

    fn line(&self, letter: &Summary) -> String {
        if let Some(index) = &self.elastic {
            return export::bulk(letter, index);
        }
        let mut value = export::metadata(letter);
        value["payload"] = export::payload(letter).into();
        format!("{value}\n")
    }
}

/// How far it is, told once it takes longer than a moment.
struct Far {
    clock: Clock,
    tell_at: Duration,
    exported: u64,
    /// How many there are, if that is known.
    total: usize,
}

impl Far {
    fn new(total: usize) -> Self {
        let clock = Clock::system();
        let tell_at = clock.now().steady + LOOK;
        Self { clock, tell_at, exported: 0, total }
    }

    fn one_more(&mut self) {
        self.exported += 1;
        let now = self.clock.now().steady;
        if now >= self.tell_at {
            self.tell_at = now + LOOK;
            let of = if self.total > 0 { format!(" of {}", self.total) } else { String::new() };
            screen::progress(&format!("{}{of} exported", self.exported));
        }
    }
}

/// Writes these letters whole, those of a partition read in one go. Letters that are gone since they were indexed are passed over.
async fn written(
    opened: &Opened,
    mut letters: &[Origin],
    far: &mut Far,
) -> Result<io::Result<()>, redrive_letters::Error> {
    let runs = Runs::new(&opened.reached.settings)?;
    while !letters.is_empty() {
        let (found, looked_for) = runs.next(letters).await?;
        for one in &found {
            if let Err(error) = print(&line(opened, one).await) {
                return Ok(Err(error));
            }
            far.one_more();
        }
        letters = letters.get(looked_for..).unwrap_or_default();
    }
    Ok(Ok(()))
}

/// A whole letter as a line.
async fn line(opened: &Opened, whole: &Whole) -> String {
    let settings = &opened.reached.settings;
    let letter = &whole.letter;
    let mut more = serde_json::json!({
        "id": letter.at.to_string(),
        "dialect": letter.dialect.name(),
        "failure": letter.fingerprint().to_string(),
        "time": export::moment(letter.time()),
        "origin": letter.origin().map(|origin| origin.to_string()),
        "group": letter.group,
        "error_type": letter.error_type,
        "error_message": letter.message,
    });
    if letter.pointer.is_some() {
        match whole.payload(settings).await {
            Ok(payload) => export::put(&mut more, "payload", payload.as_deref()),
            Err(error) => more["payload_missing"] = screen::told(&error).into(),
        }
    }
    format!("{}\n", export::exported(&whole.record, &more))
}

fn print(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush())
}

/// A reader that has seen enough is not an error.
fn ended(error: io::Error, exported: u64) -> io::Result<u64> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(exported),
        _ => Err(error),
    }
}
