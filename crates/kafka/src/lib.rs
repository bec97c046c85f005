//! Everything that touches librdkafka: settings, what is published, what is read.
//!
//! It carries out and reports back; it decides nothing.
#![warn(missing_docs)]

mod consume;
mod error;
#[allow(unsafe_code, reason = "librdkafka's queues have no safe form; each call gives its reason")]
mod native;
mod publish;
mod read;
mod settings;
mod transact;
mod wake;

pub use consume::{
    Batch, Committed, Consumer, ConsumerSettings, Event, Events, GroupMetadata, Mark, RESERVED, Turn, join,
};
pub use error::{Error, Refusal};
pub use publish::{Outgoing, Publisher, Publishing};
pub use read::Reader;
pub use settings::{Settings, check_property};
pub use transact::{Transacting, TransactionFailed, Transactions};
