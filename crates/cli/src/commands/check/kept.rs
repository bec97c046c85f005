//! What the topics of the cluster keep, beside what the file needs them to, if the cluster can be asked.

use std::time::Duration;

use redrive::topics::{Change, Found, Note, look, plan};
use redrive_config::Subscription;
use redrive_kafka::{Admin, Error, Settings};
use tokio::net::TcpStream;

/// How long a broker may take to be there. A file is checked where there is no cluster, too.
const THERE: Duration = Duration::from_secs(1);
/// Kafka's port, where an address has none.
const PORT: &str = "9092";

/// Something that is deleted too early, and what mends it.
pub(super) struct Warning {
    pub(super) what: String,
    pub(super) help: String,
}

/// What is deleted too early; none if the cluster does not answer.
pub(super) async fn warnings(
    settings: &Settings,
    subscriptions: &[Subscription],
    file: &str,
) -> Option<Result<Vec<Warning>, Error>> {
    if subscriptions.is_empty() {
        return Some(Ok(Vec::new()));
    }
    if !is_there(&settings.brokers).await {
        return None;
    }
    let found = async { look(&Admin::new(settings)?, subscriptions).await };
    let found = found.await;
    Some(found.map(|found| of(settings, subscriptions, &found, file)))
}

fn of(settings: &Settings, subscriptions: &[Subscription], found: &Found, file: &str) -> Vec<Warning> {
    let plan = plan(subscriptions, found);
    let letters = plan.notes.iter().filter_map(|note| match note {
        Note::LettersAreDeleted { topic, setting, .. } => Some(Warning {
            what: note.to_string(),
            help: format!(
                "kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name {topic} --add-config {setting}=-1",
                settings.brokers
            ),
        }),
        Note::LettersAreCompacted { topic, .. } => Some(Warning {
            what: note.to_string(),
            help: format!("redrive dlq export --letters {topic} saves what is there; cleanup.policy=delete keeps every letter"),
        }),
        Note::MorePartitions { .. } | Note::LeftBehind { .. } => None,
    });
    let waits = plan.steps.iter().filter_map(|step| match &step.change {
        Change::Alter { setting, .. } if setting.starts_with("retention.") => {
            Some(Warning { what: step.to_string(), help: format!("redrive topics apply -c {file}") })
        }
        Change::Alter { .. }
        | Change::Create { .. }
        | Change::AddPartitions { .. }
        | Change::Cannot { .. } => None,
    });
    letters.chain(waits).collect()
}

/// Whether one of the brokers accepts connections.
async fn is_there(brokers: &str) -> bool {
    for broker in brokers.split(',') {
        let address = broker.trim();
        let address = address.split_once("://").map_or(address, |(_, address)| address);
        let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port { address.to_owned() } else { format!("{address}:{PORT}") };
        if matches!(tokio::time::timeout(THERE, TcpStream::connect(address)).await, Ok(Ok(_))) {
            return true;
        }
    }
    false
}
