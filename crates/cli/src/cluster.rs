//! The cluster that a command works with: as the file names it, or as the command line does.

use clap::Args;
use redrive_config::{Brokers, Config};
use redrive_kafka::{Error, Refused, Settings};

use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::screen;

#[derive(Args)]
pub(crate) struct ClusterArgs {
    /// The cluster's addresses, in place of the file's
    #[arg(long, value_name = "ADDRESS")]
    brokers: Option<String>,
}

impl ClusterArgs {
    /// How to reach the cluster: by the command line, the file, or both. What is missing is told.
    pub(crate) fn reach(&self, file: &ConfigFile) -> Result<(Settings, Option<Config>), Exit> {
        let config = match (&self.brokers, file.read_if_there()?) {
            (_, Some(config)) => config,
            (Some(brokers), None) => return Ok((Settings::of(brokers), None)),
            (None, None) => file.read()?,
        };
        // The process that runs the embedded broker has it where the file says.
        let settings =
            self.settings(&config).unwrap_or_else(|| Settings::of(config.kafka.listen.to_string()));
        Ok((settings, Some(config)))
    }

    /// What a command says to work with the same file and cluster.
    pub(crate) fn flags(&self, file: Option<String>) -> String {
        let file = file.map(|file| format!("-c {file}"));
        let brokers = self.brokers.as_ref().map(|brokers| format!("--brokers {brokers}"));
        file.into_iter().chain(brokers).collect::<Vec<_>>().join(" ")
    }

    /// How to reach the cluster; `None` if it is the embedded broker of a process that is not this one.
    pub(crate) fn settings(&self, config: &Config) -> Option<Settings> {
        let brokers = match (&self.brokers, &config.kafka.brokers) {
            (Some(brokers), _) | (None, Brokers::At(brokers)) => brokers.clone(),
            (None, Brokers::Embedded) => return None,
        };
        let properties =
            config.kafka.properties.iter().map(|one| (one.name.clone(), one.value.clone())).collect();
        Some(Settings { brokers, properties })
    }
}

/// Says what Kafka did not do, and what may help.
pub(crate) fn failed(error: &Error, config: &str) -> Exit {
    let help = match (error, error.refusal()) {
        (_, Some(refusal)) if refusal.is_denied() => Some(format!(
            "redrive acls -c {config} prints what a worker must be allowed to do; to create and change topics, Create, Alter and AlterConfigs are needed too"
        )),
        (Error::Unreachable { .. }, _) => {
            Some("is it running, and is this its address? --brokers ADDRESS names another".to_owned())
        }
        (_, Some(_) | None) => None,
    };
    screen::say(&format!("error: {}", screen::told(error)));
    if let Some(help) = help {
        screen::say(&format!("help: {help}"));
    }
    Exit::Failed
}

/// Whether nothing else can succeed either.
pub(crate) fn is_out_of_reach(error: &Error) -> bool {
    error.refusal().is_some_and(Refused::is_out_of_reach)
}
