//! A transaction shows its records and commits its offsets together, or neither.

mod ground;

use std::time::Duration;

use bytes::Bytes;
use ground::{Ground, assigned, event, new_group, numbered, soon};
use redrive_broker::faults::{ApiKey, Effect, Fault, ResponseError};
use redrive_core::{Origin, Topic};
use redrive_kafka::{
    Consumer, Event, Events, Mark, Outgoing, Picker, Reader, Refusal, Transacting, TransactionFailed,
    Transactions,
};
use redrive_testkit::new_name;

on_both!(
    records_and_offsets_are_committed_together,
    a_refused_record_is_named_and_nothing_is_shown,
    an_older_generation_is_fenced_off,
    a_newer_producer_of_the_same_id_fences_the_older_off,
    a_producer_that_is_fenced_off_while_it_publishes_says_so,
    an_end_without_a_record_before_it_is_found,
);

async fn transactions(ground: &Ground, id: &str) -> Transactions {
    soon(Transactions::new(&ground.settings(), id, &Transacting::default())).await.unwrap()
}

async fn member(ground: &Ground, from: &Topic, group: &str) -> (Consumer, Events) {
    let (consumer, mut events) = ground.join(from, group);
    assigned(&mut events).await;
    (consumer, events)
}

fn mark(offset: i64) -> Vec<Mark> {
    vec![Mark { partition: 0, offset, metadata: format!("at {offset}") }]
}

async fn committed(consumer: &Consumer) -> Option<i64> {
    consumer.committed(&[0], Duration::from_secs(30)).await.unwrap()[0].offset
}

/// The keys of what a reader of committed records sees first.
async fn shown(ground: &Ground, topic: &Topic, many: usize) -> Vec<String> {
    let from = Origin { topic: topic.clone(), partition: 0, offset: 0 };
    let reader = Reader::from(&ground.settings(), from).unwrap();
    let mut keys = Vec::new();
    while keys.len() < many {
        let key = soon(reader.next()).await.unwrap().key.unwrap();
        keys.push(String::from_utf8(key.to_vec()).unwrap());
    }
    keys
}

async fn records_and_offsets_are_committed_together(ground: &Ground) {
    let (from, to, group) = (ground.topic("from", 1).await, ground.topic("to", 1).await, new_group());
    let (consumer, _events) = member(ground, &from, &group).await;
    let transactions = transactions(ground, &new_name("id")).await;
    for turn in 0..3 {
        let outgoing = (0..100).map(|number| numbered(&to, 0, turn * 100 + number)).collect();
        let place = consumer.group_metadata().unwrap();
        soon(transactions.run(outgoing, mark(turn + 1), &from, place)).await.unwrap();
        assert_eq!(committed(&consumer).await, Some(turn + 1));
    }
    let expected: Vec<_> = (0..300).map(|number| number.to_string()).collect();
    assert_eq!(shown(ground, &to, 300).await, expected);
    // Offsets alone are a transaction, too; records alone are none.
    let place = consumer.group_metadata().unwrap();
    soon(transactions.run(Vec::new(), mark(9), &from, place)).await.unwrap();
    assert_eq!(committed(&consumer).await, Some(9));
    let place = consumer.group_metadata().unwrap();
    let unmarked = transactions.run(vec![numbered(&to, 0, 0)], Vec::new(), &from, place).await;
    assert!(matches!(unmarked, Err(TransactionFailed::Unmarked)));
    consumer.leave().await;
}

async fn a_refused_record_is_named_and_nothing_is_shown(ground: &Ground) {
    let (from, group) = (ground.topic("from", 1).await, new_group());
    let to = ground.topic_with("to", 1, &[("max.message.bytes", "5000")]).await;
    let missing: Topic = new_name("missing").parse().unwrap();
    let (consumer, _events) = member(ground, &from, &group).await;
    let mut transactions = transactions(ground, &new_name("id")).await;
    let large = |bytes| Outgoing { value: Some(Bytes::from(vec![0; bytes])), ..numbered(&to, 0, 1) };
    let cases = [
        (large(2_000_000), Refusal::TooLarge),
        (large(20_000), Refusal::TooLarge),
        (numbered(&to, 5, 1), Refusal::MissingPartition),
        (numbered(&missing, 0, 1), Refusal::MissingTopic),
    ];
    for (bad, expected) in cases {
        let outgoing = vec![numbered(&to, 0, 0), bad.clone()];
        let place = consumer.group_metadata().unwrap();
        match soon(transactions.run(outgoing, mark(1), &from, place)).await {
            Err(TransactionFailed::Refused { index, topic, kind, .. }) => {
                assert_eq!((topic, kind), (bad.topic, expected));
                // What is put into one batch with it is refused with it.
                assert!(index == 1 || kind == Refusal::TooLarge, "{index}");
            }
            other => panic!("not refused: {other:?}"),
        }
        assert_eq!(committed(&consumer).await, None);
    }
    let place = consumer.group_metadata().unwrap();
    soon(transactions.run(vec![numbered(&to, 0, 7)], mark(1), &from, place)).await.unwrap();
    soon(transactions.renew()).await.unwrap();
    let place = consumer.group_metadata().unwrap();
    soon(transactions.run(vec![numbered(&to, 0, 8)], mark(2), &from, place)).await.unwrap();
    assert_eq!(shown(ground, &to, 2).await, ["7", "8"]);
    consumer.leave().await;
}

