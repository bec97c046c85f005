//! Dead letters, whoever wrote them: what is known of one, which of them have the same cause, an index of them
//! in SQLite that is fed from Kafka, and questions to it.
//!
//! The index is a cache: Kafka has the letters, and what is deleted there leaves it.
#![warn(missing_docs)]

pub mod cleanup;
pub mod dialect;
mod error;
pub mod export;
pub mod feed;
pub mod fingerprint;
pub mod groups;
mod index;
pub mod jobs;
pub mod journal;
mod letter;
mod payload;
pub mod query;
pub mod replay;
pub mod retention;
pub mod show;
mod state;
pub mod stats;
pub mod waiting;
mod when;

pub use dialect::Dialect;
pub use error::{Error, told};
pub use fingerprint::Fingerprint;
pub use groups::{Group, Standing};
pub use index::{Index, Rebuilt};
pub use letter::{Letter, Source};
pub use payload::{Runs, Whole, read};
pub use query::{Cursor, Page, Query, Sort, Summary};
pub use state::{GroupWish, LetterState, Outcome, State, UnknownState, Wish};
pub use when::When;
