//! The broker on the wire, seen through raw sockets: what a client sends byte for byte, good or bad,
//! and what comes back. No client library stands between.

mod bad_input;
mod client;
#[cfg(feature = "faults")]
mod faults;
mod flow;
mod life;
mod versions;
