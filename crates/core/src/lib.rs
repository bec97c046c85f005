//! The decisions of Redrive, as plain data in and plain data out.
//!
//! What comes in: a failure, a record's history, the time, a stream of events. What goes out: a
//! class, a delay, a [`Route`], an order. Nothing here does I/O, reads a clock or rolls dice.
#![warn(missing_docs)]

pub mod buckets;
pub mod class;
pub mod classify;
pub mod duration;
pub mod failure;
pub mod flow;
pub mod headers;
pub mod lanes;
pub mod letter;
pub mod mask;
pub mod offsets;
pub mod origin;
pub mod policy;
pub mod record;
pub mod route;
pub mod seed;
pub mod settings;
pub mod shelf;
pub mod spelling;
pub mod time;
pub mod topic;

pub use class::Class;
pub use failure::{Cause, Classed, Failure};
pub use mask::Mask;
pub use origin::Origin;
pub use policy::Policy;
pub use record::Record;
pub use route::{Route, Rules};
pub use time::Timestamp;
pub use topic::Topic;
