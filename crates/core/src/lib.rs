//! The decisions of Redrive, as plain data in and plain data out.
//!
//! What comes in: a failure, a record's history, the time, a log of events. What goes out: a class,
//! a delay, a [`Route`](route::Route), an order. Nothing here does I/O, reads a clock or rolls dice.
#![warn(missing_docs)]

pub mod class;

pub use class::Class;
