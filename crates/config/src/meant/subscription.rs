//! One subscription: its own words first, then the defaults, then what is built in.

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;
use std::time::Duration;

use redrive_core::buckets::Buckets;
use redrive_core::classify::Classifier;
use redrive_core::route::{BadStrategy, PerClass, Strategy};
use redrive_core::settings::{Delay, SurgeGuard};
use redrive_core::topic::{Purpose, derived};
use redrive_core::{Class, Mask, Policy, Rules, Topic};

use super::rules::{Placed, placed};
use super::{ShelfLimits, Subscription, conflicts, handler};
use crate::problem::Problem;
use crate::typed::{self, At, ByClass};

const MAX_RECORDS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
const MAX_BYTES: NonZeroU64 = NonZeroU64::new(256 << 20).unwrap();
const SHELF: ShelfLimits = ShelfLimits {
    cache: NonZeroU64::new(64 << 20).unwrap(),
    records: NonZeroU32::new(5_000_000).unwrap(),
    bytes: NonZeroU64::new(8 << 30).unwrap(),
};

/// A subscription, and its rules with their places.
pub(super) struct Resolved {
    pub(super) subscription: Subscription,
    pub(super) own: Placed,
    /// Topics of its own making: what for, the name, where to point, whether it may be shown.
    pub(super) topics: Vec<Made>,
}

/// A topic that a subscription writes to.
pub(super) struct Made {
    pub(super) topic: Topic,
    pub(super) span: Range<usize>,
    pub(super) hidden: bool,
}

/// The subscription if enough of it could be read to mean something.
pub(super) fn resolve(
    typed: &At<typed::Subscription>,
    defaults: Option<&typed::Defaults>,
    global: &Placed,
    problems: &mut Vec<Problem>,
) -> Option<Resolved> {
    let own = placed(typed.classify.as_ref(), problems);
    let policies = policies(typed, defaults);
    let exhausted = PerClass::from_fn(|class| {
        let chosen = of_class(typed.exhausted.as_ref(), class);
        chosen.or_else(|| of_class(defaults?.exhausted.as_ref(), class)).copied().unwrap_or_default()
    });
    conflicts::within(typed, defaults, &policies, &exhausted, problems);
    let handler = handler::resolve(typed.handler.as_ref(), problems);
    let notify = typed.notify.as_ref().or_else(|| defaults?.notify.as_ref());
    let notify = handler::notify(notify, problems);

    let topic = &typed.topic.as_ref()?.value;
    let group = &typed.group.as_ref()?.value.0;
    let names = typed.topics.as_ref().map(|topics| &topics.value);
    let shelf = name(typed, names.and_then(|names| names.shelf.as_ref()), Purpose::Shelf, problems)?;
    let letters = name(typed, names.and_then(|names| names.letters.as_ref()), Purpose::Letters, problems)?;
    let delay = value(typed.delay.as_ref());
    let strategy = strategy(delay, topic, group, &policies[Class::NotReady]);
    let strategy = strategy.map_err(|error| {
        let span = typed.delay.as_ref().map_or(typed.span.clone(), |delay| delay.span.clone());
        problems.push(Problem::error(span, error.to_string()));
    });
    let default_class = typed.class.as_ref().or_else(|| defaults?.class.as_ref());
    let classifier = Classifier {
        own: own.rules.to_vec(),
        global: global.rules.clone(),
        default: default_class.map_or(Class::Transient, |class| class.value),
        resolver: None,
    };
    let concurrency = count(typed.concurrency.as_ref()).unwrap_or(NonZeroU32::MIN.saturating_add(63));
    let timeout = typed.timeout.as_ref().map_or(Duration::from_secs(30), |timeout| timeout.value);
    let subscription = Subscription {
        name: typed.name.as_ref().map(|name| name.value.0.clone()),
        topic: topic.clone(),
        group: group.clone(),
        handler,
        notify,
        mask: mask(typed.mask.as_ref(), defaults.and_then(|defaults| defaults.mask.as_ref())),
        rules: Rules { classifier, policies, exhausted, strategy: strategy.ok()? },
        order_by: value(typed.order_by.as_ref()),
        followers: value(typed.followers.as_ref()),
        delay,
        delivery: value(typed.delivery.as_ref()),
        start: value(typed.start.as_ref()),
        surge_guard: typed.surge_guard.as_ref().map_or(Some(SurgeGuard::default()), |guard| guard.value.0),
        max_loss: typed.max_loss.as_ref().map(|limit| limit.value),
        auto_create: typed.auto_create.as_ref().is_some_and(|flag| flag.value.0),
        skip_damaged: typed.skip_damaged.as_ref().is_some_and(|flag| flag.value.0),
        concurrency,
        retry_concurrency: count(typed.retry_concurrency.as_ref()).unwrap_or(concurrency),
        timeout,
        retry_timeout: typed.retry_timeout.as_ref().map_or(timeout, |timeout| timeout.value),
        publish_timeout: typed
            .publish_timeout
            .as_ref()
            .map_or(Duration::from_secs(10), |timeout| timeout.value),
        drain_timeout: typed.drain_timeout.as_ref().map_or(Duration::from_secs(10), |timeout| timeout.value),
        max_records: count(typed.max_records.as_ref()).unwrap_or(MAX_RECORDS),
        max_bytes: size(typed.max_bytes.as_ref()).unwrap_or(MAX_BYTES),
        payload: value(typed.payload.as_ref()),
        shelf_limits: shelf_limits(typed.shelf.as_ref().map(|shelf| &shelf.value)),
        outage_pauses: value(typed.outage_pauses.as_ref()),
        letter_partition: value(typed.letter_partition.as_ref()),
        shelf,
        letters,
    };
    let topics = made(typed, &subscription);
    Some(Resolved { subscription, own, topics })
}

