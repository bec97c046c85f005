//! The configuration file of a command: found, read, and its problems shown.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use redrive_config::{Config, Level, Report, Surroundings};

use crate::exit::Exit;
use crate::{human, screen};

#[derive(Args, Clone)]
pub(crate) struct ConfigFile {
    /// The configuration file
    #[arg(
        short,
        long,
        value_name = "FILE",
        long_help = "The configuration file [default: $REDRIVE_CONFIG, then redrive.toml here]"
    )]
    config: Option<PathBuf>,
}

/// Why a file means nothing.
pub(crate) enum Unreadable {
    /// It is not there, or cannot be read.
    File(String),
    /// Something is wrong in it.
    Report(Report),
}

impl ConfigFile {
    /// Its name, as shown in messages.
    pub(crate) fn name(&self) -> String {
        self.path().display().to_string()
    }

    /// What it means; its problems are told on the way.
    pub(crate) fn read(&self) -> Result<Config, Exit> {
        match self.load() {
            Ok(config) => {
                show(&self.name(), &config.warnings);
                Ok(config)
            }
            Err(Unreadable::File(what)) => {
                screen::say(&what);
                Err(Exit::Config)
            }
            Err(Unreadable::Report(report)) => {
                show(&self.name(), &report);
                Err(Exit::Config)
            }
        }
    }

    /// What it means, or why it means nothing; nothing is told.
    pub(crate) fn load(&self) -> Result<Config, Unreadable> {
        let path = self.path();
        let text = fs::read_to_string(&path).map_err(|error| Unreadable::File(unreadable(&path, &error)))?;
        let variables = |name: &str| env::var(name).ok();
        let surroundings = Surroundings { variables: &variables, property: &redrive_kafka::check_property };
        redrive_config::read(&self.name(), &text, surroundings).map_err(Unreadable::Report)
    }

    /// The same, but no file is none unless it was named.
    pub(crate) fn read_if_there(&self) -> Result<Option<Config>, Exit> {
        let is_named =
            self.config.is_some() || env::var_os("REDRIVE_CONFIG").is_some_and(|name| !name.is_empty());
        if !is_named && !self.path().exists() {
            return Ok(None);
        }
        self.read().map(Some)
    }

    fn path(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(default_file)
    }
}

/// A variable that is set to nothing is not set.
fn default_file() -> PathBuf {
    let named = env::var_os("REDRIVE_CONFIG").filter(|name| !name.is_empty());
    named.map_or(PathBuf::from("redrive.toml"), PathBuf::from)
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    format!(
        "error: cannot read {path}: {error}\nhelp: name the file with -c FILE or REDRIVE_CONFIG, or make a redrive.toml here"
    )
}

fn show(file: &str, report: &Report) {
    if report.problems().is_empty() {
        return;
    }
    screen::say(&if screen::is_coloured() { report.coloured() } else { report.to_string() });
    let count = |level, one: &str, many: &str| match report.count(level) {
        0 => None,
        number => Some(human::count(number as u64, one, many)),
    };
    let counts = [count(Level::Error, "error", "errors"), count(Level::Warning, "warning", "warnings")];
    screen::say(&format!("\n{} in {file}", counts.into_iter().flatten().collect::<Vec<_>>().join(", ")));
}
