//! `redrive run` as a process of its own, on a real broker, with real endpoints.

mod api;
mod endpoint;
mod health;
mod isolation;
mod ops;
mod pausing;
mod process;
mod reload;
mod stage;
mod starts;
mod status;
mod stops;
mod traces;
