//! `redrive delayed show`: everything about one record that waits.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use clap::Args;
use redrive::delayed::{Delayed, Order, View, Wait};
use redrive::{Clock, Origin, Timestamp};
use serde_json::{Value, json};

use super::Output;
use super::shelves::Shelves;
use super::words;
use crate::exit::Exit;
use crate::{bytes_text, human, screen, when};

/// As much of a payload is shown unless all is asked for, in bytes.
const MOST: usize = 1_000;
/// As many of a lane's records are named, before it and behind it.
const NEIGHBOURS: usize = 10;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive delayed show orders/3/1042
  redrive delayed show orders/3/1042 --full
  redrive delayed show orders/3/1042 --save payload.bin     the value, byte for byte
  redrive delayed show orders/3/1042 --brokers localhost:9092 --group billing -o json")]
pub(super) struct Show {
    /// Where the record was first consumed: topic/partition/offset
    origin: Origin,
    #[command(flatten)]
    shelves: Shelves,
    /// Show the whole payload, however long it is
    #[arg(long)]
    full: bool,
    /// Write the value to a file, byte for byte
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// A record and what is around it.
struct Whole {
    record: Delayed,
    wait: Wait,
    lane: Vec<i64>,
    orders: Vec<Order>,
    group: Option<String>,
}

impl Show {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let whole = match self.read().await {
            Ok(Some(whole)) => whole,
            Ok(None) => {
                screen::say(&format!(
                    "error: {} does not wait\nhelp: redrive delayed list shows what does; it may be finished",
                    self.origin
                ));
                return Ok(Exit::NothingMatched);
            }
            Err(exit) => return Ok(exit),
        };
        if let Some(file) = &self.save {
            let value = whole.wait.record.value.as_deref();
            if let Err(error) = fs::write(file, value.unwrap_or_default()) {
                screen::say(&format!("error: cannot write {}: {error}", file.display()));
                return Ok(Exit::Failed);
            }
            let bytes = human::count(value.map_or(0, <[u8]>::len) as u64, "byte", "bytes");
            screen::say(&format!("{bytes} written to {}", file.display()));
        }
        let now = Clock::system().now().wall;
        screen::data(&match self.output {
            Output::Table => self.text(&whole, now),
            Output::Json => format!("{:#}\n", self.json(&whole)),
            Output::Ndjson => format!("{}\n", self.json(&whole)),
        })?;
        Ok(Exit::Ok)
    }

    async fn read(&self) -> Result<Option<Whole>, Exit> {
        let targets = self.shelves.targets(Some(&self.origin.topic)).await?;
        let offset = self.origin.offset;
        let keep = Arc::new(move |wait: &Wait| wait.record.at.offset == offset);
        let target = targets.one()?;
        let view = targets.view(target, &[self.origin.partition], keep).await?;
        let Some(record) = view.records().into_iter().find(|one| one.origin == self.origin) else {
            return Ok(None);
        };
        let wait = match view.whole(&self.origin).await {
            Ok(Some(wait)) => wait,
            // Done with since it was read.
            Ok(None) => return Ok(None),
            Err(error) => return Err(targets.failed(&error).await),
        };
        let group = view.identity().map(|identity| identity.group.clone()).or_else(|| target.group.clone());
        Ok(Some(Whole { lane: view.lane_of(&self.origin), orders: self.orders(&view), record, wait, group }))
    }

    fn orders(&self, view: &View) -> Vec<Order> {
        let own = |(partition, order): &(i32, Order)| {
            *partition == self.origin.partition && order.origin == self.origin.offset
        };
        view.orders().into_iter().filter(own).map(|(_, order)| order).collect()
    }

