//! `redrive delayed release|reschedule|cancel|resolve`: orders, and what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use redrive::delayed::{Answer, Closure, Deed, Verdict, View, Wish};
use redrive::{Clock, Origin, Topic};
use serde_json::{Value, json};

use super::Output;
use super::filter::Filter;
use super::shelves::{Shelves, Targets};
use super::words;
use crate::exit::Exit;
use crate::when::{When, length};
use crate::{human, screen, table, when};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive delayed release orders/3/1042
  redrive delayed release --topic orders --key customer-7 --all --reason 'stock is back' --yes

A record behind another of its lane, or held by a letter, waits for that even when it is released.
Exit codes: 0 done or queued, 1 failed, 3 some are done, 4 nothing matched.")]
pub(super) struct Release {
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
#[command(after_help = "Examples:
  redrive delayed reschedule orders/3/1042 --in 10m
  redrive delayed reschedule orders/3/1042 --at 2026-11-01T06:00:00Z
  redrive delayed reschedule --all --due-before 1h --in 2h --reason 'the bank is closed' --yes")]
pub(super) struct Reschedule {
    #[command(flatten)]
    change: Change,
    /// So long from now
    #[arg(long = "in", value_name = "DURATION", value_parser = length, required_unless_present = "at", conflicts_with = "at")]
    later: Option<Duration>,
    /// At this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<When>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  redrive delayed cancel orders/3/1042
  redrive delayed cancel --topic orders --lane customer-7 --all --reason 'order withdrawn' --yes

Nothing vanishes: a cancelled record becomes a dead letter with the reason `cancelled`.")]
pub(super) struct Cancel {
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
#[command(after_help = "Examples:
  redrive delayed resolve orders/3/1040                 the origin of the letter that closed the lane
  redrive delayed resolve --lane customer-7 --all --reason 'booked by hand' --yes

`redrive delayed list` names the letter that holds a record; --count -o json lists all closed lanes.")]
pub(super) struct Resolve {
    #[command(flatten)]
    change: Change,
}

#[derive(Args)]
struct Change {
    /// The records: topic/partition/offset, as `redrive delayed list` shows them
    #[arg(value_name = "ORIGIN", required_unless_present = "all", conflicts_with = "all")]
    origins: Vec<Origin>,
    /// All that match
    #[arg(long, requires = "reason")]
    all: bool,
    #[command(flatten)]
    shelves: Shelves,
    #[command(flatten)]
    filter: Filter,
    /// Do not ask first
    #[arg(short, long)]
    yes: bool,
    /// Why; it is written down with each order
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
    /// How long to wait for the answers
    #[arg(long, value_name = "DURATION", value_parser = length, default_value = "10s")]
    wait: Duration,
    /// How to show what came of it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// A wish, what came of it, and whose it was to carry out.
struct Told {
    wish: Wish,
    answer: Answer,
    group: String,
    /// The letter that closes the lane all the same.
    still_closed_by: Option<Origin>,
}

/// The wishes for one shelf.
struct Wishes {
    view: View,
    group: String,
    wishes: Vec<Wish>,
}

impl Release {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        self.change.run(Deed::Release).await
    }
}

impl Reschedule {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let now = Clock::system().now().wall;
        let due = match (self.later, self.at) {
            (Some(wait), _) => now.plus(wait),
            (None, Some(at)) => at.at(now),
            (None, None) => now,
        };
        self.change.run(Deed::Reschedule { due: due.millis() }).await
    }
}

impl Cancel {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        self.change.run(Deed::Cancel).await
    }
}

impl Resolve {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        self.change.run(Deed::Resolve).await
    }
}

impl Change {
    async fn run(&self, deed: Deed) -> io::Result<Exit> {
        if !self.all && !self.filter.is_empty() {
            screen::say(
                "error: origins are named, and so is what to match\nhelp: --all changes all that match",
            );
            return Ok(Exit::Usage);
        }
        let found = if self.all { self.matching(deed).await } else { self.named(deed).await };
        let (targets, mut all) = match found {
            Ok(found) => found,
            Err(exit) => return Ok(exit),
        };
        let count: usize = all.iter().map(|one| one.wishes.len()).sum();
        if count == 0 {
            screen::say("nothing matches");
            return Ok(Exit::NothingMatched);
        }
        if self.all && !self.is_agreed(deed, &all)? {
            return Ok(Exit::Usage);
        }
        let (mut told, clock) = (Vec::new(), Clock::system());
        let reason = (who(), self.reason.clone().unwrap_or_default());
        for Wishes { view, group, wishes } in &mut all {
            let before = view.closures();
            match view.give(wishes, (&reason.0, &reason.1), self.wait, &clock).await {
                Ok(answers) => told.extend(wishes.iter().zip(answers).map(|(wish, answer)| Told {
                    still_closed_by: still_closed_by(wish, &answer, &before, view),
                    wish: wish.clone(),
                    answer,
                    group: group.clone(),
                })),
                Err(error) => {
                    let exit = targets.failed(&error).await;
                    if told.is_empty() {
                        return Ok(exit);
                    }
                }
            }
        }
        self.tell(&told)?;
        Ok(exit(&told, count))
    }

