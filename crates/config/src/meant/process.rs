//! What a process that runs subscriptions tells of itself, where and to whom.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::str::FromStr;

use redrive_core::spelling::{Misspelt, nearest};

use super::Secret;
use crate::problem::Problem;
use crate::typed;

/// Where the embedded broker listens if nobody says otherwise.
pub(super) const BROKER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9092));
/// Where a process tells of itself if nobody says otherwise.
const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8790));

/// Where a process tells of its health, its metrics and its subscriptions, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The address; only this machine reaches it unless there is a token.
    pub listen: SocketAddr,
    /// Whoever has it may ask.
    pub token: Option<Secret>,
}

/// What a process writes to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Log {
    /// For whom.
    pub format: LogFormat,
    /// The least that is written.
    pub level: LogLevel,
}

/// Whom the log is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// People.
    #[default]
    Text,
    /// Programs: a JSON object a line.
    Json,
}

/// The least that is written to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "they are the usual ones")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogFormat {
    /// How they are written.
    pub const NAMES: &[&str] = &["text", "json"];
}

impl LogLevel {
    /// How they are written.
    pub const NAMES: &[&str] = &["error", "warn", "info", "debug", "trace"];
}

impl FromStr for LogFormat {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(unknown(text, "format", Self::NAMES)),
        }
    }
}

impl FromStr for LogLevel {
    type Err = Misspelt;

    fn from_str(text: &str) -> Result<Self, Misspelt> {
        match text {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            "trace" => Ok(Self::Trace),
            _ => Err(unknown(text, "level", Self::NAMES)),
        }
    }
}

fn unknown(text: &str, what: &str, names: &[&str]) -> Misspelt {
    let list = names.join(", ");
    let help = match nearest(text, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? There are: {list}"),
        None => format!("there are: {list}"),
    };
    Misspelt { span: 0..text.len(), message: format!("`{text}` is not a {what}"), help: Some(help) }
}

impl Server {
    pub(super) fn from_typed(typed: Option<&typed::Server>, problems: &mut Vec<Problem>) -> Self {
        let listen = typed.and_then(|server| server.listen.as_ref());
        let token = typed.and_then(|server| server.token.as_ref());
        if let Some(listen) = listen.filter(|listen| token.is_none() && !listen.value.ip().is_loopback()) {
            let message = "others can reach this address, and there is no token to keep them out";
            let help = "write server.token = \"${REDRIVE_TOKEN}\", or listen on 127.0.0.1";
            problems.push(Problem::error(listen.span.clone(), message).help(help));
        }
        Self {
            listen: listen.map_or(LISTEN, |listen| listen.value),
            token: token.map(|token| token.value.clone()),
        }
    }
}

impl Log {
    pub(super) fn from_typed(typed: Option<&typed::Log>) -> Self {
        let format = typed.and_then(|log| log.format.as_ref()).map(|format| format.value);
        let level = typed.and_then(|log| log.level.as_ref()).map(|level| level.value);
        Self { format: format.unwrap_or_default(), level: level.unwrap_or_default() }
    }
}
