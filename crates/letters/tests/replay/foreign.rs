//! Letters of others, with the bytes that they write.

use bytes::Bytes;
use redrive::{Cluster, Outgoing};
use redrive_letters::jobs::{Options, Whereto};
use redrive_letters::replay::{Ended, Route};

use crate::ground::{all, begin, candidates, on_both, put, run, text, topic, topics, wanted};

/// Headers as Spring Kafka writes them: numbers as big-endian bytes.
fn spring(source: &str, letters: &str, partition: i32, offset: i64) -> Outgoing {
    Outgoing::to(topic(letters))
        .partition(partition)
        .key("c-7")
        .value(format!("order {offset}"))
        .header("mine", "1")
        .header("kafka_dlt-original-topic", source.to_owned())
        .header("kafka_dlt-original-partition", Bytes::copy_from_slice(&partition.to_be_bytes()))
        .header("kafka_dlt-original-offset", Bytes::copy_from_slice(&offset.to_be_bytes()))
        .header("kafka_dlt-original-timestamp", Bytes::copy_from_slice(&1_700_000_000_000_i64.to_be_bytes()))
        .header("kafka_dlt-original-consumer-group", "billing")
        .header(
            "kafka_dlt-exception-fqcn",
            "org.springframework.kafka.listener.ListenerExecutionFailedException",
        )
        .header("kafka_dlt-exception-message", "Listener failed")
        .header("kafka_dlt-exception-stacktrace", "org.springframework...")
        .header("mine", "2")
}

fn connect(source: &str, letters: &str, partition: i32, offset: i64) -> Outgoing {
    Outgoing::to(topic(letters))
        .partition(partition)
        .key("c-8")
        .value(format!("order {offset}"))
        .header("__connect.errors.topic", source.to_owned())
        .header("__connect.errors.partition", partition.to_string())
        .header("__connect.errors.offset", offset.to_string())
        .header("__connect.errors.connector.name", "sink")
        .header("__connect.errors.task.id", "0")
        .header("__connect.errors.stage", "VALUE_CONVERTER")
        .header("__connect.errors.class.name", "org.apache.kafka.connect.json.JsonConverter")
        .header("__connect.errors.exception.class.name", "org.apache.kafka.connect.errors.DataException")
        .header("__connect.errors.exception.message", "Converting byte[] failed")
        .header("mine", "3")
}

on_both! { letters_of_others_go_to_the_topic_and_partition_they_came_from_with_the_users_headers_alone }

async fn letters_of_others_go_to_the_topic_and_partition_they_came_from_with_the_users_headers_alone(
    cluster: Cluster,
) {
    let (source, letters) = topics(&cluster).await;
    let (spring, connect) = (
        |partition, offset| spring(&source, &letters, partition, offset),
        |partition, offset| connect(&source, &letters, partition, offset),
    );
    put(&cluster, vec![spring(2, 41), connect(1, 9), spring(2, 40)]).await;
    let candidates = candidates(&cluster, &letters, 3).await;
    let wanted = wanted(Whereto::Usual, Options::default());
    let (job, plan) = begin(&cluster, &wanted, &candidates).await;
    assert_eq!(plan.routes.keys().collect::<Vec<_>>(), [&Route::Origin(topic(&source))]);
    assert_eq!(run(&cluster, job.unwrap(), &wanted.to).await, Ended::Finished);
    let sent = all(&cluster, &source, 3).await;
    let told: Vec<_> = sent.iter().map(|record| (record.at.partition, text(record.value.as_ref()))).collect();
    let wanted = [(1, "order 9"), (2, "order 40"), (2, "order 41")];
    assert_eq!(told, wanted.map(|(partition, value)| (partition, value.to_owned())));
    for record in &sent {
        let mut theirs = record.headers.iter().filter(|header| !header.name.starts_with("redrive-replay"));
        assert!(theirs.all(|header| header.name == "mine"), "{:?}", record.headers);
        assert_eq!(record.headers.text("redrive-replays"), Some("1"));
    }
    let mine: Vec<_> = sent[1].headers.all("mine").map(|value| value.unwrap_or_default().to_vec()).collect();
    assert_eq!(mine, [b"1", b"2"], "in order");
}
