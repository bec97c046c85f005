//! `redrive journal`: who did what to letters, when and why, and whether that is as it was written.

use std::io;
use std::time::Duration;

use clap::{Args, Subcommand};
use redrive::Clock;
use redrive_kafka::{Error, Settings};
use redrive_letters::journal::{Entry, Fault, Journal};
use serde_json::{Value, json};

use crate::cluster::{self, ClusterArgs};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::output::Output;
use crate::{human, screen, table, when};

/// By then a transaction has ended everywhere that has ended somewhere.
const ENDED: Duration = Duration::from_secs(10);

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  redrive journal                        everything, the newest last
  redrive journal --limit 20 -o json
  redrive journal verify                 whether it is as it was written

Every change to letters is written down in the topic redrive.journal before it is told to be done. Nothing is
ever removed from it. Each writer numbers its entries and names the hash of the one before."
)]
pub(crate) struct JournalCommand {
    #[command(subcommand)]
    verify: Option<Command>,
    #[command(flatten)]
    list: List,
}

#[derive(Subcommand)]
enum Command {
    /// Find entries that were changed, removed, put elsewhere or added by others; exit code 1 if there are any
    Verify(Verify),
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    place: Place,
    /// Only the last so many
    #[arg(long, value_name = "N", value_parser = crate::output::limit)]
    limit: Option<usize>,
}

#[derive(Args)]
struct Verify {
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
struct Place {
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl JournalCommand {
    pub(crate) fn run(self) -> io::Result<Exit> {
        match &self.verify {
            Some(Command::Verify(verify)) => verify.run(),
            None => self.list.run(),
        }
    }
}

impl List {
    fn run(&self) -> io::Result<Exit> {
        let journal = match self.place.read(|settings| async move { Journal::read(&settings).await })? {
            Ok(journal) => journal,
            Err(exit) => return Ok(exit),
        };
        let first = self.limit.map_or(0, |limit| journal.entries.len().saturating_sub(limit));
        let entries = &journal.entries[first..];
        if entries.is_empty() {
            screen::say("nothing was ever written down");
            return Ok(Exit::NothingMatched);
        }
        let values = entries.iter().map(|(at, entry)| value(*at, entry));
        match self.place.output {
            Output::Table => {
                let rows = entries.iter().map(|(_, entry)| row(entry)).collect();
                screen::lines(table::lines(
                    &["WHEN", "WHO", "WHAT", "JOB", "LETTERS", "SELECTION", "WHY"],
                    rows,
                ))?;
            }
            Output::Json => screen::data(&format!("{:#}\n", values.collect::<Value>()))?,
            Output::Ndjson => screen::lines(values.map(|value| format!("{value}\n")))?,
        }
        Ok(Exit::Ok)
    }
}

impl Verify {
    fn run(&self) -> io::Result<Exit> {
        let read =
            |settings: Settings| async move { Journal::verified(&settings, &Clock::system(), ENDED).await };
        let (journal, heads) = match self.place.read(read)? {
            Ok(read) => read,
            Err(exit) => return Ok(exit),
        };
        let (entries, writers) = (journal.chain.entries(), journal.chain.writers());
        let faults = journal.chain.faults(&heads);
        self.tell(&faults)?;
        let what = format!(
            "{} of {}",
            human::count(entries, "entry", "entries"),
            human::count(writers as u64, "writer", "writers")
        );
        if faults.is_empty() {
            screen::say(&format!("{what}: all are as they were written"));
            return Ok(Exit::Ok);
        }
        let found = human::count(faults.len() as u64, "fault", "faults");
        screen::say(&format!("{what}: {found}; somebody changed the topic redrive.journal"));
        Ok(Exit::Failed)
    }

    fn tell(&self, faults: &[Fault]) -> io::Result<()> {
        let values = faults.iter().map(|fault| json!({ "fault": fault.name(), "text": fault.to_string() }));
        match self.place.output {
            Output::Table => screen::lines(faults.iter().map(|fault| format!("{}: {fault}\n", fault.name()))),
            Output::Json => screen::data(&format!("{:#}\n", values.collect::<Value>())),
            Output::Ndjson => screen::lines(values.map(|value| format!("{value}\n"))),
        }
    }
}

impl Place {
    fn read<T, F: Future<Output = Result<T, Error>>>(
        &self,
        read: impl FnOnce(Settings) -> F,
    ) -> io::Result<Result<T, Exit>> {
        let (settings, _) = match self.cluster.reach(&self.file) {
            Ok(reached) => reached,
            Err(exit) => return Ok(Err(exit)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let read = runtime.block_on(read(settings));
        runtime.shutdown_background();
        Ok(read.map_err(|error| cluster::failed(&error, &self.file.name())))
    }
}

fn row(entry: &Entry) -> Vec<String> {
    let deed = &entry.deed;
    let count = deed.counts.get("letters").map(ToString::to_string).unwrap_or_default();
    vec![
        when::shown(deed.time()),
        deed.who.clone(),
        deed.what.clone(),
        deed.job.clone().unwrap_or_default(),
        count,
        deed.selection.clone(),
        deed.why.clone(),
    ]
}

fn value(at: i64, entry: &Entry) -> Value {
    let deed = &entry.deed;
    json!({
        "offset": at,
        "number": entry.number,
        "who": deed.who,
        "when": when::shown(deed.time()),
        "what": deed.what,
        "job": deed.job,
        "selection": deed.selection,
        "counts": deed.counts,
        "why": deed.why,
    })
}
