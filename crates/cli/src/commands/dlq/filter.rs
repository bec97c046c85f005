//! Which letters are meant, as the command line says it.

use clap::Args;
use redrive::{Class, Origin, Timestamp};
use redrive_core::route::Reason;
use redrive_letters::query::{self, Attempts, States};
use redrive_letters::{Dialect, Fingerprint, Query, State};

use crate::exit::Exit;
use crate::screen;
use crate::when::When;

#[derive(Args, Clone)]
pub(super) struct Filter {
    /// Only letters of this topic: the one that was consumed, or the letter topic
    #[arg(short, long)]
    topic: Vec<String>,
    /// Only letters of this consumer group, or of this failure group (f1-...)
    #[arg(short, long)]
    group: Vec<String>,
    /// Only letters of this failure group
    #[arg(long, value_name = "ID")]
    failure: Vec<Fingerprint>,
    /// Only letters with this key, as text or as 0x and hexadecimal digits
    #[arg(short, long)]
    key: Vec<String>,
    /// Only letters whose key matches this regular expression somewhere
    #[arg(long, value_name = "PATTERN")]
    key_pattern: Option<String>,
    /// Only letters of this business key
    #[arg(short, long)]
    lane: Vec<String>,
    /// Only letters of the last so long, or since then: 2h, 3d, 2026-11-01
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "after")]
    since: Option<When>,
    /// Only letters of this time or later: 2026-11-01T06:00:00Z, 2026-11-01, 2h ago
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    after: Option<When>,
    /// Only letters from before this time: 30d ago
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    before: Option<When>,
    /// Only failures of this class
    #[arg(long)]
    class: Vec<Class>,
    /// Only letters for this reason: permanent, exhausted, expired, undecodable, follower, rejected, cancelled
    #[arg(long, value_name = "REASON")]
    why: Vec<Reason>,
    /// Only letters whose error says these words; "in quotes" side by side
    #[arg(short, long, value_name = "WORDS")]
    error: Option<String>,
    /// Only letters with this header, NAME or NAME=VALUE; it is looked for in Kafka
    #[arg(long)]
    header: Option<String>,
    /// Only letters with so many attempts: 3, 3.., ..5, 3..5
    #[arg(long, value_name = "N")]
    attempts: Option<Attempts>,
    /// Only letters in this state: open, replaying, replayed, resolved, purged, or all
    #[arg(long)]
    state: Vec<States>,
    /// Only letters that this program wrote: redrive, spring, spring-cloud-stream, connect, streams, share-group, smallrye, seeds, unknown
    #[arg(long)]
    dialect: Vec<Dialect>,
}

/// The same where nothing is changed, and so nothing has a reason but letters.
#[derive(Args, Clone)]
pub(super) struct Question {
    #[command(flatten)]
    filter: Filter,
    /// The same as --why
    #[arg(long)]
    reason: Vec<Reason>,
}

impl Question {
    /// What is asked for. Without a state, letters in `usual` states are meant.
    pub(super) fn query(&self, ids: Vec<Origin>, usual: &[State], now: Timestamp) -> Result<Query, Exit> {
        let reasons = self.filter.why.iter().chain(&self.reason).copied().collect();
        Filter { why: reasons, ..self.filter.clone() }.query(ids, usual, now)
    }
}

impl Filter {
    /// All that can be asked for, by the names of the arguments.
    pub(super) const NAMES: [&str; 16] = [
        "topic",
        "group",
        "failure",
        "key",
        "key_pattern",
        "lane",
        "since",
        "after",
        "before",
        "class",
        "why",
        "error",
        "header",
        "attempts",
        "state",
        "dialect",
    ];

    /// What is asked for. Without a state, letters in `usual` states are meant.
    pub(super) fn query(&self, ids: Vec<Origin>, usual: &[State], now: Timestamp) -> Result<Query, Exit> {
        let asked = query::Filter {
            ids,
            topics: self.topic.clone(),
            groups: self.group.clone(),
            failures: self.failure.clone(),
            keys: self.key.clone(),
            key_pattern: self.key_pattern.clone(),
            lanes: self.lane.clone(),
            after: self.since.or(self.after),
            before: self.before,
            classes: self.class.clone(),
            reasons: self.why.clone(),
            text: self.error.clone(),
            header: self.header.clone(),
            attempts: self.attempts,
            states: self.state.clone(),
            dialects: self.dialect.clone(),
        };
        if let Some((name, why)) = asked.nonsense(now) {
            screen::say(&format!("error: --{name}: {why}"));
            return Err(Exit::Usage);
        }
        if let Some(pattern) = &asked.key_pattern {
            query::pattern(pattern).map_err(|error| {
                screen::say(&format!("error: --key-pattern: {}", screen::told(&error)));
                Exit::Usage
            })?;
        }
        Ok(asked.query(usual, now))
    }
}
