//! Every API in every version that is advertised is answered in that version.

use kafka_protocol::messages as m;
use kafka_protocol::protocol::{Request, StrBytes};

use super::client::{Client, batch, broker, fetch, name, produce};

/// Calls one API in each of its advertised versions; a closed connection or a wrong form fails.
async fn in_all_versions<Q: Request>(
    client: &mut Client,
    ranges: &[(i16, i16, i16)],
    request: impl Fn(i16) -> Q,
) {
    let (_, min, max) = ranges
        .iter()
        .find(|(key, ..)| *key == Q::KEY)
        .expect("advertised");
    // Produce is advertised from 0 on for the sake of old clients; the codecs begin at 3.
    let min = if Q::KEY == m::ApiKey::Produce as i16 {
        3
    } else {
        *min
    };
    for version in min..=*max {
        client.send(&request(version), version).await;
        let answer = client.receive::<Q>(version).await;
        assert!(
            answer.is_some(),
            "{:?} version {version}",
            m::ApiKey::try_from(Q::KEY)
        );
    }
}

macro_rules! plain {
    ($client:ident, $ranges:ident, $($request:ty),+ $(,)?) => {
        $(in_all_versions::<$request>(&mut $client, &$ranges, |_| <$request>::default()).await;)+
    };
}

#[tokio::test]
async fn every_advertised_version_is_answered() {
    let broker = broker().await;
    let mut client = Client::connect(&broker).await;
    client.create("t").await;
    client.produce("t", batch("x")).await;
    let advertised = client.call(&m::ApiVersionsRequest::default(), 0).await;
    let ranges: Vec<_> = advertised
        .api_keys
        .iter()
        .map(|api| (api.api_key, api.min_version, api.max_version))
        .collect();

    plain!(
        client,
        ranges,
        m::MetadataRequest,
        m::DescribeClusterRequest,
        m::ListOffsetsRequest,
        m::OffsetForLeaderEpochRequest,
        m::DeleteRecordsRequest,
        m::CreateTopicsRequest,
        m::DeleteTopicsRequest,
        m::CreatePartitionsRequest,
        m::ListPartitionReassignmentsRequest,
        m::DescribeConfigsRequest,
        m::AlterConfigsRequest,
        m::IncrementalAlterConfigsRequest,
        m::DescribeLogDirsRequest,
        m::DescribeProducersRequest,
        m::DescribeTopicPartitionsRequest,
        m::JoinGroupRequest,
        m::SyncGroupRequest,
        m::HeartbeatRequest,
        m::LeaveGroupRequest,
        m::OffsetCommitRequest,
        m::OffsetFetchRequest,
        m::OffsetDeleteRequest,
        m::ListGroupsRequest,
        m::DescribeGroupsRequest,
        m::DeleteGroupsRequest,
        m::InitProducerIdRequest,
        m::AddPartitionsToTxnRequest,
        m::AddOffsetsToTxnRequest,
        m::TxnOffsetCommitRequest,
        m::EndTxnRequest,
    );
    in_all_versions(&mut client, &ranges, |_| software()).await;
    in_all_versions(&mut client, &ranges, |_| {
        m::MetadataRequest::default().with_topics(None)
    })
    .await;
    in_all_versions(&mut client, &ranges, |_| produce("t", batch("x"), -1)).await;
    in_all_versions(&mut client, &ranges, |version| {
        let mut request = fetch("t", 0, 0);
        if version >= 13 {
            request.topics[0].topic = m::TopicName::default();
        }
        request
    })
    .await;
    in_all_versions(&mut client, &ranges, list_offsets).await;
    in_all_versions(&mut client, &ranges, coordinator).await;
    in_all_versions(&mut client, &ranges, |_| topic_to_be(false)).await;
    in_all_versions(&mut client, &ranges, |_| topic_to_be(true)).await;
    in_all_versions(&mut client, &ranges, |_| configs()).await;
    broker.shutdown().await;
}

fn software() -> m::ApiVersionsRequest {
    m::ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("raw"))
        .with_client_software_version(StrBytes::from_static_str("1"))
}

fn list_offsets(_: i16) -> m::ListOffsetsRequest {
    use m::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let at = |timestamp| ListOffsetsPartition::default().with_timestamp(timestamp);
    let topic = ListOffsetsTopic::default()
        .with_name(name("t"))
        .with_partitions([-1, -2, 0].map(at).to_vec());
    m::ListOffsetsRequest::default().with_topics(vec![topic])
}

fn coordinator(version: i16) -> m::FindCoordinatorRequest {
    let key = StrBytes::from_static_str("g");
    match version >= 4 {
        true => m::FindCoordinatorRequest::default().with_coordinator_keys(vec![key]),
        false => m::FindCoordinatorRequest::default().with_key(key),
    }
}

fn topic_to_be(validate_only: bool) -> m::CreateTopicsRequest {
    let topic = m::create_topics_request::CreatableTopic::default()
        .with_name(name("another"))
        .with_num_partitions(2)
        .with_replication_factor(1);
    m::CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_validate_only(validate_only)
}

fn configs() -> m::DescribeConfigsRequest {
    use m::describe_configs_request::DescribeConfigsResource;
    let resource = |kind, name| {
        DescribeConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(name)
            .with_configuration_keys(None)
    };
    let topic = resource(2, StrBytes::from_static_str("t"));
    m::DescribeConfigsRequest::default()
        .with_resources(vec![topic, resource(4, StrBytes::from_static_str("1"))])
}
