//! x
#![warn(missing_docs)]
mod clock;
mod journal;
mod log;
mod sync;
mod topics;
