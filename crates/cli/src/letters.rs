//! Where letters are, as the file says or as is usual: their topics, and the folder of their index.

use std::env;
use std::path::PathBuf;

use redrive_config::Config;
use redrive_letters::Error;
use redrive_letters::feed::{PATTERN, Which};

/// The folder of the index: one that is named, that of the file, or the usual one. None if there is no home.
pub(crate) fn folder(named: Option<PathBuf>, config: Option<&Config>) -> Option<PathBuf> {
    let named = named.or_else(|| config.and_then(|config| config.letters.state.clone()));
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME");
    let usual = || {
        let state = variable("XDG_STATE_HOME").or_else(|| Some(home()?.join(".local/state")))?;
        Some(state.join("redrive"))
    };
    match named {
        Some(named) => match named.strip_prefix("~") {
            Ok(rest) => home().map(|home| home.join(rest)),
            Err(_) => Some(named),
        },
        None => usual(),
    }
}

/// The letter topics of the file, and those that are called as letter topics are.
pub(crate) fn which(config: Option<&Config>) -> Result<Which, Error> {
    let patterns = config.and_then(|config| config.letters.topics.clone());
    let subscriptions = config.map(|config| config.subscriptions.as_slice()).unwrap_or_default();
    let names = subscriptions.iter().map(|one| one.letters.clone()).collect();
    Which::new(names, &patterns.unwrap_or_else(|| vec![PATTERN.to_owned()]))
}
