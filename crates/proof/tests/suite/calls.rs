//! The log of a test, read: which process had which record when, and what its worker told.

use std::collections::{BTreeMap, BTreeSet};

use redrive_testkit::Stored;
use redrive_testkit::guarantees::{LaneOrder, NothingLost, Spot};

use crate::place::Sent;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    Start { process: u32, spot: Spot, key: String },
    End { spot: Spot, ok: bool },
    Event { process: u32, text: String },
}

pub(crate) struct Calls(Vec<Line>);

impl Calls {
    pub(crate) fn read(log: &str) -> Self {
        // A line that is being written has no end yet.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        Self(whole.lines().map(line).collect())
    }

    /// How many calls of the handler began.
    pub(crate) fn starts(&self) -> usize {
        self.0.iter().filter(|line| matches!(line, Line::Start { .. })).count()
    }

    /// How often a record was given to the handler.
    pub(crate) fn starts_of(&self, wanted: Spot) -> usize {
        self.0.iter().filter(|line| matches!(line, Line::Start { spot, .. } if *spot == wanted)).count()
    }

    /// How many calls of the handler began in this process.
    pub(crate) fn starts_in(&self, wanted: u32) -> usize {
        self.0.iter().filter(|line| matches!(line, Line::Start { process, .. } if *process == wanted)).count()
    }

    /// How often each record was handled.
    pub(crate) fn handled(&self) -> BTreeMap<Spot, u32> {
        let mut handled = BTreeMap::new();
        for line in &self.0 {
            if let Line::End { spot, ok: true } = line {
                *handled.entry(*spot).or_default() += 1;
            }
        }
        handled
    }

    /// Records that were handled more than once.
    pub(crate) fn repeats(&self) -> Vec<Spot> {
        self.handled().into_iter().filter(|(_, times)| *times > 1).map(|(spot, _)| spot).collect()
    }

    /// Events of one process, or of all, that have all of these words in them.
    pub(crate) fn events(&self, of: Option<u32>, words: &[&str]) -> Vec<&str> {
        let matches = |line| match line {
            &Line::Event { process, ref text } if of.is_none_or(|of| of == process) => {
                words.iter().all(|word| text.contains(word)).then_some(text.as_str())
            }
            _ => None,
        };
        self.0.iter().filter_map(matches).collect()
    }

    /// Nothing is lost, and each lane was in order.
    pub(crate) fn judge(&self, sent: &[Sent], letters: &[Stored]) {
        let buried: BTreeSet<Spot> = letters.iter().map(origin).collect();
        let (mut lost, mut order) = (NothingLost::default(), LaneOrder::default());
        for one in sent {
            lost.sent((one.partition, one.offset));
            order.sent((one.partition, one.offset), &one.key);
        }
        buried.iter().for_each(|spot| lost.buried(*spot));
        for line in &self.0 {
            match line {
                Line::Start { process, spot, key } => order.starts(*process, *spot, key),
                Line::End { spot, ok: true } => {
                    lost.handled(*spot);
                    order.done(*spot);
                }
                Line::End { spot, ok: false } if buried.contains(spot) => order.done(*spot),
                Line::End { .. } => {}
                Line::Event { process, text } => {
                    if let Some(partition) = begun(text) {
                        order.begins(*process, partition);
                    }
                }
            }
        }
        lost.check();
        order.check();
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
    let [id, partition, offset, key, _attempt, _at, outcome] = fields[..] else { panic!("no call: {text}") };
    let spot = (partition.parse().expect("a partition"), offset.parse().expect("an offset"));
    match word {
        "start" => Line::Start { process: process(id), spot, key: key.to_owned() },
        "end" => Line::End { spot, ok: outcome == "ok" },
        _ => panic!("not a line of a log: {text}"),
    }
}
