//! What a run begins with: handlers, the cluster, the address; or why it does not begin.

use redrive::Cluster;
use redrive_broker::Error as BrokerError;
use redrive_config::{Brokers, Config};
use redrive_letters::feed::Feed;
use redrive_push::{BadHandler, Traces};
use redrive_server::{Error as ServerError, Letters};

use crate::commands::replay::shelves;
use crate::exit::Exit;
use crate::{letters, screen};

/// The configuration as it is run: whoever has the broker inside makes the topics, too.
pub(super) fn settled(mut config: Config) -> Config {
    if config.kafka.brokers == Brokers::Embedded {
        config.subscriptions.iter_mut().for_each(|one| one.auto_create = true);
    }
    config
}

/// Where spans go, if the file says so.
pub(super) fn traces(config: &Config, file: &str) -> Result<Option<Traces>, Exit> {
    let traces = config.traces.as_ref().map(|traces| Traces::new(traces, config.service.as_deref()));
    traces.transpose().map_err(|error| {
        say_bad(&error, file);
        Exit::Config
    })
}

/// The subscriptions with their handlers; everything that is wrong with those is told at once.
pub(super) fn handled(
    config: &Config,
    traces: Option<&Traces>,
    file: &str,
) -> Result<Vec<redrive::Subscription>, Exit> {
    let (mut subscriptions, mut is_good) = (Vec::new(), true);
    for subscription in &config.subscriptions {
        let handled = match traces {
            None => redrive_push::handled(subscription),
            Some(traces) => redrive_push::traced(subscription, traces),
        };
        match handled {
            Ok(subscription) => subscriptions.push(subscription),
            Err(error) => {
                is_good = false;
                say_bad(&error, file);
            }
        }
    }
    if config.subscriptions.is_empty() {
        screen::say(&format!(
            "error: {file} has no subscription\nhelp: write [[subscription]] with a topic, a group and a handler"
        ));
        return Err(Exit::Config);
    }
    if is_good { Ok(subscriptions) } else { Err(Exit::Config) }
}

fn say_bad(error: &BadHandler, file: &str) {
    let BadHandler { subscription, what, remedy } = error;
    screen::say(&format!("error: {file}: {subscription}: {what}\nhelp: {remedy}"));
}

/// The cluster; if it is inside, with the topics that are consumed.
pub(super) async fn cluster(config: &Config) -> Result<Cluster, Exit> {
    let kafka = &config.kafka;
    let properties = kafka.properties.iter().map(|one| (one.name.clone(), one.value.clone())).collect();
    let opened = match &kafka.brokers {
        Brokers::At(brokers) => Cluster::with(brokers, properties).await,
        Brokers::Embedded => Cluster::embedded_at(kafka.listen, kafka.data.clone(), properties).await,
    };
    let cluster = opened.map_err(|error| {
        let help = match &error {
            redrive::Error::Broker(BrokerError::Remote { .. }) => Some("let kafka.listen be on 127.0.0.1"),
            redrive::Error::Broker(BrokerError::Listen { .. }) => {
                Some("is another broker running there? kafka.listen names another address")
            }
            redrive::Error::Broker(BrokerError::InUse { .. }) => {
                Some("stop the other one, or let kafka.data differ")
            }
            _ => None,
        };
        failed(&screen::told(&error), help)
    })?;
    if let Some(broker) = cluster.broker() {
        for subscription in &config.subscriptions {
            let made = broker.create_topic(subscription.topic.as_str(), 1);
            made.map_err(|error| failed(&screen::told(&error), None))?;
        }
    }
    Ok(cluster)
}

/// What is needed to deal with letters over HTTP, or why that cannot be.
pub(super) fn letters(config: &Config, cluster: &Cluster) -> Result<Letters, String> {
    let folder = letters::folder(None, Some(config)).ok_or_else(|| {
        "there is no home folder to keep the index of letters in; name one with `state` in [letters]"
            .to_owned()
    })?;
    let which = letters::which(Some(config)).map_err(|error| screen::told(&error))?;
    let settings = cluster.settings().clone();
    let links = config.letters.links.iter().map(|link| (link.name.clone(), link.template.clone()));
    Ok(Letters {
        feed: Feed::new(&settings, &folder, which),
        settings,
        links: links.collect(),
        shelves: shelves(Some(config)),
        max_replays: config.letters.max_replays,
    })
}

pub(super) fn not_listening(error: &ServerError) -> Exit {
    let help = match error {
        ServerError::Listen { .. } => {
            "does another run here? server.listen names another address, with port 0 a free one"
        }
        ServerError::Open { .. } => "write server.token = \"${REDRIVE_TOKEN}\", or listen on 127.0.0.1",
    };
    failed(&screen::told(error), Some(help))
}

pub(super) fn not_started(error: &redrive::Error) -> Exit {
    failed(&screen::told(error), None);
    match error {
        redrive::Error::Settings(_) => Exit::Config,
        _ => Exit::Failed,
    }
}

fn failed(what: &str, help: Option<&str>) -> Exit {
    screen::say(&format!("error: {what}"));
    if let Some(help) = help {
        screen::say(&format!("help: {help}"));
    }
    Exit::Failed
}
