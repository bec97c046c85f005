//! The topic of what holds for all instances, as part of a plan. A worker does without it; whoever pauses a
//! subscription makes it if nobody has.

use redrive_config::Subscription;

use super::found::Found;
use super::plan::{Change, Step};
use crate::pauses;

/// What it takes for the topic of pauses to be as it must be. The plan of [`super::look_around`] knows of it.
#[must_use]
pub fn plan_state(subscriptions: &[Subscription], found: &Found) -> Option<Step> {
    let topic = pauses::topic();
    let sources = subscriptions.iter().filter_map(|one| found.topics.get(&one.topic));
    let replication = sources.map(|source| source.replication).max()?;
    let Some(state) = found.topics.get(&topic) else {
        let settings = pauses::topic_settings();
        let change = Change::Create { partitions: 1, replication, settings };
        let why = "what is paused on every instance and what became of replayed letters is written there"
            .to_owned();
        return Some(Step { topic, change, why });
    };
    let holds = state.settings.get("cleanup.policy").map(|setting| setting.value.clone());
    (holds.as_deref() != Some("compact")).then(|| Step {
        topic,
        change: Change::Alter { setting: "cleanup.policy".to_owned(), from: holds, to: "compact".to_owned() },
        why: "a pause holds until somebody resumes it, however long".to_owned(),
    })
}
