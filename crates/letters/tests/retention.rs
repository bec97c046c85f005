//! When Kafka may delete open letters: by the timestamps of their records, as the broker has them.

mod ground;

use std::time::Duration;

use ground::{Ground, letter};
use redrive::{Clock, Outgoing, Timestamp, Topic};
use redrive_letters::retention::{AtRisk, Limit};

const HOUR: i64 = 3_600_000;
/// Kafka's own: a week.
const WEEK: i64 = 168 * HOUR;

/// A letter that says it was buried so many hours ago, of a record that is so many hours old.
fn aged(topic: &Topic, offset: i64, now: Timestamp, buried: i64, record: i64) -> Outgoing {
    let ago = |hours: i64| Timestamp::from_millis(now.millis() - hours * HOUR);
    let mut letter = letter(topic, 0, offset, "k", "x");
    letter.headers.set("redrive-buried-at", ago(buried).millis().to_string());
    Outgoing { timestamp: Some(ago(record)), ..letter }
}

async fn risk(ground: &Ground, topic: &Topic, now: Timestamp) -> AtRisk {
    let (mut index, _) = ground.catch_up().await;
    let described = ground.admin.describe(std::slice::from_ref(topic)).await.unwrap();
    let risks = index.at_risk(described.values(), now).unwrap();
    assert_eq!(risks.len(), 1, "{risks:?}");
    risks.into_iter().next().unwrap()
}

#[tokio::test]
async fn a_new_letter_of_an_old_record_goes_soon_and_an_old_letter_with_a_new_timestamp_does_not() {
    let ground = Ground::new().await;
    let now = Clock::system().now().wall;
    let week = [("retention.ms", "604800000")];
    let (old, new) = (ground.topic("old.g.dlq", 1, &week).await, ground.topic("new.g.dlq", 1, &week).await);
    ground.publish(aged(&old, 0, now, 0, 160)).await;
    ground.publish(aged(&old, 1, now, 0, 150)).await;
    ground.publish(aged(&old, 2, now, 0, 0)).await;
    ground.publish(aged(&new, 0, now, 160, 0)).await;
    ground.publish(aged(&new, 1, now, 160, 1)).await;
    let time = |first: i64, soon: u64| Limit::Time {
        kept: Duration::from_millis(u64::try_from(WEEK).unwrap()),
        first: Timestamp::from_millis(now.millis() + first * HOUR),
        soon,
    };
    let told = risk(&ground, &old, now).await;
    assert_eq!((told.open, told.limit), (3, time(8, 2)));
    let told = risk(&ground, &new, now).await;
    assert_eq!((told.open, told.limit), (2, time(167, 0)));
}

#[tokio::test]
async fn where_the_broker_sets_the_timestamps_its_own_count() {
    let ground = Ground::new().await;
    let now = Clock::system().now().wall;
    let settings = [("retention.ms", "604800000"), ("message.timestamp.type", "LogAppendTime")];
    let topic = ground.topic("orders.g.dlq", 1, &settings).await;
    ground.publish(aged(&topic, 0, now, 160, 160)).await;
    let Limit::Time { first, soon, .. } = risk(&ground, &topic, now).await.limit else { panic!("by time") };
    assert!(soon == 0 && first.millis() >= now.millis() + WEEK - HOUR, "{first:?} {soon}");
}
