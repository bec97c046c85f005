//! Combinations that cannot keep what they ask for: refused before anything runs.

use std::ops::Range;

use redrive_core::lanes::Followers;
use redrive_core::route::{Exhausted, PerClass};
use redrive_core::settings::{Delay, Delivery, OrderBy};
use redrive_core::{Class, Policy, Topic};

use super::subscription::Resolved;
use crate::problem::Problem;
use crate::typed::{At, ByClass, Defaults, Subscription};

/// What contradicts itself within one subscription.
pub(super) fn within(
    typed: &At<Subscription>,
    defaults: Option<&Defaults>,
    policies: &PerClass<Policy>,
    exhausted: &PerClass<Exhausted>,
    problems: &mut Vec<Problem>,
) {
    lanes(typed, problems);
    damaged(typed, problems);
    fixed_delays(typed, &policies[Class::NotReady], problems);
    transactions(typed, problems);
    retried_permanent(typed.retry.as_ref(), problems);
    retried_permanent(defaults.and_then(|defaults| defaults.retry.as_ref()), problems);
    circles(typed, defaults, policies, exhausted, problems);
}

fn lanes(typed: &At<Subscription>, problems: &mut Vec<Problem>) {
    let ordered = typed.order_by.as_ref().is_none_or(|order| order.value != OrderBy::None);
    let delay = typed.delay.as_ref().map_or(Delay::Shelf, |delay| delay.value);
    if ordered && !delay.keeps_lanes() {
        let span = place(typed.order_by.as_ref()).or_else(|| place(typed.delay.as_ref()));
        let order =
            typed.order_by.as_ref().map_or(OrderBy::Key.to_string(), |order| order.shown(&order.value));
        let message = format!("delay = \"{delay}\" cannot keep the order by {order} while a record waits");
        let help =
            "write delay = \"shelf\" (or \"postgres\"), which can, or give the order up: order-by = \"none\"";
        problems.push(Problem::error(span.unwrap_or(typed.span.clone()), message).help(help));
    }
    if let Some(followers) = typed.followers.as_ref().filter(|f| f.value != Followers::Pass && !ordered) {
        let message = format!("followers = \"{}\" needs an order, and order-by is \"none\"", followers.value);
        problems.push(
            Problem::error(followers.span.clone(), message).help("choose what to order by, such as key"),
        );
    }
}

/// A letter whose lane was to be closed when its worker died would be passed over, its followers not.
fn damaged(typed: &At<Subscription>, problems: &mut Vec<Problem>) {
    let Some(skip) = typed.skip_damaged.as_ref().filter(|skip| skip.value.0) else { return };
    if typed.followers.as_ref().is_some_and(|followers| followers.value != Followers::Pass) {
        let message =
            "skip-damaged needs followers = \"pass\": what followed a damaged record would be handled";
        let help = "write followers = \"pass\", or leave skip-damaged out";
        problems.push(Problem::error(skip.span.clone(), message).help(help));
    }
}

/// One record behind another in a topic waits as long as the one before it.
fn fixed_delays(typed: &At<Subscription>, policy: &Policy, problems: &mut Vec<Problem>) {
    let Some(delay) = &typed.delay else { return };
    let distinct = policy.runs().len();
    let message = match delay.value {
        Delay::Shelf | Delay::Service | Delay::Postgres => return,
        Delay::Ladder if policy.jitter().is_some() => {
            "a ladder has fixed delays, so its policy cannot have jitter"
        }
        Delay::Ladder if distinct > 24 => {
            "a ladder makes a topic for each delay, and this policy has more than 24"
        }
        Delay::Ladder => return,
        Delay::Return if distinct > 1 || policy.jitter().is_some() => {
            "delay = \"return\" has one topic and so one delay, and the policy of not-ready has several"
        }
        Delay::Return => return,
    };
    let help = "change retry.not-ready; for any delays at all write delay = \"shelf\"";
    problems.push(Problem::error(delay.span.clone(), message).help(help));
}

fn transactions(typed: &At<Subscription>, problems: &mut Vec<Problem>) {
    let Some(delivery) = typed.delivery.as_ref().filter(|d| d.value == Delivery::ExactlyOnce) else { return };
    if typed.delay.as_ref().is_some_and(|delay| delay.value == Delay::Postgres) {
        let message = "exactly-once cannot include a database: Kafka's transactions end at Kafka";
        let help = "write delay = \"shelf\", or delivery = \"at-least-once\"";
        problems.push(Problem::error(delivery.span.clone(), message).help(help));
    }
}

