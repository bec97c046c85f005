//! `redrive dlq import`: letters that were exported, written back as they were.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader};
use std::path::PathBuf;
use std::{fs, mem};

use clap::Args;
use redrive::{Outgoing, Publisher, Publishing, Topic};
use redrive_kafka::Admin;
use redrive_letters::export;

use super::asking;
use crate::cluster::{self, ClusterArgs};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::{human, screen};

/// How many are on their way at once.
const BATCH: usize = 1_000;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq import letters.ndjson                    each to its topic and partition
  redrive dlq import letters.ndjson --to orders.copy   all to another topic, same partitions
  redrive dlq import --dry-run < letters.ndjson

Keys, values, headers and timestamps are as they were; offsets are new. The topics must be there.")]
pub(super) struct Import {
    /// The file; without one, stdin
    from: Option<PathBuf>,
    #[command(flatten)]
    file: ConfigFile,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Write to this topic
    #[arg(long, value_name = "TOPIC")]
    to: Option<Topic>,
    /// Why; it is written into the journal
    #[arg(short, long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Only read the lines, and say how many there are
    #[arg(long)]
    dry_run: bool,
}

impl Import {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let settings = match self.cluster.reach(&self.file) {
            Ok((settings, _)) => settings,
            Err(exit) => return Ok(exit),
        };
        let publisher = match Publisher::new(&settings, &Publishing::default()) {
            Ok(publisher) => publisher,
            Err(error) => return Ok(cluster::failed(&error, &self.file.name())),
        };
        let input: Box<dyn io::Read> = match &self.from {
            Some(path) => match fs::File::open(path) {
                Ok(file) => Box::new(file),
                Err(error) => {
                    screen::say(&format!("error: cannot read {}: {error}", path.display()));
                    return Ok(Exit::Usage);
                }
            },
            None => Box::new(io::stdin()),
        };
        let admin = match Admin::new(&settings) {
            Ok(admin) => admin,
            Err(error) => return Ok(cluster::failed(&error, &self.file.name())),
        };
        if !self.dry_run
            && let Err(exit) =
                asking::write_down(&settings, "import", &self.selection(), &[], &self.reason).await
        {
            return Ok(exit);
        }
        let exit = self.all(&publisher, &admin, input).await?;
        if !self.dry_run {
            let count = [("letters", exit.1)];
            let told = asking::write_down(&settings, "import finished", &self.selection(), &count, "").await;
            // What is written stays written if that cannot be written down.
            return Ok(if exit.0 == Exit::Ok && told.is_err() { Exit::Partly } else { exit.0 });
        }
        Ok(exit.0)
    }

    /// Where from and where to, in words.
    fn selection(&self) -> String {
        let from = self.from.as_ref().map_or("stdin".to_owned(), |path| path.display().to_string());
        let to = self.to.as_ref().map_or(String::new(), |topic| format!(" to={topic}"));
        format!("from={from}{to}")
    }

    /// All lines; how it ended, and how many were written at least.
    async fn all(
        &self,
        publisher: &Publisher,
        admin: &Admin,
        input: Box<dyn io::Read>,
    ) -> io::Result<(Exit, u64)> {
        let (mut written, mut batch) = (0, Vec::new());
        let mut known: BTreeSet<Topic> = BTreeSet::new();
        let mut input = BufReader::new(input);
        for number in 1.. {
            let mut line = Vec::new();
            if input.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let outgoing = match std::str::from_utf8(&line).map(str::trim) {
                Ok("") => continue,
                Ok(line) => export::imported(line).map_err(|error| error.to_string()),
                Err(error) => Err(format!("not a line that was exported: {error}")),
            };
            let outgoing = match outgoing {
                Ok(outgoing) => outgoing,
                Err(error) => return Ok((self.stopped_at(number, &error, written), written)),
            };
            let topic = self.to.clone().unwrap_or_else(|| outgoing.topic.clone());
            if !known.contains(&topic) {
                match admin.outline(std::slice::from_ref(&topic)).await {
                    Ok(found) if found.contains_key(&topic) => drop(known.insert(topic.clone())),
                    Ok(_) => return Ok((self.nowhere(number, &topic, written), written)),
                    Err(error) => return Ok((self.refused(number, &error, written), written)),
                }
            }
            batch.push((number, Outgoing { topic, ..outgoing }));
            if batch.len() >= BATCH {
                match self.write(publisher, mem::take(&mut batch)).await {
                    Ok(count) => written += count,
                    Err((number, error)) => return Ok((self.refused(number, &error, written), written)),
                }
            }
        }
        match self.write(publisher, batch).await {
            Ok(count) => written += count,
            Err((number, error)) => return Ok((self.refused(number, &error, written), written)),
        }
        let deed = if self.dry_run { "would be written" } else { "written" };
        screen::say(&format!("{} {deed}", human::count(written, "letter", "letters")));
        Ok((if written == 0 { Exit::NothingMatched } else { Exit::Ok }, written))
    }

    /// A line belongs to a topic that is not there.
    fn nowhere(&self, line: u64, topic: &Topic, written: u64) -> Exit {
        screen::say(&format!(
            "error: there is no topic {topic}\nhelp: make it, with as many partitions as it had, or write to another with --to TOPIC\nit is line {line} that was not taken; {written} were written before it"
        ));
        if written == 0 || self.dry_run { Exit::Failed } else { Exit::Partly }
    }

    /// How many were written; or the line that was not, and why.
    async fn write(
        &self,
        publisher: &Publisher,
        batch: Vec<(u64, Outgoing)>,
    ) -> Result<u64, (u64, redrive_kafka::Error)> {
        let count = batch.len() as u64;
        if self.dry_run {
            return Ok(count);
        }
        let sent: Vec<_> =
            batch.into_iter().map(|(number, outgoing)| (number, publisher.publish(outgoing))).collect();
        for (number, one) in sent {
            one.await.map_err(|error| (number, error))?;
        }
        Ok(count)
    }

    /// A line is none that was exported. What came before it in its batch is not written.
    fn stopped_at(&self, line: u64, error: &str, written: u64) -> Exit {
        let deed = if self.dry_run { "would be written" } else { "were written" };
        screen::say(&format!(
            "error: line {line}: {error}\nhelp: {written} {deed} before it; mend the line or take it out, and go on from there"
        ));
        if written == 0 || self.dry_run { Exit::Failed } else { Exit::Partly }
    }

    /// The cluster does not take a line.
    fn refused(&self, line: u64, error: &redrive_kafka::Error, written: u64) -> Exit {
        let exit = cluster::failed(error, &self.file.name());
        screen::say(&format!(
            "it is line {line} that was not taken; {written} or more were written before it"
        ));
        if written == 0 { exit } else { Exit::Partly }
    }
}
