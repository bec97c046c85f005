//! x
#![warn(missing_docs)]
mod clock;
mod log;
mod sync;
