//! Calls of librdkafka that rdkafka has no words for: the only place with `unsafe`.
//!
//! What comes in and goes out is safe and owned; nothing here outlives the client it was given.

pub(crate) mod admin;
mod queue;

pub(crate) use queue::{Message, Queue, Room, known_end};
