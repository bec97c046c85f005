//! What an old group name, or an old way to wait, has left behind: topics that look like ours and are
//! no longer used by any subscription of the file.

use std::collections::BTreeSet;

use redrive_config::Subscription;
use redrive_core::{Topic, duration};

use super::wanted::uses;

/// A topic that looks like one of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftBehind {
    pub(super) topic: Topic,
    pub(super) group: String,
}

/// Topics named after a source of the configuration that no subscription uses.
pub(super) fn left_behind(subscriptions: &[Subscription], names: &BTreeSet<Topic>) -> Vec<LeftBehind> {
    let used: BTreeSet<Topic> = subscriptions.iter().flat_map(uses).map(|used| used.topic).collect();
    let sources: BTreeSet<&Topic> = subscriptions.iter().map(|subscription| &subscription.topic).collect();
    let unused = names.iter().filter(|name| !used.contains(*name) && !sources.contains(name));
    let is_source = |name: &Topic| names.contains(name) || sources.contains(name);
    let ours = |name: &Topic| {
        let (source, group) = split(name, is_source)?;
        sources.contains(&source).then(|| LeftBehind { topic: name.clone(), group })
    };
    unused.filter_map(ours).collect()
}

/// The source and the group in a name of ours. Both may contain dots: the longest source that exists
/// is the one, since `a.b.g.dlq` beside a topic `a.b` is not `a`'s.
fn split(name: &Topic, is_source: impl Fn(&Topic) -> bool) -> Option<(Topic, String)> {
    let (stem, purpose) = name.as_str().rsplit_once('.')?;
    if !is_ours(purpose) {
        return None;
    }
    let mut splits = stem.rmatch_indices('.').map(|(dot, _)| (&stem[..dot], &stem[dot + 1..]));
    splits.find_map(|(source, group)| {
        let source: Topic = source.parse().ok().filter(&is_source)?;
        (!group.is_empty()).then(|| (source, group.to_owned()))
    })
}

fn is_ours(purpose: &str) -> bool {
    let rung = purpose.strip_prefix("retry-");
    matches!(purpose, "shelf" | "dlq" | "retry" | "return")
        || rung.is_some_and(|delay| duration::parse(delay).is_ok())
}
