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

/// Looks at topics.
pub(crate) struct Outlook {
    admin: Arc<Admin>,
    topics: Vec<Topic>,
    clock: Clock,
    last: Mutex<Option<Seen>>,
}

struct Seen {
    at: Duration,
    /// None if the brokers could not be asked.
    topics: Option<BTreeMap<Topic, TopicState>>,
}

impl Outlook {
    pub(super) fn new(admin: Arc<Admin>, topics: Vec<Topic>, clock: Clock) -> Self {
        Self { admin, topics, clock, last: Mutex::default() }
    }

    /// The topic as it is, if the brokers could be asked, and if it is there.
    pub(super) async fn of(&self, topic: &Topic) -> Option<Option<TopicState>> {
        let mut last = self.last.lock().await;
        let at = self.clock.now().steady;
        let seen = match &mut *last {
            Some(seen) if at.saturating_sub(seen.at) < FRESH => seen,
            old => {
                let topics = match self.admin.outline(&self.topics).await {
                    Ok(topics) => Some(topics),
                    Err(KafkaError::Unreachable { .. }) => None,
                    // One that may not be looked at is no reason to see nothing of the others.
                    Err(_) => {
                        drop(last);
                        let alone = self.admin.outline(std::slice::from_ref(topic)).await.ok()?;
                        return Some(alone.get(topic).cloned());
                    }
                };
                old.insert(Seen { at, topics })
            }
        };
        seen.topics.as_ref().map(|topics| topics.get(topic).cloned())
    }
}
