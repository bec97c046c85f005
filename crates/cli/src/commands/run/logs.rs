//! The log: an event for each decision, to stderr, for people or for programs.

use std::io;

use redrive_config::{Log, LogFormat, LogLevel};
use tracing::Level;

use crate::screen;

pub(super) fn start(log: Log) {
    let level = match log.level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    };
    let subscriber = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(level);
    match log.format {
        LogFormat::Text => subscriber.with_ansi(screen::is_coloured()).with_target(false).init(),
        LogFormat::Json => {
            subscriber.json().flatten_event(true).with_current_span(true).with_span_list(false).init();
        }
    }
}
