//! `redrive explain POLICY`: the schedule as a table and a picture.

use std::fmt::Write;
use std::io;
use std::time::Duration;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use clap::{Args, ValueEnum};
use redrive_core::Policy;
use redrive_core::duration::print;
use redrive_core::policy::Run;
use redrive_core::spelling::Misspelt;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::{human, screen};

/// Rows of JSON are for machines, but an endless policy has to end somewhere.
const MOST_ROWS: usize = 1_000;
/// Rows of the table, when a policy grows too slowly to be shown in full.
const MOST_LINES: usize = 60;
const BAR: usize = 32;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive explain 'exponential(1s..60s x2, 120)'
  redrive explain 'list(5s x3, 15s x5, 60s x10) for 1h jitter 10%'
  redrive explain 'LimitedExponentialRetryPolicy(1,60,2,120)' -o json

A policy is never, exponential(FIRST..LONGEST xFACTOR[, COUNT]) or list(DELAY [xTIMES], ...),
then optionally `for DURATION` and `jitter PERCENT%`. Durations are 250ms, 5s, 2m, 1h, 3d.")]
pub(crate) struct Explain {
    /// The policy, in quotes
    policy: String,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
}

impl Explain {
    pub(crate) fn run(&self) -> io::Result<Exit> {
        let policy: Policy = match self.policy.parse() {
            Ok(policy) => policy,
            Err(mistake) => {
                screen::say(&pointed_at(&self.policy, &mistake));
                return Ok(Exit::Usage);
            }
        };
        match self.output {
            Output::Table => screen::data(&table(&policy))?,
            Output::Json => screen::data(&format!("{:#}\n", as_json(&policy)))?,
        }
        Ok(Exit::Ok)
    }
}

fn pointed_at(text: &str, mistake: &Misspelt) -> String {
    let mark = AnnotationKind::Primary.span(mistake.span.clone());
    let title = Level::ERROR.primary_title(&mistake.message);
    let group = title.element(Snippet::source(text).path("POLICY").annotation(mark));
    let group = match &mistake.help {
        Some(help) => group.element(Level::HELP.message(help)),
        None => group,
    };
    let renderer = if screen::is_coloured() { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// A line of the table.
enum Line {
    Retry { number: u64, delay: Duration, elapsed: Duration },
    More(String),
}

fn table(policy: &Policy) -> String {
    let runs = policy.runs();
    let longest = runs.iter().map(|run| run.delay).max().unwrap_or_default();
    let mut text = format!("{policy}\n\n");
    if !runs.is_empty() {
        text.push_str("   retry       delay            elapsed\n");
    }
    for line in shortened(runs.iter().flat_map(lines).collect()) {
        let _ = match line {
            Line::Retry { number, delay, elapsed } => {
                let (shown, elapsed) = (short(delay), human::duration(elapsed));
                writeln!(text, "{number:>8}  {shown:>10}  {elapsed:>17}  {}", bar(delay, longest))
            }
            Line::More(what) => writeln!(text, "{:>8}  {what}", "..."),
        };
    }
    if !runs.is_empty() {
        text.push('\n');
    }
    text.push_str(&summary(policy, &runs));
    text
}

/// Long runs of one delay are shown by their ends.
fn lines(run: &Run) -> Vec<Line> {
    let retry = |index: u64| {
        let waited = run.delay.as_millis().saturating_mul(u128::from(index) + 1);
        let waited = Duration::from_millis(u64::try_from(waited).unwrap_or(u64::MAX));
        Line::Retry {
            number: run.first + index,
            delay: run.delay,
            elapsed: run.elapsed.saturating_add(waited),
        }
    };
    match run.times {
        Some(times) if times <= 5 => (0..times).map(retry).collect(),
        Some(times) => {
            let more = Line::More(format!("{} more of {}", times - 3, short(run.delay)));
            vec![retry(0), retry(1), more, retry(times - 1)]
        }
        None => vec![retry(0), retry(1), Line::More(format!("every {}, without end", short(run.delay)))],
    }
}

/// Delays are compared down the column, so a minute among seconds stays in seconds.
fn short(delay: Duration) -> String {
    let seconds = delay.as_secs();
    let whole = delay.subsec_millis() == 0;
    if whole && (1..120).contains(&seconds) { format!("{seconds}s") } else { print(delay) }
}

fn shortened(mut lines: Vec<Line>) -> Vec<Line> {
    if lines.len() <= MOST_LINES {
        return lines;
    }
    let tail = lines.split_off(lines.len() - 5);
    let left_out = lines.len() - (MOST_LINES - 6);
    lines.truncate(MOST_LINES - 6);
    lines.push(Line::More(format!("{left_out} lines left out")));
    lines.extend(tail);
    lines
}

fn bar(delay: Duration, longest: Duration) -> String {
    if longest.is_zero() {
        return String::new();
    }
    let share = delay.as_secs_f64() / longest.as_secs_f64();
    "█".repeat(((share * BAR as f64).round() as usize).max(1))
}

fn summary(policy: &Policy, runs: &[Run]) -> String {
    let retries = runs.last().map_or(Some(0), Run::last);
    let mut text = match (retries, policy.total()) {
        (Some(0), _) => "no retry: the first failure is the end\n".to_owned(),
        (Some(retries), Some(total)) => {
            let retries = human::count(retries, "retry", "retries");
            format!("{retries}, at most {} in all, then it ends\n", human::duration(total))
        }
        (_, _) => "retries without end\n".to_owned(),
    };
    if let Some(percent) = policy.jitter() {
        let _ = writeln!(text, "each delay up to {percent}% shorter or longer");
    }
    if let Some(within) = policy.within() {
        let within = human::duration(within);
        let _ = writeln!(
            text,
            "no retry later than {within} after the first failure, however long the handler takes"
        );
    }
    text
}

fn as_json(policy: &Policy) -> Value {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let runs = policy.runs();
    let retries = runs.last().map_or(Some(0), Run::last);
    let each = runs.iter().flat_map(|run| {
        (0..run.times.unwrap_or(u64::MAX)).map(move |index| {
            let elapsed = millis(run.elapsed).saturating_add(millis(run.delay).saturating_mul(index + 1));
            json!({ "retry": run.first + index, "delay_ms": millis(run.delay), "elapsed_ms": elapsed })
        })
    });
    json!({
        "policy": policy.to_string(),
        "retries": retries,
        "endless": policy.is_endless(),
        "total_ms": policy.total().map(millis),
        "max_delay_ms": millis(policy.max_delay()),
        "within_ms": policy.within().map(millis),
        "jitter_percent": policy.jitter(),
        "truncated": retries.is_none_or(|retries| retries > MOST_ROWS as u64),
        "schedule": each.take(MOST_ROWS).collect::<Vec<_>>(),
    })
}
