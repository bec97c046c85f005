//! What a worker does about its topics before it starts, on the embedded broker and on real Kafka.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive::topics::{Mender, Unready, ensure};
use redrive::{Cluster, Failure, Outgoing, Publisher, Publishing, Received, Worker};
use redrive_broker::{Broker, BrokerConfig};
use redrive_config::{Subscription, Surroundings};
use redrive_core::Topic;
use redrive_kafka::{Admin, Settings};
use redrive_testkit::{kafka, new_name};

const PATIENCE: Duration = Duration::from_secs(20);

fn subscriptions(source: &Topic, lines: &str) -> Vec<Subscription> {
    let text = format!(
        "[kafka]\nbrokers = \"b\"\n[[subscription]]\ntopic = \"{source}\"\ngroup = \"pay\"\n{lines}\n"
    );
    let surroundings = Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
    redrive_config::read("redrive.toml", &text, surroundings).unwrap_or_else(|r| panic!("{r}")).subscriptions
}

async fn new_source(admin: &Admin) -> Topic {
    let source: Topic = new_name("source").parse().unwrap();
    admin.create(&source, 2, 1, &BTreeMap::new()).await.unwrap();
    source
}

fn command() -> Mender {
    Mender::Command { config: "redrive.toml".to_owned() }
}

async fn a_mismatch_is_refused_with_the_command(settings: &Settings) {
    let admin = Admin::new(settings).unwrap();
    let source = new_source(&admin).await;
    let refused = ensure(&admin, &subscriptions(&source, ""), &command()).await.unwrap_err();
    assert!(matches!(refused, Unready::Mismatch(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains(&format!("{source}.pay.dlq does not exist")), "{text}");
    assert!(
        text.ends_with(
            "help: redrive topics apply -c redrive.toml, or auto-create = true in the subscription"
        ),
        "{text}"
    );
    let letters: Topic = format!("{source}.pay.dlq").parse().unwrap();
    assert!(admin.outline(&[letters]).await.unwrap().is_empty(), "nothing is made unasked");
}

async fn workers_that_start_together_make_the_topics_once(settings: &Settings) {
    let admins =
        [Admin::new(settings).unwrap(), Admin::new(settings).unwrap(), Admin::new(settings).unwrap()];
    let source = new_source(&admins[0]).await;
    let subscriptions = subscriptions(&source, "auto-create = true");
    let mender = command();
    let [one, two, three] = admins.each_ref().map(|admin| ensure(admin, &subscriptions, &mender));
    let (one, two, three) = tokio::join!(one, two, three);
    for ready in [one, two, three] {
        let ready = ready.unwrap();
        assert_eq!((ready.found.topics.len(), ready.found.topics[&source].partitions), (3, 2));
    }
}

async fn a_source_that_gains_partitions_is_followed(settings: &Settings) {
    let admin = Admin::new(settings).unwrap();
    let source = new_source(&admin).await;
    let automatic = subscriptions(&source, "auto-create = true");
    ensure(&admin, &automatic, &command()).await.unwrap();
    admin.add_partitions(&source, 6).await.unwrap();
    // A broker may not know of the growth yet.
    let followed = async {
        loop {
            let ready = ensure(&admin, &automatic, &command()).await.unwrap();
            if ready.found.topics[&source].partitions == 6 {
                return ready.found;
            }
        }
    };
    let found = tokio::time::timeout(PATIENCE, followed).await.expect("the growth is seen in time");
    assert_eq!(found.topics.values().map(|topic| topic.partitions).collect::<Vec<_>>(), [6, 6, 6]);
    // Whoever is not to make topics is told.
    admin.add_partitions(&source, 7).await.unwrap();
    let refused = async {
        loop {
            match ensure(&admin, &subscriptions(&source, ""), &command()).await {
                Ok(_) => {}
                Err(refused) => return refused.to_string(),
            }
        }
    };
    let text = tokio::time::timeout(PATIENCE, refused).await.expect("a refusal");
    assert!(text.contains("has 6 partitions and must have 7"), "{text}");
}

async fn a_source_that_grows_right_after_the_start_is_followed(settings: &Settings) {
    let admin = Admin::new(settings).unwrap();
    let source = new_source(&admin).await;
    let cluster = Cluster::open(&settings.brokers).await.unwrap();
    let orders = redrive::Subscription::new(source.as_str(), "pay").auto_create(true);
    let orders = orders.handler(async |_: Received| Ok::<(), Failure>(()));
    let running = Worker::new(&cluster).subscribe(orders).start().await.unwrap();
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.marks.len() == 2).await.unwrap();
    admin.add_partitions(&source, 3).await.unwrap();
    let publisher = Publisher::new(settings, &Publishing::default()).unwrap();
    let record = Outgoing::to(source.clone()).partition(2).value("in the new one");
    let published = async {
        // A broker may not know of the growth yet.
        while publisher.publish(record.clone()).await.is_err() {}
        status.wait_for(|status| status.counts.handled > 0).await.unwrap();
    };
    tokio::time::timeout(3 * PATIENCE, published).await.expect("the new partition is consumed");
    running.stop().await.unwrap();
}

macro_rules! on_both {
    ($($case:ident)*) => {$(
        mod $case {
            #[tokio::test]
            async fn on_the_embedded_broker() {
                let config = super::BrokerConfig { auto_create_topics: false, ..Default::default() };
                let broker = super::Broker::start(config).await.unwrap();
                super::$case(&super::Settings::of(broker.address().to_string())).await;
            }

            #[tokio::test]
            async fn on_real_kafka() {
                let Some(cluster) = super::kafka() else { return };
                let settings = super::Settings { brokers: cluster.brokers, properties: cluster.properties };
                super::$case(&settings).await;
            }
        }
    )*};
}

on_both! {
    a_mismatch_is_refused_with_the_command
    workers_that_start_together_make_the_topics_once
    a_source_that_gains_partitions_is_followed
    a_source_that_grows_right_after_the_start_is_followed
}
