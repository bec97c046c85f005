//! The calls of librdkafka that have no safe form in its Rust binding. Nothing else here is unsafe.

mod queue;

pub(crate) use queue::{Message, Queue, Room};
