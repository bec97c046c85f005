//! `redrive delayed list`: what waits, for what and until when.

use std::io;

use clap::Args;
use redrive::delayed::{Counts, Delayed, View};
use redrive::{Clock, Timestamp};
use serde_json::{Value, json};

use super::Output;
use super::filter::Filter;
use super::shelves::{Shelves, Target};
use super::words;
use crate::exit::Exit;
use crate::{bytes_text, human, screen, table, when};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive delayed list                                 all shelves of redrive.toml
  redrive delayed list --topic orders --key customer-7
  redrive delayed list --due-before 10m --limit 20     what comes next
  redrive delayed list --brokers localhost:9092        every shelf of a cluster, without a file
  redrive delayed list --count -o json

STANDING is what a record waits for beside its time: nothing (first), an earlier record of its lane
(behind, with that one's offset), or somebody who deals with a dead letter (held). DUE is the
earliest time as things stand: a record behind another is not due before that one.")]
pub(super) struct List {
    #[command(flatten)]
    shelves: Shelves,
    #[command(flatten)]
    filter: Filter,
    /// Only so many, those that are due first
    #[arg(long, value_name = "N", value_parser = crate::output::limit)]
    limit: Option<usize>,
    /// Only how many there are
    #[arg(long)]
    count: bool,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// A shelf as it was read, and those of its records that are meant.
struct Read {
    view: View,
    group: Option<String>,
    records: Vec<Delayed>,
}

impl List {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let targets = match self.shelves.targets(None).await {
            Ok(targets) => targets,
            Err(exit) => return Ok(exit),
        };
        let now = Clock::system().now().wall;
        let (mut all, mut failed) = (Vec::new(), None);
        for target in &targets.targets {
            match targets.view(target, self.shelves.partition.as_slice(), self.filter.keep()).await {
                Ok(view) => all.push(self.read(target, view, now)),
                Err(exit) => failed = Some(exit),
            }
        }
        if let Some(exit) = failed.filter(|_| all.is_empty()) {
            return Ok(exit);
        }
        let matched = all.iter().any(|read| !read.records.is_empty());
        self.tell(&all, now)?;
        Ok(match failed {
            Some(_) => Exit::Partly,
            None if !matched && !self.filter.is_empty() => Exit::NothingMatched,
            None => Exit::Ok,
        })
    }

    fn read(&self, target: &Target, view: View, now: Timestamp) -> Read {
        let mut records = view.records();
        records.retain(|record| self.filter.accepts(record, now));
        let group = view.identity().map(|identity| identity.group.clone()).or_else(|| target.group.clone());
        Read { view, group, records }
    }

    fn tell(&self, all: &[Read], now: Timestamp) -> io::Result<()> {
        let is_empty = all.iter().all(|read| read.records.is_empty());
        let one = |(read, record): (&Read, &Delayed)| words::record(record, read.group.as_deref());
        let told = match (self.count, self.output) {
            (true, Output::Table) => screen::lines(counted(all, now)),
            (true, Output::Json) => screen::data(&format!("{:#}\n", Value::from(self.counts(all, now)))),
            (true, Output::Ndjson) => {
                screen::lines(self.counts(all, now).iter().map(|one| format!("{one}\n")))
            }
            (false, Output::Table) if is_empty => Ok(()),
            (false, Output::Table) => screen::lines(self.table(all, now)),
            (false, Output::Json) => screen::data(&format!("{:#}\n", self.document(all, now))),
            (false, Output::Ndjson) => {
                screen::lines(self.shown(all).map(|shown| format!("{}\n", one(shown))))
            }
        };
        told?;
        if !self.count {
            self.summarize(all, now);
        }
        Ok(())
    }

    /// Those that are shown, the one that is due first first, whichever shelf it is on.
    fn shown<'a>(&self, all: &'a [Read]) -> impl Iterator<Item = (&'a Read, &'a Delayed)> {
        let mut records: Vec<_> =
            all.iter().flat_map(|read| read.records.iter().map(move |record| (read, record))).collect();
        // Each shelf's are in order already.
        records.sort_by_key(|(_, record)| (record.earliest.is_none(), record.earliest));
        records.into_iter().take(self.limit.unwrap_or(usize::MAX))
    }

    fn table(&self, all: &[Read], now: Timestamp) -> impl Iterator<Item = String> {
        let row = |(read, record): (&Read, &Delayed)| {
            vec![
                record.origin.to_string(),
                read.group.clone().unwrap_or_else(|| "-".to_owned()),
                record.earliest.map_or("-".to_owned(), when::shown),
                record.earliest.map_or("-".to_owned(), |time| when::from_now(time, now)),
                record.attempts.to_string(),
                record.class.map_or("-", |class| class.name()).to_owned(),
                words::bytes(record.lane.as_ref().or(record.key.as_ref())),
                words::standing(record),
                bytes_text::cut(&bytes_text::line(words::error(record).as_bytes()), 80),
            ]
        };
        let head = ["ORIGIN", "GROUP", "DUE", "", "TRIES", "CLASS", "LANE", "STANDING", "ERROR"];
        table::lines(&head, self.shown(all).map(row).collect())
    }

    fn document(&self, all: &[Read], now: Timestamp) -> Value {
        let records: Vec<_> =
            self.shown(all).map(|(read, record)| words::record(record, read.group.as_deref())).collect();
        json!({ "records": records, "shelves": self.counts(all, now) })
    }

    fn counts(&self, all: &[Read], now: Timestamp) -> Vec<Value> {
        let one = |read: &Read| {
            let mut value = words::counts(&Counts::of(&read.records, now));
            let topic = read.view.identity().map(|identity| identity.topic.as_str());
            let orders = read.view.orders();
            let orders =
                orders.iter().map(|(partition, one)| words::order(topic.unwrap_or("?"), *partition, one));
            value["shelf"] = read.view.shelf().as_str().into();
            value["topic"] = topic.into();
            value["group"] = read.group.as_deref().into();
            value["closed_lanes"] = read.view.closures().iter().map(words::closure).collect();
            value["unanswered_orders"] = orders.collect();
            value
        };
        all.iter().map(one).collect()
    }

    fn summarize(&self, all: &[Read], now: Timestamp) {
        for read in all {
            let counts = Counts::of(&read.records, now);
            let mut line = format!("{}: {}", read.view.shelf(), words::summary(&counts, now));
            let (closed, orders) = (read.view.closed_lanes() as u64, read.view.orders().len() as u64);
            if closed > 0 {
                line.push_str(&format!("; {}", human::count(closed, "lane is closed", "lanes are closed")));
            }
            if orders > 0 {
                line.push_str(&format!(
                    "; {}",
                    human::count(orders, "order is unanswered", "orders are unanswered")
                ));
            }
            screen::say(&line);
            if read.view.foreign() > 0 {
                let foreign = human::count(read.view.foreign(), "record", "records");
                screen::say(&format!("warning: {foreign} of {} cannot be read", read.view.shelf()));
            }
        }
        let total: usize = all.iter().map(|read| read.records.len()).sum();
        if let Some(limit) = self.limit.filter(|limit| *limit < total) {
            screen::say(&format!("{limit} of {total} are shown"));
        }
    }
}

fn counted(all: &[Read], now: Timestamp) -> impl Iterator<Item = String> {
    let shown = |time: Option<Timestamp>| time.map_or("-".to_owned(), when::shown);
    let mut rows = Vec::new();
    for read in all {
        let row = |partition: String, counts: &Counts| {
            vec![
                read.view.shelf().to_string(),
                partition,
                counts.total.to_string(),
                counts.due_now.to_string(),
                counts.behind.to_string(),
                counts.held.to_string(),
                counts.cancelled.to_string(),
                counts.bytes.to_string(),
                shown(counts.oldest),
                shown(counts.next_due),
            ]
        };
        let all = Counts::of(&read.records, now);
        for partition in all.by_partition.keys() {
            let own = read.records.iter().filter(|one| one.origin.partition == *partition);
            rows.push(row(partition.to_string(), &Counts::of(own, now)));
        }
        rows.push(row("all".to_owned(), &all));
    }
    let head = [
        "SHELF",
        "PARTITION",
        "WAITING",
        "DUE NOW",
        "BEHIND",
        "HELD",
        "CANCELLED",
        "BYTES",
        "OLDEST",
        "NEXT DUE",
    ];
    table::lines(&head, rows)
}
