//! `redrive run` as a process of its own, on a real broker, with real endpoints.

mod endpoint;
mod health;
mod isolation;
mod pausing;
mod process;
mod reload;
mod stage;
mod starts;
mod stops;
mod traces;
