//! The choices of a subscription that are more than a number: each one string, each with its grammar.

mod choices;
mod endpoint;
mod guards;

pub use choices::{
    BatchFormat, Blocking, Delay, Delivery, HttpVersion, LetterPartition, OrderBy, Payload, Start, Tombstones,
};
pub use endpoint::{Endpoint, Place};
pub use guards::{MaxLoss, SurgeGuard};
