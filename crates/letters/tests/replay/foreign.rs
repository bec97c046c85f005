//! Letters of others, with the bytes that they write.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use redrive::{Clock, Cluster, Outgoing};
use redrive_letters::jobs::{Options, Whereto};
use redrive_letters::replay::{Ended, Route, Why, control};

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

/// A letter of a share group that copies nothing: where its record is, and no more.
fn share(source: &str, letters: &str, partition: i32, offset: i64) -> Outgoing {
    Outgoing::to(topic(letters))
        .partition(0)
        .header("__dlq.errors.topic", source.to_owned())
        .header("__dlq.errors.partition", partition.to_string())
        .header("__dlq.errors.offset", offset.to_string())
        .header("__dlq.errors.group", "share-1")
        .header("__dlq.errors.delivery.count", "5")
}

/// A letter as a how-to has people write it: the topic alone is told.
fn seed(source: &str, letters: &str, key: &str, offset: i64) -> Outgoing {
    Outgoing::to(topic(letters))
        .partition(0)
        .key(key.to_owned())
        .value(format!("order {offset}"))
        .header("mine", "1")
        .header("original-topic", source.to_owned())
        .header("X_DELAY_ROUTE", "delay.10s,orders")
        .header("X_DELAY_COUNTER", "3")
        .header("dlq-reason", "Max retries exceeded")
}

on_both! {
    letters_of_others_go_to_the_topic_and_partition_they_came_from_with_the_users_headers_alone,
    a_letter_that_names_a_partition_below_zero_is_left_out_and_holds_up_no_other,
    a_letter_that_its_topic_refuses_for_good_is_left_out_told_and_holds_up_no_other,
    a_letter_that_only_points_to_its_record_goes_back_with_its_key_and_headers_and_one_that_points_nowhere_is_told,
    a_letter_that_names_its_topic_alone_goes_where_kafka_put_its_key_at_first,
}

async fn a_letter_that_names_a_partition_below_zero_is_left_out_and_holds_up_no_other(cluster: Cluster) {
    let (source, letters) = topics(&cluster).await;
    let bad = Outgoing { partition: Some(0), ..spring(&source, &letters, -5, 7) };
    put(&cluster, vec![spring(&source, &letters, 0, 1), bad, spring(&source, &letters, 0, 2)]).await;
    let candidates = candidates(&cluster, &letters, 3).await;
    for to in [Whereto::Usual, Whereto::Origin] {
        let wanted = wanted(to, Options { again: true, ..Options::default() });
        let (job, plan) = begin(&cluster, &wanted, &candidates).await;
        assert_eq!((plan.letters.len(), plan.left_out), (2, BTreeMap::from([(Why::BadPartition, 1)])));
        assert_eq!(run(&cluster, job.unwrap(), &wanted.to).await, Ended::Finished);
    }
    assert_eq!(all(&cluster, &source, 3).await.len(), 4);
    // Where somebody names a topic, its key leads.
    let wanted = wanted(Whereto::Topic(topic(&source)), Options { again: true, ..Options::default() });
    let (job, plan) = begin(&cluster, &wanted, &candidates).await;
    assert_eq!((plan.letters.len(), plan.left_out.len()), (3, 0));
    assert_eq!(run(&cluster, job.unwrap(), &wanted.to).await, Ended::Finished);
    assert_eq!(all(&cluster, &source, 3).await.len(), 7);
}

async fn a_letter_that_its_topic_refuses_for_good_is_left_out_told_and_holds_up_no_other(cluster: Cluster) {
    let (source, letters) = topics(&cluster).await;
    let compacted = redrive_testkit::new_name("compacted");
    let settings = BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]);
    let admin = redrive_kafka::Admin::new(cluster.settings()).unwrap();
    admin.create(&topic(&compacted), 3, 1, &settings).await.unwrap();
    let mut all_letters: Vec<_> = (0..40).map(|n| spring(&source, &letters, 0, n)).collect();
    all_letters[17].key = None;
    put(&cluster, all_letters).await;
    let candidates = candidates(&cluster, &letters, 3).await;
    let wanted = wanted(Whereto::Topic(topic(&compacted)), Options::default());
    let (job, _) = begin(&cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let id = job.id().clone();
    assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
    let sent: Vec<_> =
        all(&cluster, &compacted, 3).await.iter().map(|record| text(record.value.as_ref())).collect();
    let others: Vec<_> = (0..40).filter(|n| *n != 17).map(|n| format!("order {n}")).collect();
    assert_eq!(sent, others, "each once, in order");
    let clock = Clock::system();
    let job = control::listen(cluster.settings(), &clock, &id, Duration::ZERO, |_| {}).await.unwrap();
    assert_eq!((job.counts().sent, job.counts().skipped), (39, 1));
    assert_eq!(job.why(17), Some(Why::Refused(topic(&compacted)).to_string().as_str()));
}