    /// The records that were named, by their shelves.
    async fn named(&self, deed: Deed) -> Result<(Targets, Vec<Wishes>), Exit> {
        let mut by_topic: BTreeMap<&Topic, Vec<&Origin>> = BTreeMap::new();
        for origin in &self.origins {
            by_topic.entry(&origin.topic).or_default().push(origin);
        }
        let (mut all, mut last) = (Vec::new(), None);
        for (topic, origins) in by_topic {
            let targets = self.shelves.targets(Some(topic)).await?;
            let target = targets.one()?;
            let partitions: BTreeSet<i32> = origins.iter().map(|origin| origin.partition).collect();
            let partitions: Vec<i32> = partitions.into_iter().collect();
            let view = targets.view(target, &partitions, Arc::new(|_| false)).await?;
            let group = group(&view, target.group.as_ref());
            let wishes = origins.into_iter().map(|origin| Wish { origin: origin.clone(), deed }).collect();
            all.push(Wishes { view, group, wishes });
            last = Some(targets);
        }
        last.map(|targets| (targets, all)).ok_or(Exit::Usage)
    }

    /// All that match, on all shelves that are meant.
    async fn matching(&self, deed: Deed) -> Result<(Targets, Vec<Wishes>), Exit> {
        let targets = self.shelves.targets(None).await?;
        let now = Clock::system().now().wall;
        let mut all = Vec::new();
        for target in &targets.targets {
            let view = targets.view(target, self.shelves.partition.as_slice(), self.filter.keep()).await?;
            let group = group(&view, target.group.as_ref());
            let origins: Vec<Origin> = match deed {
                Deed::Resolve | Deed::Announce { .. } => {
                    let closures = view.closures().into_iter();
                    closures.filter(|one| self.filter.accepts_lane(&one.lane)).map(|one| one.letter).collect()
                }
                Deed::Release | Deed::Reschedule { .. } | Deed::Cancel => {
                    let records = view.records().into_iter();
                    records.filter(|one| self.filter.accepts(one, now)).map(|one| one.origin).collect()
                }
            };
            let wishes = origins.into_iter().map(|origin| Wish { origin, deed }).collect();
            all.push(Wishes { view, group, wishes });
        }
        Ok((targets, all))
    }

    /// Asks where a person is; elsewhere only `--yes` will do.
    fn is_agreed(&self, deed: Deed, all: &[Wishes]) -> io::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        let what: Vec<_> = all
            .iter()
            .filter(|one| !one.wishes.is_empty())
            .map(|one| {
                let count = one.wishes.len() as u64;
                let things = match deed {
                    Deed::Resolve | Deed::Announce { .. } => human::count(count, "lane", "lanes"),
                    Deed::Release | Deed::Reschedule { .. } | Deed::Cancel => {
                        human::count(count, "record", "records")
                    }
                };
                format!("{things} of {}", one.view.shelf())
            })
            .collect();
        let question = format!("{} {}", words::deed(deed), what.join(", "));
        if !screen::has_person() {
            screen::say(&format!(
                "error: there is no terminal to ask on: {question}\nhelp: --yes does it; redrive delayed list shows them"
            ));
            return Ok(false);
        }
        let agreed = screen::is_wanted(&format!("{question}?"))?;
        if !agreed {
            screen::say("nothing was changed");
        }
        Ok(agreed)
    }

    fn tell(&self, told: &[Told]) -> io::Result<()> {
        match self.output {
            Output::Table => {
                let row = |one: &Told| vec![one.wish.origin.to_string(), one.words().1];
                screen::lines(table::lines(&["ORIGIN", "OUTCOME"], told.iter().map(row).collect()))
            }
            Output::Json => {
                let all: Value = told.iter().map(outcome).collect();
                screen::data(&format!("{all:#}\n"))
            }
            Output::Ndjson => screen::lines(told.iter().map(|one| format!("{}\n", outcome(one)))),
        }
    }
}

/// A lane may be closed by several letters: the first of those that are left where one was dealt with.
fn still_closed_by(wish: &Wish, answer: &Answer, before: &[Closure], after: &View) -> Option<Origin> {
    let Answer::Said(Verdict::Opened) = answer else { return None };
    let lane = &before.iter().find(|one| one.letter == wish.origin)?.lane;
    let is_left = |one: &Closure| one.lane == *lane && one.letter.partition == wish.origin.partition;
    after.closures().into_iter().find(is_left).map(|one| one.letter)
}

impl Told {
    fn words(&self) -> (&'static str, String) {
        match &self.still_closed_by {
            Some(letter) => ("opened", format!("it is dealt with; the lane is still closed by {letter}")),
            None => words::answer(&self.answer, &self.group),
        }
    }
}

fn outcome(told: &Told) -> Value {
    let (word, text) = told.words();
    let mut value = json!({
        "origin": told.wish.origin.to_string(),
        "group": told.group,
        "deed": words::deed(told.wish.deed),
        "outcome": word,
        "text": text,
    });
    if let Some(letter) = &told.still_closed_by {
        value["still_closed_by"] = letter.to_string().into();
    }
    if let Answer::Said(verdict) = &told.answer
        && let Some(due) = verdict.due()
    {
        value["due"] = when::shown(due).into();
    }
    value
}

/// An order that waits for a worker is what was asked for, as far as anybody can do it now.
fn exit(told: &[Told], count: usize) -> Exit {
    let is_good = |one: &&Told| one.answer.is_done() || matches!(one.answer, Answer::Queued);
    match told.iter().filter(is_good).count() {
        0 => Exit::Failed,
        good if good == count => Exit::Ok,
        _ => Exit::Partly,
    }
}

fn group(view: &View, named: Option<&String>) -> String {
    let said = view.identity().map(|identity| identity.group.clone());
    said.or_else(|| named.cloned()).unwrap_or_else(|| "?".to_owned())
}

fn who() -> String {
    let user = ["USER", "LOGNAME"].iter().find_map(|name| env::var(name).ok());
    format!("{} with redrive delayed", user.filter(|user| !user.is_empty()).as_deref().unwrap_or("somebody"))
}