fn retried_permanent(retry: Option<&At<ByClass<Policy>>>, problems: &mut Vec<Problem>) {
    let permanent =
        retry.into_iter().flat_map(|retry| &retry.value.0).find(|(class, _)| *class == Class::Permanent);
    let Some((_, policy)) = permanent.filter(|(_, policy)| policy.value != Policy::NEVER) else { return };
    let problem = Problem::error(policy.key.clone(), "a permanent failure is not tried again");
    let problem = problem.help("give the failure another class, such as transient");
    // The defaults are looked at once for each subscription.
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}

/// Used-up tries must lead to an end, unless they never are.
fn circles(
    typed: &At<Subscription>,
    defaults: Option<&Defaults>,
    policies: &PerClass<Policy>,
    exhausted: &PerClass<Exhausted>,
    problems: &mut Vec<Problem>,
) {
    let next = |class: Class| match exhausted[class] {
        _ if policies[class].is_endless() => None,
        Exhausted::Bury | Exhausted::Drop => None,
        Exhausted::Shelve => Some(Class::NotReady),
        Exhausted::Block => Some(Class::Outage),
    };
    for class in [Class::Outage, Class::NotReady] {
        let first = next(class);
        if first == Some(class) || first.and_then(next) == Some(class) {
            let written = chosen(typed.exhausted.as_ref(), class);
            let written = written.or_else(|| chosen(defaults?.exhausted.as_ref(), class));
            let message =
                format!("used-up tries of {class} lead back to {class}, so nothing ever follows them");
            let help = "let it end in bury or drop, or make the policy endless: exponential(1s..60s x2)";
            let problem = Problem::error(written.unwrap_or(typed.span.clone()), message).help(help);
            // What the defaults say is found again with each subscription.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
            return;
        }
    }
}

fn chosen<T>(by_class: Option<&At<ByClass<T>>>, class: Class) -> Option<Range<usize>> {
    by_class?.0.iter().find(|(of, _)| *of == class).map(|(_, at)| at.key.clone())
}

/// Two subscriptions of one group to one topic would take each other's records.
pub(super) fn same_group<'a>(typed: impl Iterator<Item = &'a At<Subscription>>, problems: &mut Vec<Problem>) {
    let mut seen = Vec::new();
    for subscription in typed {
        let (Some(topic), Some(group)) = (&subscription.topic, &subscription.group) else { continue };
        let pair = (&topic.value, &group.value.0);
        if seen.contains(&pair) {
            let message = "another subscription has the same topic and group";
            problems.push(Problem::error(group.span.clone(), message).help("give it a group of its own"));
        }
        seen.push(pair);
    }
}

/// A name stands for one subscription, and cannot be taken for a topic and a group.
pub(super) fn same_name<'a>(typed: impl Iterator<Item = &'a At<Subscription>>, problems: &mut Vec<Problem>) {
    let mut seen = Vec::new();
    for name in typed.filter_map(|subscription| subscription.name.as_ref()) {
        if name.value.0.contains('/') {
            let message = "a name cannot have a slash in it: it would look like TOPIC/GROUP";
            problems.push(Problem::error(name.span.clone(), message).help("write it with - instead"));
        }
        if seen.contains(&&name.value.0) {
            let message = "another subscription has the same name";
            problems.push(Problem::error(name.span.clone(), message).help("give it one of its own"));
        }
        seen.push(&name.value.0);
    }
}

/// A topic that Redrive writes for one purpose of one subscription must not serve any other.
pub(super) fn shared_topics(subscriptions: &[Resolved], problems: &mut Vec<Problem>) {
    let mut seen: Vec<&Topic> = Vec::new();
    let mut pairs = Vec::new();
    for resolved in subscriptions {
        // Told already, and every name of it would be told again.
        let pair = (&resolved.subscription.topic, &resolved.subscription.group);
        if pairs.contains(&pair) {
            continue;
        }
        pairs.push(pair);
        for made in &resolved.topics {
            let name =
                if made.hidden { "this topic".to_owned() } else { format!("the topic {}", made.topic) };
            let consumed = subscriptions.iter().any(|other| other.subscription.topic == made.topic);
            let message = if consumed {
                format!("{name} would be written to and is consumed by a subscription, round and round")
            } else if made.topic.as_str().starts_with("__") || RESERVED.contains(&made.topic.as_str()) {
                format!("{name} belongs to Kafka or to Redrive itself")
            } else if seen.contains(&&made.topic) {
                format!("{name} would be shared with another subscription or purpose")
            } else {
                seen.push(&made.topic);
                continue;
            };
            problems
                .push(Problem::error(made.span.clone(), message).help("name it differently under topics"));
        }
    }
}

/// Topics that hold the state of all subscriptions.
const RESERVED: [&str; 2] = ["redrive.state", "redrive.journal"];

fn place<T>(at: Option<&At<T>>) -> Option<Range<usize>> {
    at.map(|at| at.span.clone())
}
