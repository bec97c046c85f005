//! What was seen, for people and for programs.

use std::io;
use std::net::SocketAddr;

use redrive::Timestamp;
use serde_json::{Value, json};

use super::Output;
use super::letters::Open;
use super::trouble::Trouble;
use crate::{human, screen, when};

/// A place that is longer than this does not move the others.
const WIDEST: usize = 32;

pub(super) struct Seen {
    pub(super) wrong: Vec<Trouble>,
    pub(super) subscriptions: usize,
    pub(super) letters: Open,
    /// The process that runs the file, and whether it answered.
    pub(super) asked: Option<(SocketAddr, bool)>,
    pub(super) at: Timestamp,
}

impl Seen {
    pub(super) fn show(&self, output: Output) -> io::Result<()> {
        match output {
            Output::Table if self.wrong.is_empty() => {
                screen::data(&format!("nothing is wrong: {}\n", self.summary()))?;
            }
            Output::Table => {
                screen::lines(self.lines().into_iter())?;
                let things = human::count(self.wrong.len() as u64, "thing is", "things are");
                screen::say(&format!("{things} wrong; {}", self.summary()));
            }
            Output::Json => screen::data(&format!("{:#}\n", self.value()))?,
            Output::Ndjson => screen::lines(self.wrong.iter().map(|one| format!("{}\n", one.value())))?,
        }
        if let Some((address, false)) = self.asked {
            screen::say(&format!("no process answers at {address}: told is what Kafka knows"));
        }
        Ok(())
    }

    fn summary(&self) -> String {
        let Open { letters, groups } = self.letters;
        let flows = human::count(self.subscriptions as u64, "subscription", "subscriptions");
        let letters = human::count(letters, "open letter", "open letters");
        format!("{flows}, {letters} in {}", human::count(groups as u64, "failure group", "failure groups"))
    }

    /// Where and what, and under it the command, on a line of its own to be copied.
    fn lines(&self) -> Vec<String> {
        let width = self.wrong.iter().map(|one| one.place.chars().count()).max().unwrap_or(0).min(WIDEST);
        let line = |one: &Trouble| {
            format!("{:width$}  {}\n{:width$}  => {}\n", one.place, flat(&one.what), "", flat(&one.remedy))
        };
        self.wrong.iter().map(line).collect()
    }

    fn value(&self) -> Value {
        json!({
            "at": when::shown(self.at),
            "wrong": self.wrong.iter().map(Trouble::value).collect::<Vec<_>>(),
            "subscriptions": self.subscriptions,
            "open_letters": self.letters.letters,
            "failure_groups": self.letters.groups,
            "process": self.asked.map(|(address, answers)| json!({ "address": address, "answers": answers })),
        })
    }
}

/// On one line, whatever it says.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
