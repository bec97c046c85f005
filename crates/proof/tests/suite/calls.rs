//! The log of a test, read: which process had which record when, and what its worker told.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use redrive_testkit::Stored;
use redrive_testkit::guarantees::{LaneOrder, NeverEarly, NothingLost, Spot};

use crate::claims::Claims;
use crate::place::Sent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Start { process: u32, spot: Spot, key: String, attempt: u32, at: i64 },
    End { spot: Spot, attempt: u32, end: End },
    Event { process: u32, text: String },
}

/// How a call of the handler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Ok,
    Failed,
    /// It wants to be made again at this time.
    Later(i64),
}

/// What was read so far. Clones are cheap.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Known>);

#[derive(Clone, Default)]
struct Known {
    lines: Vec<Line>,
    handled: BTreeMap<Spot, u32>,
    starts: usize,
    bytes: u64,
}

impl Calls {
    /// Reads what was written since.
    pub(crate) fn read_on(&mut self, log: &Path) {
        let Ok(mut file) = File::open(log) else { return };
        file.seek(SeekFrom::Start(self.0.bytes)).expect("a place in the log");
        let mut more = Vec::new();
        file.read_to_end(&mut more).expect("the log can be read");
        // A line that is being written has no end yet.
        let Some(end) = more.iter().rposition(|byte| *byte == b'\n') else { return };
        let known = Arc::make_mut(&mut self.0);
        known.bytes += end as u64 + 1;
        for line in String::from_utf8_lossy(&more[..end]).lines().map(line) {
            match &line {
                Line::End { spot, end: End::Ok, .. } => *known.handled.entry(*spot).or_default() += 1,
                Line::Start { .. } => known.starts += 1,
                Line::End { .. } | Line::Event { .. } => {}
            }
            known.lines.push(line);
        }
    }

    /// How many calls of the handler began.
    pub(crate) fn starts(&self) -> usize {
        self.0.starts
    }

    /// How often a record was given to the handler.
    pub(crate) fn starts_of(&self, wanted: Spot) -> usize {
        self.0.lines.iter().filter(|line| matches!(line, Line::Start { spot, .. } if *spot == wanted)).count()
    }

    /// The attempts at a record, and when each began.
    pub(crate) fn attempts(&self, wanted: Spot) -> Vec<(u32, i64)> {
        let attempt = |line: &Line| match line {
            Line::Start { spot, attempt, at, .. } if *spot == wanted => Some((*attempt, *at)),
            _ => None,
        };
        self.0.lines.iter().filter_map(attempt).collect()
    }

    /// Which processes began each attempt at a record, in their order.
    pub(crate) fn processes(&self, wanted: Spot) -> BTreeMap<u32, Vec<u32>> {
        let mut processes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for line in &self.0.lines {
            if let Line::Start { process, spot, attempt, .. } = line
                && *spot == wanted
            {
                processes.entry(*attempt).or_default().push(*process);
            }
        }
        processes
    }

    /// How many calls of the handler began in this process.
    pub(crate) fn starts_in(&self, wanted: u32) -> usize {
        let is_it = |line: &&Line| matches!(line, Line::Start { process, .. } if *process == wanted);
        self.0.lines.iter().filter(is_it).count()
    }

    /// How many calls wanted to be made again later.
    pub(crate) fn later(&self) -> usize {
        self.0.lines.iter().filter(|line| matches!(line, Line::End { end: End::Later(_), .. })).count()
    }

    /// How often each record was handled.
    pub(crate) fn handled(&self) -> &BTreeMap<Spot, u32> {
        &self.0.handled
    }

    /// How many records were handled.
    pub(crate) fn done(&self) -> usize {
        self.0.handled.len()
    }

    /// Records that were handled more than once.
    pub(crate) fn repeats(&self) -> Vec<Spot> {
        self.handled().iter().filter(|(_, times)| **times > 1).map(|(spot, _)| *spot).collect()
    }

    /// The records in the order in which they were handled.
    pub(crate) fn order(&self) -> Vec<Spot> {
        let handled = |line: &Line| match line {
            Line::End { spot, end: End::Ok, .. } => Some(*spot),
            _ => None,
        };
        self.0.lines.iter().filter_map(handled).collect()
    }

    /// Events of one process, or of all, that have all of these words in them.
    pub(crate) fn events(&self, of: Option<u32>, words: &[&str]) -> Vec<&str> {
        let matches = |line| match line {
            &Line::Event { process, ref text } if of.is_none_or(|of| of == process) => {
                words.iter().all(|word| text.contains(word)).then_some(text.as_str())
            }
            _ => None,
        };
        self.0.lines.iter().filter_map(matches).collect()
    }

