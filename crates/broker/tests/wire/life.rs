//! Starting, stopping and starting again.

use kafka_protocol::ResponseError;
use kafka_protocol::messages::MetadataRequest;
use redrive_broker::{Broker, BrokerConfig, Data, Error};

use super::client::{Client, PATIENCE, batch};

fn in_dir(path: &std::path::Path) -> BrokerConfig {
    BrokerConfig { data: Data::Dir(path.to_owned()), ..BrokerConfig::default() }
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused_unless_allowed() {
    let listen = "0.0.0.0:0".parse().unwrap();
    let refused = Broker::start(BrokerConfig { listen, ..BrokerConfig::default() }).await;
    assert!(matches!(refused, Err(Error::Remote { .. })));
    let allowed = Broker::start(BrokerConfig { listen, allow_remote: true, ..BrokerConfig::default() }).await;
    allowed.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_second_broker_on_the_same_directory_is_refused_until_the_first_has_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let first = Broker::start(in_dir(dir.path())).await.unwrap();
    assert!(matches!(Broker::start(in_dir(dir.path())).await, Err(Error::InUse { .. })));
    let id = first.cluster_id().to_owned();
    first.shutdown().await;
    let second = Broker::start(in_dir(dir.path())).await.unwrap();
    assert_eq!(second.cluster_id(), id, "the cluster stays the same");
    second.shutdown().await;
}

#[tokio::test]
async fn records_and_topic_ids_survive_a_broker_that_was_not_shut_down() {
    let dir = tempfile::tempdir().unwrap();
    let first = Broker::start(in_dir(dir.path())).await.unwrap();
    let mut client = Client::connect(&first).await;
    client.create("t").await;
    client.produce("t", batch("kept")).await;
    let id = topic_id(&mut client).await;
    drop(client);
    drop(first);
    let second = reopened(dir.path()).await;
    let mut client = Client::connect(&second).await;
    assert_eq!(topic_id(&mut client).await, id);
    let response = client.fetch("t", 0, 0).await;
    let records = response.responses[0].partitions[0].records.clone().unwrap();
    assert!(records.ends_with(b"kept\0"));
    second.shutdown().await;
}

#[tokio::test]
async fn a_topic_made_anew_has_another_id_and_none_of_the_records() {
    use kafka_protocol::messages::DeleteTopicsRequest;
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(in_dir(dir.path())).await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    client.produce("t", batch("gone")).await;
    let id = topic_id(&mut client).await;
    let names = vec![super::client::name("t")];
    client.call(&DeleteTopicsRequest::default().with_topic_names(names).with_timeout_ms(1_000), 5).await;
    client.create("t").await;
    assert_ne!(topic_id(&mut client).await, id);
    assert_eq!(client.fetch("t", 0, 0).await.responses[0].partitions[0].high_watermark, 0);
    broker.shutdown().await;
}

#[tokio::test]
async fn old_records_leave_by_themselves_while_the_broker_runs() {
    let config =
        BrokerConfig { retention_interval: std::time::Duration::from_millis(20), ..BrokerConfig::default() };
    let broker = Broker::start(config).await.unwrap();
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    // Its time is 1970, and a topic keeps a week.
    client.produce("t", batch("old")).await;
    let gone = async {
        loop {
            let partition = client.fetch("t", 0, 0).await.responses[0].partitions[0].clone();
            if partition.error_code == ResponseError::OffsetOutOfRange.code() {
                return;
            }
            assert_eq!(partition.error_code, 0);
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("retention in the background");
    let after = client.fetch("t", 1, 0).await.responses[0].partitions[0].clone();
    assert_eq!((after.log_start_offset, after.high_watermark), (1, 1));
    broker.shutdown().await;
}

async fn topic_id(client: &mut Client) -> uuid::Uuid {
    client.call(&MetadataRequest::default().with_topics(None), 12).await.topics[0].topic_id
}

/// A dropped broker lets its directory go when its tasks have ended, which the runtime does by itself.
async fn reopened(dir: &std::path::Path) -> Broker {
    loop {
        match Broker::start(in_dir(dir)).await {
            Ok(broker) => return broker,
            Err(Error::InUse { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
}
