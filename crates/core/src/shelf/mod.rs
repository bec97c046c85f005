//! The shelf: where records wait, in one topic, in order, without a database.
//!
//! A shelf partition is a log and its state is a fold over it: [`Entry`]s come in with their offsets,
//! [`Shelf`] says what waits, what is complete and which lanes are closed, whoever wrote them. [`Owner`]
//! is what the owner of the partition adds: its claim, what it wrote and has not read back, and when the
//! log may be cut. Nothing here reads a clock or a log.

mod ages;
#[cfg(test)]
mod attacks;
mod closures;
pub mod entry;
mod fold;
pub mod index;
mod owner;
mod replays;
mod start;

pub use closures::Closure;
pub use entry::{
    Announced, BadEntry, Checkpoint, ClaimId, Closed, Deed, Done, Entry, Identity, Order, Outcome, Stamp,
    Verdict, Wait, stands_for_itself,
};
pub(crate) use fold::is_it;
pub use fold::{Folded, Shelf};
pub use index::{Index, LaneTag, Stage, Waiting};
pub use owner::{Body, Owner, Phase, Seen};
pub use replays::{Replay, Replays};
pub use start::{Beginning, Missing};
