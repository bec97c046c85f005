//! SIGHUP: the file is read again, and taken over whole or not at all.

use redrive::Control;
use redrive_config::Config;
use redrive_push::Traces;
use tracing::{error, info};

use super::open;
use crate::config_file::{ConfigFile, Unreadable};

/// What a reload is compared with.
pub(super) struct Reloader {
    file: ConfigFile,
    config: Config,
    control: Control,
    traces: Option<Traces>,
}

impl Reloader {
    pub(super) fn new(file: ConfigFile, config: Config, control: Control, traces: Option<Traces>) -> Self {
        Self { file, config, control, traces }
    }

    /// Takes the file over; if anything about it is wrong, or cannot be changed while the process runs, nothing
    /// of it is, and everything goes on as before.
    pub(super) fn reload(&self) {
        let file = self.file.name();
        let config = match self.file.load() {
            Ok(config) => open::settled(config),
            Err(Unreadable::File(what)) => {
                error!(file, problems = what, "not reloaded: everything goes on as before");
                return;
            }
            Err(Unreadable::Report(report)) => {
                error!(file, problems = %report, "not reloaded: everything goes on as before");
                return;
            }
        };
        let mut refused = self.fixed(&config);
        let handlers = config.subscriptions.iter().filter_map(|one| redrive_push::handled(one).err());
        refused.extend(handlers.map(|error| error.to_string()));
        if refused.is_empty() {
            match self.control.reload(&config.subscriptions) {
                Ok(changed) if changed.is_empty() => info!(file, "reloaded: nothing differs"),
                Ok(changed) => {
                    if let Some(traces) = &self.traces {
                        traces.reload(&config.subscriptions);
                    }
                    info!(file, changed = changed.join("; "), "reloaded");
                }
                Err(unchangeable) => refused = unchangeable.0,
            }
        }
        if !refused.is_empty() {
            let problems = refused.join("; ");
            error!(
                file,
                problems, "not reloaded: this can only be changed by a restart; everything goes on as before"
            );
        }
    }

    /// What differs and is not of a subscription.
    fn fixed(&self, new: &Config) -> Vec<String> {
        let old = &self.config;
        let differs = [
            ("kafka.brokers", old.kafka.brokers != new.kafka.brokers),
            ("kafka.properties", old.kafka.properties != new.kafka.properties),
            ("kafka.listen", old.kafka.listen != new.kafka.listen),
            ("kafka.data", old.kafka.data != new.kafka.data),
            ("service", old.service != new.service),
            ("server", old.server != new.server),
            ("log", old.log != new.log),
            ("traces", old.traces != new.traces),
        ];
        differs.iter().filter(|(_, differs)| *differs).map(|(key, _)| format!("{key} differs")).collect()
    }
}
