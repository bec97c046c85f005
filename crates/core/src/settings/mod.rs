//! The choices of a subscription that are more than a number: each one string, each with its grammar.

mod choices;
mod guards;

pub use choices::{Blocking, Delay, Delivery, LetterPartition, OrderBy, Payload, Start};
pub use guards::{MaxLoss, SurgeGuard};
