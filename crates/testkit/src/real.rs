//! Finds the servers that the surroundings offer.

use std::env;
use std::io::Write;
use std::sync::Mutex;

static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// A Kafka cluster that tests may use as they like.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Its addresses.
    pub brokers: String,
    /// What a client needs besides, in librdkafka's words.
    pub properties: Vec<(String, String)>,
}

/// The real Kafka cluster, if there is one; see `tools/kafka`.
#[must_use]
pub fn kafka() -> Option<Cluster> {
    let brokers = offered("kafka", "REDRIVE_KAFKA", "tools/kafka up && eval \"$(tools/kafka env)\"")?;
    let properties = [
        ("security.protocol", "REDRIVE_KAFKA_SECURITY_PROTOCOL"),
        ("ssl.ca.location", "REDRIVE_KAFKA_CA"),
        ("sasl.mechanisms", "REDRIVE_KAFKA_MECHANISM"),
        ("sasl.username", "REDRIVE_KAFKA_USER"),
        ("sasl.password", "REDRIVE_KAFKA_PASSWORD"),
    ];
    let properties = properties
        .into_iter()
        .filter_map(|(name, variable)| Some((name.to_owned(), env::var(variable).ok()?)));
    Some(Cluster { brokers, properties: properties.collect() })
}

/// The address of a real PostgreSQL, if there is one; see `tools/postgres`.
#[must_use]
pub fn postgres() -> Option<String> {
    offered("postgres", "REDRIVE_POSTGRES", "tools/postgres up && eval \"$(tools/postgres env)\"")
}

/// Whether `REDRIVE_REQUIRE` names this, so that its absence is a failure.
///
/// # Panics
/// If it names something that is not known: it would be required in vain.
#[must_use]
pub fn is_required(what: &str) -> bool {
    const KNOWN: [&str; 7] = ["kafka", "postgres", "python", "browser", "sasl", "tls", "spring"];
    let required = env::var("REDRIVE_REQUIRE").unwrap_or_default();
    let mut names = required.split(',').map(str::trim).filter(|name| !name.is_empty());
    let unknown = names.clone().find(|name| !KNOWN.contains(name));
    assert!(unknown.is_none(), "REDRIVE_REQUIRE names {unknown:?}; there are {KNOWN:?}");
    names.any(|name| name == what)
}

fn offered(what: &str, variable: &str, remedy: &str) -> Option<String> {
    if let Some(address) = env::var(variable).ok().filter(|address| !address.is_empty()) {
        return Some(address);
    }
    assert!(
        !is_required(what),
        "{what} is required by REDRIVE_REQUIRE, and {variable} is not set; start it: {remedy}"
    );
    // Once for each test program and server, and past the test runner, which keeps what a passing test
    // prints to itself.
    let mut told = TOLD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !told.iter().any(|other| other == what) {
        told.push(what.to_owned());
        let program =
            env::current_exe().ok().and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
        let program = program
            .as_deref()
            .and_then(|name| name.rsplit_once('-'))
            .map_or("tests", |(name, _)| name)
            .to_owned();
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED the tests of `{program}` that need {what}: {variable} is not set; start it: {remedy}"
        );
    }
    None
}
