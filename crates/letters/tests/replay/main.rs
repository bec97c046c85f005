//! Replays on a real broker: what is sent, where, in which order, and once.

mod anew;
mod erased;
mod foreign;
mod ground;
mod jobs;
mod operators;
mod shelf;
