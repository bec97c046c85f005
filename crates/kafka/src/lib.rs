//! Everything that touches librdkafka: settings, what is published, what is read, what topics there are.
//!
//! It carries out and reports back; it decides nothing.
#![warn(missing_docs)]

mod admin;
mod consume;
mod error;
mod group;
#[allow(unsafe_code, reason = "librdkafka is called directly where rdkafka lacks a call")]
mod native;
mod pick;
mod publish;
mod read;
mod refusal;
mod settings;
mod tail;
mod through;
mod topic_id;
mod transact;
mod wake;

pub use admin::{Admin, ClusterState, SetFor, Setting, TopicState};
pub use consume::{
    Batch, Committed, Consumer, ConsumerSettings, Event, Events, GroupMetadata, Mark, RESERVED, Turn, join,
};
pub use error::{Error, Refusal};
pub use group::{GroupState, Member};
pub use pick::{Picked, Picker};
pub use publish::{Late, Outgoing, Publisher, Publishing};
pub use read::Reader;
pub use refusal::Refused;
pub use settings::{Settings, check_property};
pub use tail::{Tail, Tailed, What};
pub use through::{Passage, read_through};
pub use topic_id::{BadTopicId, TopicId};
pub use transact::{Transacting, TransactionFailed, Transactions};