    /// Nothing is lost, each lane was in order, and nobody claimed what was another's.
    pub(crate) fn judge(&self, sent: &[Sent], letters: &[Stored]) {
        let order = self.judge_order(sent, letters);
        order.check();
    }

    /// The same, nothing was early, and what was repeated was repeated in order.
    pub(crate) fn judge_all(&self, sent: &[Sent], letters: &[Stored]) {
        let order = self.judge_order(sent, letters);
        order.check();
        order.check_repeats();
        self.judge_times();
    }

    /// No attempt was early, and each was counted. Says how many had to wait.
    pub(crate) fn judge_times(&self) -> usize {
        let mut early = NeverEarly::default();
        for line in &self.0.lines {
            match line {
                Line::Start { spot, attempt, at, .. } => early.starts(*spot, *attempt, *at),
                Line::End { spot, attempt, end: End::Later(due) } => {
                    early.failed(*spot, *attempt, Some(*due));
                }
                Line::End { spot, attempt, end: End::Failed } => early.failed(*spot, *attempt, None),
                Line::End { end: End::Ok, .. } | Line::Event { .. } => {}
            }
        }
        early.check();
        early.waits()
    }

    fn judge_order(&self, sent: &[Sent], letters: &[Stored]) -> LaneOrder {
        let buried: BTreeSet<Spot> = letters.iter().map(origin).collect();
        let (mut lost, mut order) = (NothingLost::default(), LaneOrder::default());
        let mut claims = Claims::default();
        for one in sent {
            lost.sent((one.partition, one.offset));
            order.sent((one.partition, one.offset), &one.key);
        }
        buried.iter().for_each(|spot| lost.buried(*spot));
        for line in &self.0.lines {
            match line {
                Line::Start { process, spot, key, .. } => order.starts(*process, *spot, key),
                Line::End { spot, end: End::Ok, .. } => {
                    lost.handled(*spot);
                    order.done(*spot);
                }
                Line::End { spot, end: End::Failed, .. } if buried.contains(spot) => order.done(*spot),
                Line::End { .. } => {}
                Line::Event { process, text } => {
                    claims.hear(*process, text);
                    if let Some(partition) = begun(text) {
                        order.begins(*process, partition);
                    }
                }
            }
        }
        lost.check();
        order
    }

    /// The last events, for the message of a test that fails.
    pub(crate) fn tail(&self) -> String {
        let events = self.events(None, &[]);
        events[events.len().saturating_sub(60)..].join("\n")
    }
}

/// Where the record of a letter comes from.
pub(crate) fn origin(letter: &Stored) -> Spot {
    let origin = &letter.headers["redrive-origin"];
    let mut parts = origin.rsplit('/').map(str::parse::<i64>);
    let (offset, partition) = (parts.next(), parts.next());
    let (Some(Ok(offset)), Some(Ok(partition))) = (offset, partition) else {
        panic!("{origin} is an origin")
    };
    (partition as i32, offset)
}

fn begun(event: &str) -> Option<i32> {
    let (_, place) = event.split_once(": begun partition=")?;
    place.split(' ').next()?.parse().ok()
}

fn line(text: &str) -> Line {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let process = |text: &str| text.parse().unwrap_or_else(|_| panic!("{text} is a process"));
    if word == "event" {
        let (id, event) = rest.split_once(' ').unwrap_or((rest, ""));
        return Line::Event { process: process(id), text: event.to_owned() };
    }
    let fields: Vec<&str> = rest.split(' ').collect();
    let [id, partition, offset, key, attempt, at, outcome] = fields[..] else { panic!("no call: {text}") };
    let spot = (partition.parse().expect("a partition"), offset.parse().expect("an offset"));
    let attempt = attempt.parse().expect("an attempt");
    match word {
        "start" => Line::Start {
            process: process(id),
            spot,
            key: key.to_owned(),
            attempt,
            at: at.parse().expect("a time"),
        },
        "end" => Line::End { spot, attempt, end: end(outcome) },
        _ => panic!("not a line of a log: {text}"),
    }
}

fn end(outcome: &str) -> End {
    match outcome.strip_prefix("later:") {
        Some(due) => End::Later(due.parse().expect("a time")),
        None if outcome == "ok" => End::Ok,
        None => End::Failed,
    }
}
