//! What is said when a run begins: what runs, on what, and where to look.

use redrive::Cluster;
use redrive_config::{Brokers, Config, Subscription};
use redrive_server::Listener;

use crate::{handler_text, screen};

pub(super) fn started(config: &Config, cluster: &Cluster, listener: &Listener) {
    screen::say(&broker(config, cluster));
    for subscription in &config.subscriptions {
        screen::say(&line(subscription));
    }
    if let Some(traces) = &config.traces {
        screen::say(&format!("a span of each attempt to {}", traces.endpoint.url));
    }
    let address = listener.address();
    screen::say(&format!(
        "metrics at http://{address}/metrics, readiness at /readyz, state at /api/v1/subscriptions; Ctrl-C stops"
    ));
}

fn broker(config: &Config, cluster: &Cluster) -> String {
    let brokers = &cluster.settings().brokers;
    match (&config.kafka.brokers, &config.kafka.data) {
        (Brokers::At(_), _) => format!("on Kafka at {brokers}"),
        (Brokers::Embedded, None) => {
            format!(
                "a broker inside this process at {brokers}, in memory: gone at the end (kafka.data keeps it)"
            )
        }
        (Brokers::Embedded, Some(folder)) => {
            format!("a broker inside this process at {brokers}, kept in {}", folder.display())
        }
    }
}

fn line(subscription: &Subscription) -> String {
    let Subscription { topic, group, letters, concurrency, .. } = subscription;
    let handler = handler_text::handler(subscription.handler.as_ref());
    let name = subscription.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    format!("{name}{topic} as {group} -> {handler}, up to {concurrency} at once; dead letters to {letters}")
}
