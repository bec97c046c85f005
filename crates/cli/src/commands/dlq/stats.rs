//! `redrive dlq stats`: letters in numbers.

use std::io;

use clap::{Args, ValueEnum};
use redrive_letters::export::{self, moment};
use redrive_letters::stats::{Bar, By};
use serde_json::{Value, json};

use super::filter::Question;
use super::place::Place;
use super::{Output, spark};
use crate::exit::Exit;
use crate::{bytes_text, human, screen, table};

/// How long the longest bar is.
const WIDTH: usize = 40;
/// How many bars a trend has.
const BARS: usize = 24;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq stats --by hour --since 1d
  redrive dlq stats --by error --topic orders
  redrive dlq stats --by group -o json

Hours and days are of UTC.")]
pub(super) struct StatsCommand {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    filter: Question,
    /// What to count by
    #[arg(long, value_enum, default_value = "hour")]
    by: CountBy,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CountBy {
    Hour,
    Day,
    /// The type of the error
    Error,
    /// The topic that was consumed
    Topic,
    /// The consumer group
    Group,
}

impl StatsCommand {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let mut opened = match self.place.open().await {
            Ok(opened) => opened,
            Err(exit) => return Ok(exit),
        };
        let by = match self.by {
            CountBy::Hour => By::Hour,
            CountBy::Day => By::Day,
            CountBy::Error => By::Error,
            CountBy::Topic => By::Topic,
            CountBy::Group => By::Group,
        };
        let query = match self.filter.query(Vec::new(), &[], opened.now) {
            Ok(query) => query,
            Err(exit) => return Ok(exit),
        };
        let bars = match opened.index.stats(&query, by) {
            Ok(bars) => bars,
            Err(error) => return Ok(opened.reached.failed(&error)),
        };
        match self.output {
            Output::Table if bars.is_empty() => {}
            Output::Table => screen::lines(self.rows(&bars))?,
            Output::Json => {
                let bars: Vec<Value> = bars.iter().map(export::bar).collect();
                screen::data(&format!("{:#}\n", json!({ "stats": bars })))?;
            }
            Output::Ndjson => screen::lines(bars.iter().map(|bar| format!("{}\n", export::bar(bar))))?,
        }
        let (count, open) =
            bars.iter().fold((0, 0), |(count, open), bar| (count + bar.count, open + bar.open));
        screen::say(&format!("{}, {open} of them open", human::count(count, "letter", "letters")));
        Ok(if bars.is_empty() { Exit::NothingMatched } else { Exit::Ok })
    }

    fn rows(&self, bars: &[Bar]) -> impl Iterator<Item = String> + use<> {
        let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0);
        let hours = || bars.iter().flat_map(|bar| bar.hours.iter().map(|(hour, _)| *hour));
        let (from, to) = (hours().min().unwrap_or(0), hours().max().unwrap_or(0));
        let is_time = matches!(self.by, CountBy::Hour | CountBy::Day);
        let row = |bar: &Bar| {
            let name = bar.from.map_or_else(|| bytes_text::line(bar.name.as_bytes()), moment);
            let picture = if is_time {
                spark::bar(bar.count, most, WIDTH)
            } else {
                spark::line(&bar.hours, from, to, BARS)
            };
            vec![name, bar.count.to_string(), bar.open.to_string(), picture]
        };
        let head = match self.by {
            CountBy::Hour => "HOUR",
            CountBy::Day => "DAY",
            CountBy::Error => "ERROR",
            CountBy::Topic => "TOPIC",
            CountBy::Group => "GROUP",
        };
        let picture = if is_time { "" } else { "TREND" };
        table::lines(&[head, "LETTERS", "OPEN", picture], bars.iter().map(row).collect())
    }
}