async fn a_letter_that_only_points_to_its_record_goes_back_with_its_key_and_headers_and_one_that_points_nowhere_is_told(
    cluster: Cluster,
) {
    let (source, letters) = topics(&cluster).await;
    let other = redrive_testkit::new_name("other");
    cluster.create_topic(&other, 3).await.unwrap();
    let record = Outgoing::to(topic(&source)).partition(1).key("c-7").value("order 0");
    put(&cluster, vec![record.header("mine", "1").header("trace", "t").header("mine", "2")]).await;
    let ours = Outgoing::to(topic(&letters))
        .partition(0)
        .header("redrive-origin", format!("{source}/1/0"))
        .header("redrive-group", "billing")
        .header("redrive-reason", "cancelled")
        .header("redrive-pointer", format!("{source}/1/0"));
    let nowhere =
        [(7, 0), (1, 99), (-5, 0), (1, -3)].map(|(at, offset)| share(&source, &letters, at, offset));
    let gone = share("no-such-topic", &letters, 0, 0);
    put(&cluster, [vec![share(&source, &letters, 1, 0), ours, gone], nowhere.into()].concat()).await;
    let candidates = candidates(&cluster, &letters, 3).await;
    let wanted = wanted(Whereto::Topic(topic(&other)), Options::default());
    let (job, _) = begin(&cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let id = job.id().clone();
    assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
    let sent = all(&cluster, &other, 3).await;
    assert_eq!(sent.len(), 2);
    for record in &sent {
        let told = (record.at.partition, text(record.key.as_ref()), text(record.value.as_ref()));
        assert_eq!(told, (1, "c-7".to_owned(), "order 0".to_owned()));
        let mine = record.headers.iter().filter(|header| !header.name.starts_with("redrive-"));
        let mine: Vec<_> =
            mine.map(|header| (header.name.to_string(), text(header.value.as_ref()))).collect();
        let users = [("mine", "1"), ("trace", "t"), ("mine", "2")];
        assert_eq!(mine, users.map(|(name, value)| (name.to_owned(), value.to_owned())), "in order");
    }
    let clock = Clock::system();
    let job = control::listen(cluster.settings(), &clock, &id, Duration::ZERO, |_| {}).await.unwrap();
    let why = Why::OriginalGone.to_string();
    assert_eq!(job.whys().into_iter().collect::<Vec<_>>(), [(why.as_str(), 5)]);
}

async fn a_letter_that_names_its_topic_alone_goes_where_kafka_put_its_key_at_first(cluster: Cluster) {
    let (source, letters) = topics(&cluster).await;
    let keys = ["c-1", "c-2", "c-3", "c-4", "c-5"];
    // Without a partition: where Kafka's own producers put the key.
    let first = keys.map(|key| Outgoing::to(topic(&source)).key(key).value("first"));
    put(&cluster, first.into()).await;
    put(&cluster, (0..5).map(|n| seed(&source, &letters, keys[n], n as i64)).collect()).await;
    let candidates = candidates(&cluster, &letters, 3).await;
    let wanted = wanted(Whereto::Usual, Options::default());
    let (job, plan) = begin(&cluster, &wanted, &candidates).await;
    assert_eq!(plan.routes, BTreeMap::from([(Route::ByKey(topic(&source)), 5)]));
    assert_eq!(run(&cluster, job.unwrap(), &wanted.to).await, Ended::Finished);
    let all = all(&cluster, &source, 3).await;
    assert_eq!(all.len(), 10);
    for key in keys {
        let of = all.iter().filter(|record| record.key.as_deref() == Some(key.as_bytes()));
        let partitions: Vec<_> = of.map(|record| record.at.partition).collect();
        assert!(partitions.len() == 2 && partitions[0] == partitions[1], "{key}: {partitions:?}");
    }
    let back = all.iter().find(|record| record.value.as_deref() == Some(b"order 0")).unwrap();
    let mut theirs = back.headers.iter().filter(|header| !header.name.starts_with("redrive-replay"));
    assert!(theirs.all(|header| header.name == "mine"), "{:?}", back.headers);
}

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
