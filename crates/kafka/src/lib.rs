//! Everything that touches librdkafka: settings, what is published, what is read, what topics there are.
//!
//! It carries out and reports back; it decides nothing.
#![warn(missing_docs)]

mod admin;
mod error;
#[allow(unsafe_code, reason = "librdkafka is called directly where rdkafka lacks a call")]
mod native;
mod publish;
mod read;
mod refusal;
mod settings;
mod topic_id;

pub use admin::{Admin, ClusterState, SetFor, Setting, TopicState};
pub use error::Error;
pub use publish::{Outgoing, Publisher};
pub use read::Reader;
pub use refusal::Refusal;
pub use settings::{Settings, check_property};
pub use topic_id::{BadTopicId, TopicId};
