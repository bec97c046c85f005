//! What becomes of letters that are not sent back: resolved, deleted as far as Kafka deletes, listed as damaged.
//!
//! What would be deleted is decided in [`cut`], from what is asked for and what lies beside it; [`carry_out()`] writes
//! it down as a job, with tombstones where letters are keyed by their origins.

mod carry_out;
pub mod cut;
mod damaged;
mod erase;
mod erasure;
mod lanes;
mod sources;

pub use carry_out::{Done, about_to_be_sent, carry_out, compacted, delete_below};
pub use cut::{Cut, Purge};
pub use damaged::Damaged;
pub use erase::{Erased, erase, finish, still_there, unfinished};
pub use erasure::{Erasure, Rewrite, Stays};
pub use lanes::{Followers, Opened, open_all, open_lanes};
pub use sources::{NoTombstone, Sources};