    fn text(&self, whole: &Whole, now: Timestamp) -> String {
        let Whole { record, wait, .. } = whole;
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<12} {value}");
        };
        line("origin", &record.origin.to_string());
        line("group", whole.group.as_deref().unwrap_or("-"));
        line("due", &format!("{}, {}", when::shown(record.due), when::from_now(record.due, now)));
        if let Some(since) = record.since {
            line("since", &format!("{}, {}", when::shown(since), when::from_now(since, now)));
        }
        line("attempts", &record.attempts.to_string());
        line("standing", &words::standing(record));
        line("lane", &words::bytes(record.lane.as_ref()));
        for neighbours in around(&whole.lane, record.origin.offset) {
            line("", &neighbours);
        }
        if let Some(class) = record.class {
            line("class", class.name());
        }
        for link in &wait.trail.error_chain {
            line("error", &bytes_text::line(format!("{}: {}", link.error_type, link.message).as_bytes()));
        }
        for attempt in &wait.trail.history {
            let at = when::shown(Timestamp::from_millis(attempt.at));
            line("failed", &format!("{at} {} {} on {}", attempt.class, attempt.error_type, attempt.instance));
        }
        for order in &whole.orders {
            line(
                "order",
                &format!("{} by {}, unanswered; {}", words::deed(order.deed), order.by, order.reason),
            );
        }
        line("shelf", &format!("offset {}, {} bytes", record.at, record.size));
        if let Some(pointer) = &wait.trail.pointer {
            line("payload", &format!("kept at {pointer}"));
        }
        line("key", &wait.record.key.as_deref().map_or("none".to_owned(), bytes_text::line));
        for header in wait.record.headers.iter() {
            let value = header.value.as_deref().map_or("none".to_owned(), bytes_text::line);
            line("header", &format!("{} = {value}", header.name));
        }
        text + &self.payload(wait.record.value.as_deref())
    }

    fn payload(&self, value: Option<&[u8]>) -> String {
        let Some(value) = value else { return "value        none\n".to_owned() };
        let shown = if self.full { value } else { &value[..value.len().min(MOST)] };
        // A cut may fall into the middle of a character.
        let whole = match std::str::from_utf8(shown) {
            Err(error) if error.error_len().is_none() => &shown[..error.valid_up_to()],
            Ok(_) | Err(_) => shown,
        };
        let (kind, body) = match bytes_text::text(whole) {
            Some(text) => ("text", text.to_owned()),
            None => ("hexadecimal", bytes_text::hex(shown)),
        };
        let bytes = human::count(value.len() as u64, "byte", "bytes");
        let more = if shown.len() < value.len() { "; cut, --full shows all" } else { "" };
        format!("value        {bytes}, {kind}{more}\n\n{body}\n")
    }

    fn json(&self, whole: &Whole) -> Value {
        let Whole { record, wait, .. } = whole;
        let trail = &wait.trail;
        let mut value = words::record(record, whole.group.as_deref());
        let (before, after): (Vec<i64>, Vec<i64>) = whole
            .lane
            .iter()
            .filter(|one| **one != record.origin.offset)
            .partition(|one| **one < record.origin.offset);
        value["lane_before"] = before.into();
        value["lane_after"] = after.into();
        value["error_chain"] = json!(trail.error_chain);
        value["history"] = json!(trail.history);
        value["error_stack"] = trail.error_stack.as_deref().into();
        value["pointer"] = trail.pointer.as_ref().map(ToString::to_string).into();
        let topic = record.origin.topic.as_str();
        let orders = whole.orders.iter().map(|one| words::order(topic, record.origin.partition, one));
        value["unanswered_orders"] = orders.collect();
        let headers = wait.record.headers.iter().map(|header| {
            let mut one = json!({ "name": header.name });
            words::put(&mut one, "value", header.value.as_deref());
            one
        });
        value["headers"] = headers.collect();
        words::put(&mut value, "value", wait.record.value.as_deref());
        value
    }
}

/// The lane's records before this one and behind it, the nearest of them.
fn around(lane: &[i64], own: i64) -> Vec<String> {
    let listed = |some: Vec<i64>, total: usize| {
        let names: Vec<_> = some.iter().map(ToString::to_string).collect();
        let more =
            if total > some.len() { format!(" and {} more", total - some.len()) } else { String::new() };
        names.join(", ") + &more
    };
    let before: Vec<i64> = lane.iter().copied().filter(|one| *one < own).collect();
    let behind: Vec<i64> = lane.iter().copied().filter(|one| *one > own).collect();
    let mut lines = Vec::new();
    if !before.is_empty() {
        let nearest = before[before.len().saturating_sub(NEIGHBOURS)..].to_vec();
        lines.push(format!("before it: {}", listed(nearest, before.len())));
    }
    if !behind.is_empty() {
        let nearest = behind[..behind.len().min(NEIGHBOURS)].to_vec();
        lines.push(format!("behind it: {}", listed(nearest, behind.len())));
    }
    lines
}