async fn an_older_generation_is_fenced_off(ground: &Ground) {
    let (from, to, group) = (ground.topic("from", 2).await, ground.topic("to", 1).await, new_group());
    let (first, mut events) = member(ground, &from, &group).await;
    let transactions = transactions(ground, &new_name("id")).await;
    let old = first.group_metadata().unwrap();
    let (second, mut others) = ground.join(&from, &group);
    let Event::Revoked(revoked) = event(&mut events).await else { panic!("a revocation") };
    first.give_up(&revoked).unwrap();
    assigned(&mut others).await;
    let fenced = soon(transactions.run(vec![numbered(&to, 0, 1)], mark(5), &from, old)).await;
    assert!(matches!(fenced, Err(TransactionFailed::Fenced(_))), "{fenced:?}");
    assert_eq!(committed(&second).await, None);
    // It is undone, and the next one stands.
    let now = second.group_metadata().unwrap();
    soon(transactions.run(vec![numbered(&to, 0, 2)], mark(6), &from, now)).await.unwrap();
    assert_eq!(shown(ground, &to, 1).await, ["2"]);
    first.leave().await;
    second.leave().await;
}

async fn a_newer_producer_of_the_same_id_fences_the_older_off(ground: &Ground) {
    let (from, to, group) = (ground.topic("from", 1).await, ground.topic("to", 1).await, new_group());
    let (consumer, _events) = member(ground, &from, &group).await;
    let id = new_name("id");
    let older = transactions(ground, &id).await;
    let newer = transactions(ground, &id).await;
    let run = async |transactions: &Transactions, number| {
        let place = consumer.group_metadata().unwrap();
        soon(transactions.run(vec![numbered(&to, 0, number)], mark(number), &from, place)).await
    };
    let fenced = run(&older, 1).await;
    assert!(matches!(fenced, Err(TransactionFailed::Fenced(_))), "{fenced:?}");
    run(&newer, 2).await.unwrap();
    assert_eq!(shown(ground, &to, 1).await, ["2"]);
    consumer.leave().await;
}

async fn a_producer_that_is_fenced_off_while_it_publishes_says_so(ground: &Ground) {
    let (to, id) = (ground.topic("to", 1).await, new_name("id"));
    for _ in 0..5 {
        let older = transactions(ground, &id).await;
        let publishing = tokio::spawn({
            let many: std::sync::Arc<[Outgoing]> =
                (0..50_000).map(|number| numbered(&to, 0, number)).collect();
            async move {
                loop {
                    if let Err(error) = older.publish(many.clone()).await {
                        return error;
                    }
                }
            }
        });
        let _newer = transactions(ground, &id).await;
        let error = soon(publishing).await.unwrap();
        assert!(matches!(error, TransactionFailed::Fenced(_)), "{error:?}");
    }
}

async fn an_end_without_a_record_before_it_is_found(ground: &Ground) {
    let (from, to, group) = (ground.topic("from", 1).await, ground.topic("to", 1).await, new_group());
    let (consumer, _events) = member(ground, &from, &group).await;
    let transactions = transactions(ground, &new_name("id")).await;
    let place = consumer.group_metadata().unwrap();
    soon(transactions.run(vec![numbered(&to, 0, 1)], mark(1), &from, place)).await.unwrap();
    let picker = Picker::new(&ground.settings()).unwrap();
    let end = async |offset| {
        let from = Origin { topic: to.clone(), partition: 0, offset };
        soon(picker.end_if_empty(from)).await.unwrap()
    };
    assert_eq!(end(0).await, None, "the record comes first");
    assert_eq!(end(1).await, Some(2), "behind it is the mark of its transaction");
    assert_eq!(end(2).await, None, "nobody is behind");
    consumer.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_undoes_can_be_done_again() {
    let ground = Ground::embedded().await;
    let (from, to, group) = (ground.topic("from", 1).await, ground.topic("to", 1).await, new_group());
    let (consumer, _events) = member(&ground, &from, &group).await;
    let transactions = transactions(&ground, &new_name("id")).await;
    let fault = Effect::Fail(ResponseError::GroupAuthorizationFailed);
    ground.broker.as_ref().unwrap().faults().order(Fault::next(ApiKey::TxnOffsetCommit, fault));
    let place = consumer.group_metadata().unwrap();
    let aborted = soon(transactions.run(vec![numbered(&to, 0, 1)], mark(1), &from, place)).await;
    assert!(matches!(aborted, Err(TransactionFailed::Aborted(_))), "{aborted:?}");
    assert_eq!(committed(&consumer).await, None);
    let place = consumer.group_metadata().unwrap();
    soon(transactions.run(vec![numbered(&to, 0, 1)], mark(1), &from, place)).await.unwrap();
    assert_eq!((shown(&ground, &to, 1).await, committed(&consumer).await), (vec!["1".to_owned()], Some(1)));
    consumer.leave().await;
}
