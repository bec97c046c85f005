//! What the cluster has, as far as the subscriptions are concerned.

use std::collections::{BTreeMap, BTreeSet};

use redrive_config::Subscription;
use redrive_core::Topic;
use redrive_kafka::{Admin, Error, TopicState};

use super::left_behind::left_behind;
use super::wanted::uses;

/// Topics as they are. What is not in here does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The sources, and the topics that the subscriptions use.
    pub topics: BTreeMap<Topic, TopicState>,
    /// All names, where they were looked for: what else there may be.
    pub names: BTreeSet<Topic>,
    /// How many records are in those that are left behind, where it was cheap to know.
    pub records: BTreeMap<Topic, u64>,
}

/// More partitions than this are not asked for their ends.
const CHEAP: i32 = 200;

/// Looks at the topics of the subscriptions.
pub async fn look(admin: &Admin, subscriptions: &[Subscription]) -> Result<Found, Error> {
    let of_one = |subscription: &Subscription| {
        let used = uses(subscription).into_iter().map(|used| used.topic);
        used.chain([subscription.topic.clone()]).collect::<Vec<_>>()
    };
    let topics: Vec<Topic> = subscriptions.iter().flat_map(of_one).collect();
    Ok(Found { topics: admin.describe(&topics).await?, ..Found::default() })
}

/// Looks at the topics of the subscriptions, and for what others like them have left behind.
pub async fn look_around(admin: &Admin, subscriptions: &[Subscription]) -> Result<Found, Error> {
    let names = admin.topics().await?;
    let mut found = Found { names, ..look(admin, subscriptions).await? };
    let state = crate::pauses::topic();
    if found.names.contains(&state) {
        found.topics.extend(admin.describe(&[state]).await?);
    }
    let left: Vec<Topic> =
        left_behind(subscriptions, &found.names).into_iter().map(|left| left.topic).collect();
    let mut asked = 0;
    for (topic, state) in admin.outline(&left).await? {
        asked += state.partitions;
        if asked > CHEAP {
            break;
        }
        // Whoever may not look at it still learns that it is there.
        if let Ok(records) = admin.span(&topic, state.partitions).await {
            found.records.insert(topic, records);
        }
    }
    Ok(found)
}

/// Whether Kafka keeps only the last record of a key.
#[must_use]
pub fn is_compacted(topic: &TopicState) -> bool {
    let policy = topic.settings.get("cleanup.policy");
    policy.is_some_and(|policy| policy.value.split(',').any(|one| one.trim() == "compact"))
}
