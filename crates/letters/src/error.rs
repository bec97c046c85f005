//! What can go wrong with the index.

use std::path::PathBuf;
use std::time::Duration;

use redrive_core::Origin;

/// Something that the index, or Kafka for it, did not do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The state folder cannot be used.
    #[error(
        "cannot use {path} for the index of letters; name another folder with --state-folder or `state` in [letters]"
    )]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The index refuses.
    #[error("cannot {deed} the index of letters at {path}")]
    Index {
        /// What was to be done.
        deed: &'static str,
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Kafka refuses.
    #[error(transparent)]
    Kafka(#[from] redrive_kafka::Error),
    /// A pattern that is none.
    #[error(
        "cannot read the pattern `{pattern}`; write a regular expression, with \\ before what is meant as it is"
    )]
    Pattern {
        /// Which.
        pattern: String,
        /// What is wrong with it.
        source: Box<regex::Error>,
    },
    /// A question that would read too much back from Kafka.
    #[error("{0}")]
    TooBroad(String),
    /// A letter that is not there.
    #[error(
        "there is no letter {0}: it was never written, was purged or erased, lies elsewhere since others were erased, or its topic is not one that is read here"
    )]
    NoLetter(Origin),
    /// A payload that is not there any more.
    #[error("the payload of {letter} was at {pointer}, and is gone from there")]
    NoPayload {
        /// Of this letter.
        letter: Origin,
        /// Where it was.
        pointer: Origin,
    },
    /// A text that is no position in a list.
    #[error("`{0}` is not a cursor; take it as it stands at the end of the list before, or leave it out")]
    BadCursor(String),
    /// Nothing comes of a partition that has records.
    #[error("nothing was read of {} within {}s", at.as_ref().map_or("the letters".to_owned(), ToString::to_string), patience.as_secs())]
    Silent {
        /// From where on.
        at: Option<Origin>,
        /// How long one waited.
        patience: Duration,
    },
    /// No thread could be started.
    #[error("cannot start a thread that writes the index of letters")]
    Thread(#[source] std::io::Error),
    /// A thread ended before its work.
    #[error("reading letters was interrupted")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl Error {
    /// Whether the file itself is at fault, so that building it anew helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        let Self::Index { source, .. } = self else { return false };
        let code = source.sqlite_error_code();
        matches!(code, Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase))
    }
}

/// An error with its causes, each once.
#[must_use]
pub fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}
