//! Topics looked at and changed, on the embedded broker and on real Apache Kafka alike.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_broker::{Broker, BrokerConfig};
use redrive_core::headers::Headers;
use redrive_core::{Origin, Topic};
use redrive_kafka::{Admin, Error, Outgoing, Publisher, SetFor, Settings, TopicState};
use redrive_testkit::{Cluster, kafka, new_name};

/// A broker that makes topics when it is asked for them, as Kafka does by default.
async fn embedded() -> (Broker, Settings) {
    let broker = Broker::start(BrokerConfig::default()).await.expect("a broker");
    let settings = Settings::of(broker.address().to_string());
    (broker, settings)
}

fn settings_of(cluster: Cluster) -> Settings {
    Settings { brokers: cluster.brokers, properties: cluster.properties }
}

fn topic(purpose: &str) -> Topic {
    new_name(purpose).parse().unwrap()
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Brokers of a cluster learn of a change one after the other.
async fn when(admin: &Admin, topic: &Topic, is_so: impl Fn(&TopicState) -> bool) -> TopicState {
    let wait = async {
        let mut turns = tokio::time::interval(Duration::from_millis(50));
        loop {
            turns.tick().await;
            let mut found = admin.describe(std::slice::from_ref(topic)).await.unwrap();
            if let Some(state) = found.remove(topic).filter(&is_so) {
                return state;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the topic changes in time")
}

async fn a_topic_is_made_grown_and_altered(settings: &Settings) {
    let admin = Admin::new(settings).unwrap();
    let name = topic("admin");
    admin.create(&name, 2, 1, &values(&[("retention.ms", "86400000")])).await.unwrap();
    let made = when(&admin, &name, |_| true).await;
    assert_eq!((made.name.clone(), made.partitions, made.replication), (name.clone(), 2, 1));
    let id = made.id.expect("a topic id");
    assert_eq!(id.to_string().parse(), Ok(id));
    assert_eq!(made.settings["retention.ms"].value, "86400000");
    assert_eq!(made.settings["retention.ms"].set_for, SetFor::Topic);
    assert_eq!(made.settings["min.insync.replicas"].set_for, SetFor::All);

    admin.add_partitions(&name, 5).await.unwrap();
    admin.alter(&name, &values(&[("max.message.bytes", "2000000")])).await.unwrap();
    let is_changed =
        |state: &TopicState| state.partitions == 5 && state.settings["max.message.bytes"].value == "2000000";
    let grown = when(&admin, &name, is_changed).await;
    assert_eq!(grown.id, Some(id));
    assert_eq!(grown.settings["retention.ms"].value, "86400000", "what is not named stays");
    assert!(admin.topics().await.unwrap().contains(&name));
    assert!(admin.cluster().await.unwrap().id.is_some());
    assert!(admin.cluster().await.unwrap().brokers >= 1);
}

async fn asking_for_a_topic_does_not_make_it(settings: &Settings) {
    let admin = Admin::new(settings).unwrap();
    let missing = topic("missing");
    for _ in 0..2 {
        assert!(admin.describe(std::slice::from_ref(&missing)).await.unwrap().is_empty());
    }
    assert!(!admin.topics().await.unwrap().contains(&missing));
    assert!(admin.describe(&[]).await.unwrap().is_empty());
}

async fn a_refusal_has_the_brokers_reason(settings: &Settings) {
    let admin = Admin::new(settings).unwrap();
    let name = topic("refused");
    admin.create(&name, 2, 1, &BTreeMap::new()).await.unwrap();
    let said = |error: Error| (error.to_string(), error.refusal().expect("a refusal").to_string());
    let error = admin.create(&name, 2, 1, &BTreeMap::new()).await.unwrap_err();
    assert!(error.refusal().is_some_and(redrive_kafka::Refused::is_there_already), "{error:?}");
    when(&admin, &name, |_| true).await;
    let (what, _) = said(admin.add_partitions(&name, 1).await.unwrap_err());
    assert_eq!(what, format!("cannot add partitions to {name}"));
    let bad = values(&[("retention.ms", "soon")]);
    let (what, why) = said(admin.alter(&name, &bad).await.unwrap_err());
    assert_eq!(what, format!("cannot change the settings of {name}"));
    assert!(why.contains("soon"), "{why}");
    let (_, why) = said(admin.create(&topic("wide"), 1, 9, &BTreeMap::new()).await.unwrap_err());
    assert!(why.contains("eplication"), "{why}");
}

async fn records_are_counted_and_deleted(settings: &Settings) {
    let admin = Admin::new(settings).unwrap();
    let name = topic("records");
    admin.create(&name, 2, 1, &BTreeMap::new()).await.unwrap();
    let publisher = Publisher::new(settings, &redrive_kafka::Publishing::default()).unwrap();
    let record = Outgoing {
        topic: name.clone(),
        partition: Some(1),
        timestamp: None,
        key: None,
        value: None,
        headers: Headers::default(),
    };
    for _ in 0..4 {
        publisher.publish(record.clone()).await.unwrap();
    }
    assert_eq!(admin.span(&name, 2).await.unwrap(), 4);
    let below = Origin { topic: name.clone(), partition: 1, offset: 3 };
    assert_eq!(admin.delete_records(&below).await.unwrap(), 3);
    assert_eq!(admin.span(&name, 2).await.unwrap(), 1);
    let beyond = Origin { offset: 99, ..below };
    let error = admin.delete_records(&beyond).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot delete records of {name}"));
}

macro_rules! on_both {
    ($($case:ident)*) => {$(
        mod $case {
            #[tokio::test]
            async fn on_the_embedded_broker() {
                let (_broker, settings) = super::embedded().await;
                super::$case(&settings).await;
            }

            #[tokio::test]
            async fn on_real_kafka() {
                let Some(cluster) = super::kafka() else { return };
                super::$case(&super::settings_of(cluster)).await;
            }
        }
    )*};
}

on_both! {
    a_topic_is_made_grown_and_altered
    asking_for_a_topic_does_not_make_it
    a_refusal_has_the_brokers_reason
    records_are_counted_and_deleted
}

#[tokio::test]
async fn a_cluster_that_is_not_there_is_named_with_the_reason() {
    let admin = Admin::new(&Settings::of("127.0.0.1:1")).unwrap();
    let asked = tokio::time::timeout(Duration::from_secs(40), admin.cluster()).await;
    let error = asked.expect("an answer in time").unwrap_err();
    assert_eq!(error.to_string(), "cannot reach Kafka at 127.0.0.1:1");
    let why = error.refusal().unwrap().to_string();
    assert!(why.contains("Connection refused"), "{why}");
    let asked = tokio::time::timeout(Duration::from_secs(40), admin.describe(&[topic("any")])).await;
    let error = asked.expect("an answer in time").unwrap_err();
    assert_eq!(error.to_string(), "cannot reach Kafka at 127.0.0.1:1");
}
