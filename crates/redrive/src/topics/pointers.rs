//! Whether the originals of a source can be pointed at: only if nothing removes them but the time that they
//! are kept for, and that is known.

use std::time::Duration;

use redrive_config::Subscription;
use redrive_core::duration;
use redrive_core::flow::Kept;
use redrive_core::settings::{Delay, Payload};
use redrive_kafka::TopicState;

use super::plan::{Change, Step};
use super::wanted::{Amount, longest_wait};

const INSTEAD: &str = "or write payload = \"whole\"";

/// How long a source keeps what was consumed, if that can be relied on.
#[must_use]
pub fn originals(source: &TopicState) -> Option<Kept> {
    if cleanup(source) != Some("delete") || amount(source, "retention.bytes") != Some(Amount::Unlimited) {
        return None;
    }
    match amount(source, "retention.ms")? {
        Amount::Unlimited => Some(Kept::Always),
        Amount::Of(millis) => Some(Kept::For(Duration::from_millis(u64::try_from(millis).unwrap_or(0)))),
    }
}

/// What of its source keeps a subscription from waiting by pointers, if it wants to.
pub(super) fn steps(subscription: &Subscription, source: &TopicState) -> Vec<Step> {
    if subscription.payload != Payload::Pointer || subscription.delay != Delay::Shelf {
        return Vec::new();
    }
    let group = &subscription.group;
    let step = |why: String, remedy: String| Step {
        topic: source.name.clone(),
        change: Change::Cannot { remedy: format!("{remedy}, {INSTEAD}") },
        why: format!("{group} waits by pointers (payload = \"pointer\"), and {why}"),
    };
    let mut steps = Vec::new();
    let cleanup = cleanup(source).unwrap_or("unknown");
    if cleanup != "delete" {
        let why = format!("it has cleanup.policy={cleanup}: a pointer may find another record, or none");
        steps.push(step(why, "set cleanup.policy=delete".to_owned()));
    }
    if amount(source, "retention.bytes") != Some(Amount::Unlimited) {
        let size = value(source, "retention.bytes").unwrap_or("unknown");
        let why = format!("it has retention.bytes={size}: how long an original is there, nobody can say");
        steps.push(step(why, "set retention.bytes=-1".to_owned()));
    }
    let wait = longest_wait(subscription);
    let least = wait
        .map_or(Amount::Unlimited, |wait| Amount::Of(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)));
    if amount(source, "retention.ms").is_none_or(|kept| kept < least) {
        let kept = value(source, "retention.ms").unwrap_or("unknown");
        let waits = wait.map_or("without end".to_owned(), |wait| format!("for {}", duration::print(wait)));
        let why = format!("it has retention.ms={kept}, while retry.not-ready lets a record wait {waits}");
        steps.push(step(why, format!("set retention.ms={} or more, shorten the policy", least.text())));
    }
    steps
}

fn value<'a>(source: &'a TopicState, setting: &str) -> Option<&'a str> {
    source.settings.get(setting).map(|setting| setting.value.trim())
}

fn cleanup(source: &TopicState) -> Option<&str> {
    value(source, "cleanup.policy")
}

fn amount(source: &TopicState, setting: &str) -> Option<Amount> {
    value(source, setting).and_then(Amount::read)
}
