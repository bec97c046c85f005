//! Letters sent back as a job: a selection that is frozen when it begins, a mark that moves in the transaction of
//! what is sent, and what became of each.
//!
//! What to send, where and in which order is decided in [`plan()`], [`route`] and [`pace`]; [`begin()`] freezes it, and
//! [`run()`] carries it out. A letter is never changed: what is sent has its payload, byte for byte.

mod before;
mod begin;
mod choose;
pub mod control;
pub mod deeds;
mod destinations;
mod error;
mod followers;
pub mod lanes;
pub mod pace;
pub mod plan;
mod prepare;
mod rate;
mod reading;
pub mod route;
mod run;
mod watching;

pub(crate) use begin::{Deleting, freeze, freeze_deleting};
pub use begin::{Held, Start, Wanted, begin, new_id, plan, take_over};
pub use destinations::Destinations;
pub use error::Error;
pub use followers::{Followers, Holding};
pub use plan::{MAX_REPLAYS, Plan};
pub use rate::Rate;
pub use route::{Candidate, Route, Routes, Why};
pub use run::{Ended, Progress, Running, run};
