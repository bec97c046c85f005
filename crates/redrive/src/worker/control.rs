//! What is wanted of subscriptions while they run: that they pause, that they go by other settings.

use std::sync::Arc;

use redrive_config::Subscription;
use redrive_core::Topic;
use tokio::sync::watch;

use crate::status::Pause;

/// What is wanted of one subscription now.
#[derive(Clone)]
pub(crate) struct Wish {
    pub(crate) settled: Arc<Subscription>,
    pub(crate) paused: Option<Pause>,
}

/// Waits for the next wish; for ever if nobody is left to have one.
pub(crate) async fn next(mut wishes: watch::Receiver<Wish>) {
    if wishes.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Changes what subscriptions do while they run.
#[derive(Clone)]
pub struct Control {
    pub(crate) wishes: Arc<Vec<watch::Sender<Wish>>>,
}

/// Settings that were not taken over: none of them was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct Unchangeable(pub Vec<String>);

impl Control {
    /// The topics and groups of the subscriptions.
    #[must_use]
    pub fn subscriptions(&self) -> Vec<(Topic, String)> {
        let one = |wishes: &watch::Sender<Wish>| {
            let wish = wishes.borrow();
            (wish.settled.topic.clone(), wish.settled.group.clone())
        };
        self.wishes.iter().map(one).collect()
    }

    /// Pauses a subscription, or lets it go on. Nothing new of it starts while it is paused; its partitions
    /// stay with this instance, and what waits goes on waiting. Says whether there is such a subscription.
    pub fn pause(&self, topic: &Topic, group: &str, paused: Option<&Pause>) -> bool {
        let is_it = |wish: &Wish| wish.settled.topic == *topic && wish.settled.group == group;
        let found = self.wishes.iter().find(|wishes| is_it(&wishes.borrow()));
        found.is_some_and(|wishes| {
            wishes.send_if_modified(|wish| {
                let is_news = wish.paused.as_ref() != paused;
                wish.paused = paused.cloned();
                is_news
            });
            true
        })
    }

    /// Goes on with other policies, rules and limits, without losing or reordering anything. If
    /// anything else differs, nothing is taken over. Says which subscriptions changed, and in what.
    pub fn reload(&self, subscriptions: &[Subscription]) -> Result<Vec<String>, Unchangeable> {
        let (mut refused, mut changed, mut taken) = (Vec::new(), Vec::new(), Vec::new());
        for wishes in self.wishes.iter() {
            let old = wishes.borrow().settled.clone();
            let same = |new: &&Subscription| new.topic == old.topic && new.group == old.group;
            let Some(new) = subscriptions.iter().find(same) else {
                refused.push(format!("{} is gone: a subscription that runs is not taken away", old.title()));
                continue;
            };
            let new = taken_over(&old, new);
            let fixed = fixed(&old, &new);
            refused.extend(fixed.iter().map(|key| format!("{}: {key} differs", old.title())));
            let keys = changeable(&old, &new);
            if !keys.is_empty() {
                changed.push(format!("{}: {}", old.title(), keys.join(", ")));
                taken.push((wishes, new));
            }
        }
        for new in subscriptions {
            let same = |wish: &Wish| wish.settled.topic == new.topic && wish.settled.group == new.group;
            if !self.wishes.iter().any(|wishes| same(&wishes.borrow())) {
                refused
                    .push(format!("{} is new: a subscription is not added to those that run", new.title()));
            }
        }
        if !refused.is_empty() {
            return Err(Unchangeable(refused));
        }
        for (wishes, settled) in taken {
            wishes.send_modify(|wish| wish.settled = Arc::new(settled));
        }
        Ok(changed)
    }
}

/// The new settings, with what no file can have: a resolver, and what the handler wants hidden besides.
fn taken_over(old: &Subscription, new: &Subscription) -> Subscription {
    let mut settled = new.clone();
    settled.rules.classifier.resolver = old.rules.classifier.resolver.clone();
    settled.mask.texts = old.mask.texts.clone();
    settled
}

/// The keys whose fields differ.
macro_rules! differing {
    ($old:ident, $new:ident: $($key:literal = $($field:ident).+),+ $(,)?) => {
        [$(($key, $old.$($field).+ != $new.$($field).+)),+]
            .into_iter()
            .filter(|(_, differs)| *differs)
            .map(|(key, _)| key)
            .collect::<Vec<&'static str>>()
    };
}

/// What differs and can only be changed by a restart. Every field is here or among the [`changeable`] ones: a
/// key that is neither would be read again, and nothing would come of it.
fn fixed(old: &Subscription, new: &Subscription) -> Vec<&'static str> {
    differing!(old, new:
        "name" = name,
        "handler" = handler,
        "notify" = notify,
        "mask" = mask,
        "order-by" = order_by,
        "followers" = followers,
        "delay" = delay,
        "delivery" = delivery,
        "start" = start,
        "outage-pauses" = outage_pauses,
        "auto-create" = auto_create,
        "skip-damaged" = skip_damaged,
        "timeout" = timeout,
        "retry-timeout" = retry_timeout,
        "publish-timeout" = publish_timeout,
        "drain-timeout" = drain_timeout,
        "max-records" = max_records,
        "max-bytes" = max_bytes,
        "letter-partition" = letter_partition,
        "payload" = payload,
        "shelf" = shelf_limits,
        "topics.shelf" = shelf,
        "topics.letters" = letters,
    )
}

/// What differs and is taken over.
fn changeable(old: &Subscription, new: &Subscription) -> Vec<&'static str> {
    let mut keys = differing!(old, new:
        "retry" = rules.policies,
        "exhausted" = rules.exhausted,
        "class" = rules.classifier.default,
        "concurrency" = concurrency,
        "retry-concurrency" = retry_concurrency,
        "surge-guard" = surge_guard,
        "max-loss" = max_loss,
    );
    let rules =
        |one: &Subscription| format!("{:?} {:?}", one.rules.classifier.own, one.rules.classifier.global);
    if rules(old) != rules(new) {
        keys.push("classify");
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to compile when a field is added, so that somebody decides where it belongs.
    #[test]
    fn every_key_is_either_taken_over_or_named() {
        let settled = crate::Subscription::new("orders", "g").settled.unwrap();
        let Subscription {
            topic: _,
            group: _,
            name: _,
            handler: _,
            notify: _,
            mask: _,
            rules: _,
            order_by: _,
            followers: _,
            delay: _,
            delivery: _,
            start: _,
            surge_guard: _,
            max_loss: _,
            auto_create: _,
            skip_damaged: _,
            concurrency: _,
            retry_concurrency: _,
            timeout: _,
            retry_timeout: _,
            publish_timeout: _,
            drain_timeout: _,
            max_records: _,
            max_bytes: _,
            payload: _,
            shelf_limits: _,
            outage_pauses: _,
            letter_partition: _,
            shelf: _,
            letters: _,
        } = &settled;
        let other = Subscription {
            concurrency: settled.concurrency.saturating_add(1),
            timeout: settled.timeout * 2,
            ..settled.clone()
        };
        assert_eq!(
            (fixed(&settled, &other), changeable(&settled, &other)),
            (vec!["timeout"], vec!["concurrency"])
        );
        assert!(fixed(&settled, &settled).is_empty() && changeable(&settled, &settled).is_empty());
    }
}
