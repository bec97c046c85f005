//! The configuration file: what was typed is read in full, what is meant is checked in full.
//!
//! A text goes in; a [`Config`] comes out, or a [`Report`] with every problem, each at its place.
//! The JSON schema and the reference page are made from the same description of the keys.
#![warn(missing_docs)]

mod docs;
mod interpolate;
mod meant;
mod problem;
mod schema;
mod secrets;
mod typed;

pub use docs::reference;
pub use meant::{
    Batch, Brokers, Command, Config, Credentials, Handler, Http, Kafka, Letters, Link, Log, LogFormat,
    LogLevel, Notify, Property, Secret, Server, ShelfLimits, Subscription, Traces,
};
pub use problem::{Level, Problem, Report};
pub use schema::json_schema;

/// What a file is read against: the world is an argument too.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// Where `${NAME}` gets its value from.
    pub variables: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the client accepts a property of this name with this value; if not, why.
    pub property: &'a dyn Fn(&str, &str) -> Result<(), String>,
}

/// Reads a configuration. `file` is the name shown in messages.
pub fn read(file: &str, text: &str, surroundings: Surroundings<'_>) -> Result<Config, Report> {
    let (typed, values, mut problems) = typed::read(text, surroundings);
    let (config, more) = meant::check(&typed);
    problems.extend(more);
    let report = Report::new(file, text, values.as_deref(), problems);
    if report.is_fatal() {
        return Err(report);
    }
    Ok(Config { warnings: report, ..config })
}
