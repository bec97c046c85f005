//! Everything that touches librdkafka: settings, what is published, what is read, what topics there are.
//!
//! It carries out and reports back; it decides nothing.
#![warn(missing_docs)]

mod admin;
mod breaks;
mod commits;
mod consume;
mod error;
mod group;
#[allow(unsafe_code, reason = "librdkafka is called directly where rdkafka lacks a call")]
mod native;
mod pick;
mod publish;
mod read;
mod refusal;
mod scan;
mod settings;
mod tail;
mod through;
mod topic_id;
mod transact;
mod wake;
mod walk;

pub use admin::{Admin, ClusterState, SetFor, Setting, TopicState};
pub use commits::committed;
pub use consume::{
    Batch, Committed, Consumer, ConsumerSettings, Event, Events, GroupMetadata, Mark, RESERVED, Turn, join,
};
pub use error::{Error, Refusal};
pub use group::{GroupState, Member};
pub use pick::{Picked, Picker};
pub use publish::{Late, Outgoing, Publisher, Publishing, Refusals};
pub use read::Reader;
pub use refusal::Refused;
pub use scan::{Bounds, Scan, Scanned};
pub use settings::{Settings, check_property};
pub use tail::{Line, Tail, Tailed, Tails, What};
pub use through::{Passage, read_through};
pub use topic_id::{BadTopicId, TopicId};
pub use transact::{Transacting, TransactionFailed, Transactions};
pub use walk::{Walk, Walked};
