//! The sources of all subscriptions, looked at together: to ask for a hundred topics costs a broker and us little
//! more than to ask for one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::Topic;
use redrive_kafka::{Admin, Error as KafkaError, TopicState};
use tokio::sync::Mutex;

use super::watching;
use crate::clock::Clock;

/// For so long an answer holds. A subscription that has just started looks later than that: what it is told is
/// never older than itself.
const FRESH: Duration = Duration::from_secs(4);
const _: () = assert!(FRESH.as_secs() < watching::FIRST.as_secs());

/// How long a look may take, and for how long it is then not tried again, at first and at most.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(60);

/// Looks at topics.
pub(crate) struct Outlook {
    admin: Arc<Admin>,
    topics: Vec<Topic>,
    clock: Clock,
    last: Mutex<Option<Seen>>,
}

struct Seen {
    /// When they were asked for.
    at: Duration,
    /// How often in a row the brokers could not be asked, if they could not.
    topics: Result<BTreeMap<Topic, TopicState>, u32>,
}

impl Seen {
    /// Whether it will do for one who wants to know how it is at a time.
    fn is_of(&self, since: Duration, now: Duration) -> bool {
        match self.topics {
            Ok(_) => self.at >= since,
            Err(times) => now.saturating_sub(self.at) < (FRESH * 2_u32.saturating_pow(times)).min(LONGEST),
        }
    }
}

impl Outlook {
    pub(super) fn new(admin: Arc<Admin>, topics: Vec<Topic>, clock: Clock) -> Self {
        Self { admin, topics, clock, last: Mutex::default() }
    }

    /// The topic as it is or was a moment ago, if the brokers could be asked, and if it is there.
    pub(super) async fn of(&self, topic: &Topic) -> Option<Option<TopicState>> {
        self.of_since(topic, self.clock.now().steady.saturating_sub(FRESH)).await
    }

    /// The same, no earlier than this.
    pub(super) async fn of_since(&self, topic: &Topic, since: Duration) -> Option<Option<TopicState>> {
        let mut last = self.last.lock().await;
        let at = self.clock.now().steady;
        let seen = match &mut *last {
            Some(seen) if seen.is_of(since, at) => seen,
            old => {
                let topics = match self.admin.outline_within(&self.topics, PATIENCE).await {
                    Ok(topics) => Ok(topics),
                    Err(KafkaError::Unreachable { .. }) => {
                        let before = old.as_ref().and_then(|seen| seen.topics.as_ref().err());
                        Err(before.map_or(0, |times| times.saturating_add(1)))
                    }
                    // One that may not be looked at is no reason to see nothing of the others.
                    Err(_) => {
                        drop(last);
                        let alone = self.admin.outline_within(std::slice::from_ref(topic), PATIENCE);
                        return Some(alone.await.ok()?.get(topic).cloned());
                    }
                };
                old.insert(Seen { at, topics })
            }
        };
        seen.topics.as_ref().ok().map(|topics| topics.get(topic).cloned())
    }
}
