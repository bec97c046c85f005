//! A source that is ours alone is cut as it is consumed: what is complete in it was delivered, is a letter, or
//! waits on the shelf.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::flow::Now;
use redrive_core::{Origin, Topic};
use redrive_kafka::{Admin, Error as KafkaError};
use tracing::debug;

use super::News;
use super::engine::{Engine, chain};
use super::troubles::About;

/// The least time between two cuts.
const PAUSE: Duration = Duration::from_secs(300);

/// Up to where a source was cut.
#[derive(Default)]
pub(crate) struct Clearing {
    begins: HashMap<i32, i64>,
    next: Duration,
    is_running: bool,
    /// Whether something was committed since the last look.
    is_due: bool,
}

/// What came of a cut.
pub(crate) struct Cleared {
    begins: Vec<(i32, i64)>,
    left: Option<Left>,
}

/// Why it was left as it is, or a part of it.
enum Left {
    /// These groups read it too.
    Others(Vec<String>),
    Refused(KafkaError),
}

impl Clearing {
    pub(super) fn is_due(&mut self) {
        self.is_due = true;
    }

    pub(super) fn forget(&mut self, partition: i32) {
        self.begins.remove(&partition);
    }
}

impl Engine {
    pub(super) fn next_clearing(&self) -> Option<Duration> {
        let Clearing { is_due, is_running, next, .. } = self.clearing;
        (self.spec.settled.clears_source && is_due && !is_running && !self.is_stopping()).then_some(next)
    }

    /// Cuts off what is complete, from time to time, if this source is to be cut.
    pub(super) fn clear_source(&mut self, now: Now) {
        let clearing = &mut self.clearing;
        if !self.spec.settled.clears_source || !clearing.is_due || clearing.is_running {
            return;
        }
        if now.steady < clearing.next || self.stopping.is_some() {
            return;
        }
        clearing.is_due = false;
        let complete = self.saving.all_saved().map(|(partition, mark)| {
            // A record that does not fit on the shelf waits as a pointer to here.
            let pointed = self.flow.lowest_pointer(partition).unwrap_or(mark);
            (partition, mark.min(pointed))
        });
        let is_new = |(partition, to): &(i32, i64)| {
            *to > self.clearing.begins.get(partition).copied().unwrap_or_default()
        };
        let below: Vec<_> = complete.filter(is_new).collect();
        if below.is_empty() {
            return;
        }
        self.clearing.is_running = true;
        self.clearing.next = now.steady.saturating_add(PAUSE);
        let (admin, news) = (self.spec.admin.clone(), self.news.clone());
        let (topic, group) =
            (self.spec.settled.settled.topic.clone(), self.spec.settled.settled.group.clone());
        tokio::spawn(async move {
            let cleared = clear(&admin, &topic, &group, below).await;
            let _ = news.send(News::Cleared(cleared));
        });
    }

    pub(super) fn source_cleared(&mut self, cleared: Cleared) {
        self.clearing.is_running = false;
        for (partition, begins) in cleared.begins {
            debug!(partition, begins, "the source was cut");
            // Given up meanwhile.
            if self.turns.contains_key(&partition) {
                self.clearing.begins.insert(partition, begins);
            }
        }
        let topic = &self.spec.settled.settled.topic;
        match cleared.left {
            None => self.troubles.clear(About::Source),
            Some(Left::Others(groups)) => {
                let groups = groups.join(", ");
                let what =
                    format!("{topic} grows: it is read by {groups} too, and may not be cut before them");
                let remedy = "have them read another topic: this one is for records on their way";
                self.troubles.raise(About::Source, what, remedy);
            }
            Some(Left::Refused(error)) => {
                let what = format!("{topic} grows, as it cannot be cut: {}", chain(&error));
                let remedy =
                    format!("allow this user to delete records of it: the operation Delete on {topic}");
                self.troubles.raise(About::Source, what, &remedy);
            }
        }
        // What was left is tried again in its time.
        self.clearing.is_due |= self.troubles.has(About::Source);
    }
}

/// Cuts each partition, unless somebody else reads them.
async fn clear(admin: &Arc<Admin>, topic: &Topic, group: &str, below: Vec<(i32, i64)>) -> Cleared {
    let mut cleared = Cleared { begins: Vec::new(), left: None };
    match admin.readers(topic).await {
        Ok(mut readers) => {
            readers.remove(group);
            if !readers.is_empty() {
                cleared.left = Some(Left::Others(readers.into_iter().collect()));
                return cleared;
            }
        }
        Err(error) => {
            cleared.left = Some(Left::Refused(error));
            return cleared;
        }
    }
    for (partition, offset) in below {
        match admin.delete_records(&Origin { topic: topic.clone(), partition, offset }).await {
            Ok(_) => cleared.begins.push((partition, offset)),
            Err(error) => cleared.left = Some(Left::Refused(error)),
        }
    }
    cleared
}