/// Its own words and those of the defaults: what is hidden from all stays hidden.
fn mask(own: Option<&At<typed::Mask>>, defaults: Option<&At<typed::Mask>>) -> Mask {
    let mut mask = Mask::default();
    for typed in [own, defaults].into_iter().flatten() {
        mask.json.extend(list(typed.json.as_ref()).cloned());
        mask.headers.extend(list(typed.headers.as_ref()).map(|name| name.0.clone()));
        mask.patterns.extend(list(typed.patterns.as_ref()).cloned());
    }
    mask
}

fn list<T>(typed: Option<&At<Vec<At<T>>>>) -> impl Iterator<Item = &T> {
    typed.into_iter().flat_map(|list| &list.value).map(|one| &one.value)
}

/// Every topic that only this subscription may use. The buckets of the delay service are for all.
fn made(typed: &At<typed::Subscription>, subscription: &Subscription) -> Vec<Made> {
    let hidden = [typed.group.as_ref().map(|g| g.hidden), typed.topic.as_ref().map(|t| t.hidden)]
        .contains(&Some(true));
    let derived_at = typed.group.as_ref().map_or(typed.span.clone(), |group| group.span.clone());
    let names = typed.topics.as_ref().map(|topics| &topics.value);
    let one = |topic: &Topic, chosen: Option<&At<Topic>>| Made {
        topic: topic.clone(),
        span: chosen.map_or(derived_at.clone(), |chosen| chosen.span.clone()),
        hidden: chosen.map_or(hidden, |chosen| chosen.hidden),
    };
    let mut made = vec![one(&subscription.letters, names.and_then(|names| names.letters.as_ref()))];
    match &subscription.rules.strategy {
        Strategy::Shelf => made.push(one(&subscription.shelf, names.and_then(|names| names.shelf.as_ref()))),
        Strategy::Postgres => {}
        Strategy::Return(topic) => made.push(one(topic, None)),
        Strategy::Service { back, .. } => made.push(one(back, None)),
        Strategy::Ladder(rungs) => made.extend(rungs.values().map(|rung| one(rung, None))),
    }
    // Of two that are the same, the one that was chosen is at fault.
    made.sort_by_key(|made| made.span != derived_at);
    made
}

fn policies(typed: &At<typed::Subscription>, defaults: Option<&typed::Defaults>) -> PerClass<Policy> {
    let returns = value(typed.delay.as_ref()) == Delay::Return;
    PerClass::from_fn(|class| {
        let chosen = of_class(typed.retry.as_ref(), class);
        let chosen = chosen.or_else(|| of_class(defaults?.retry.as_ref(), class)).cloned();
        chosen.unwrap_or_else(|| built_in(class, returns))
    })
}

/// What holds when nobody says anything.
fn built_in(class: Class, returns: bool) -> Policy {
    let text = match class {
        Class::Permanent => "never",
        Class::Transient => "list(100ms x2, 1s)",
        Class::Outage => "exponential(1s..60s x2)",
        Class::NotReady if returns => "exponential(10s..10s x1) for 5m",
        Class::NotReady => "list(5s x3, 15s x5, 60s x10) for 1h",
    };
    text.parse().expect("a constant policy")
}

fn strategy(delay: Delay, topic: &Topic, group: &str, policy: &Policy) -> Result<Strategy, BadStrategy> {
    match delay {
        Delay::Shelf => Ok(Strategy::Shelf),
        Delay::Postgres => Ok(Strategy::Postgres),
        Delay::Ladder => Strategy::ladder(topic, group, policy),
        Delay::Return => Strategy::one_topic(topic, group),
        Delay::Service => Strategy::service(topic, group, &Buckets::default(), policy),
    }
}

/// The name that was chosen, or the derived one.
fn name(
    typed: &At<typed::Subscription>,
    chosen: Option<&At<Topic>>,
    purpose: Purpose,
    problems: &mut Vec<Problem>,
) -> Option<Topic> {
    if let Some(chosen) = chosen {
        return Some(chosen.value.clone());
    }
    let group = typed.group.as_ref()?;
    let derived = derived(&typed.topic.as_ref()?.value, &group.value.0, purpose);
    let key = match purpose {
        Purpose::Shelf => "shelf",
        Purpose::Letters => "letters",
        Purpose::Rung(_) | Purpose::Retry | Purpose::Return => "",
    };
    let refused = |error: redrive_core::topic::BadTopic| {
        let problem = Problem::error(group.span.clone(), group.shown(error));
        problems.push(problem.help(format!("name the topic yourself: topics.{key} = \"...\"")));
    };
    derived.map_err(refused).ok()
}

fn of_class<T>(typed: Option<&At<ByClass<T>>>, class: Class) -> Option<&T> {
    typed?.value.0.iter().find(|(of, _)| *of == class).map(|(_, at)| &at.value)
}

pub(super) fn value<T: Clone + Default>(typed: Option<&At<T>>) -> T {
    typed.map(|at| at.value.clone()).unwrap_or_default()
}

pub(super) fn size(typed: Option<&At<typed::Size>>) -> Option<NonZeroU64> {
    typed.map(|size| size.value.0)
}

fn shelf_limits(typed: Option<&typed::Shelf>) -> ShelfLimits {
    let Some(typed) = typed else { return SHELF };
    ShelfLimits {
        cache: size(typed.cache.as_ref()).unwrap_or(SHELF.cache),
        records: count(typed.max_records.as_ref()).unwrap_or(SHELF.records),
        bytes: size(typed.max_bytes.as_ref()).unwrap_or(SHELF.bytes),
    }
}

pub(super) fn count(typed: Option<&At<typed::Count>>) -> Option<NonZeroU32> {
    typed.map(|count| count.value.0)
}
