//! Combinations that cannot keep what they ask for: refused before anything runs.

use std::ops::Range;

use redrive_core::lanes::Followers;
use redrive_core::route::{Exhausted, PerClass};
use redrive_core::settings::{Delay, Delivery, OrderBy};
use redrive_core::topic::{Purpose, derived};
use redrive_core::{Class, Policy};

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
    fixed_delays(typed, &policies[Class::NotReady], problems);
    transactions(typed, problems);
    retried_permanent(typed.retry.as_ref(), problems);
    retried_permanent(defaults.and_then(|defaults| defaults.retry.as_ref()), problems);
    circles(typed, exhausted, problems);
}

fn lanes(typed: &At<Subscription>, problems: &mut Vec<Problem>) {
    let ordered = typed.order_by.as_ref().is_none_or(|order| order.value != OrderBy::None);
    let delay = typed.delay.as_ref().map_or(Delay::Shelf, |delay| delay.value);
    if ordered && !delay.keeps_lanes() {
        let span = place(typed.order_by.as_ref()).or_else(|| place(typed.delay.as_ref()));
        let order = typed.order_by.as_ref().map_or(OrderBy::Key, |order| order.value.clone());
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
    let help = format!("it is {policy}; for any delays at all write delay = \"shelf\"");
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

/// Used-up tries must lead to an end.
fn circles(typed: &At<Subscription>, exhausted: &PerClass<Exhausted>, problems: &mut Vec<Problem>) {
    let next = |class| match exhausted[class] {
        Exhausted::Bury | Exhausted::Drop => None,
        Exhausted::Shelve => Some(Class::NotReady),
        Exhausted::Block => Some(Class::Outage),
    };
    for class in [Class::Outage, Class::NotReady] {
        let first = next(class);
        if first == Some(class) || first.and_then(next) == Some(class) {
            let span = typed.exhausted.as_ref().map_or(typed.span.clone(), |exhausted| exhausted.key.clone());
            let message =
                format!("used-up tries of {class} lead back to {class}, so nothing ever follows them");
            let help = "let it end in bury or drop, or make the policy endless: exponential(1s..60s x2)";
            problems.push(Problem::error(span, message).help(help));
            return;
        }
    }
}

/// Subscriptions that would share a group's topic, or a topic of their own making.
pub(super) fn between_subscriptions<'a>(
    typed: impl Iterator<Item = &'a Subscription>,
    problems: &mut Vec<Problem>,
) {
    let mut seen: Vec<(&str, &str, String)> = Vec::new();
    for subscription in typed {
        let (Some(topic), Some(group)) = (&subscription.topic, &subscription.group) else { continue };
        let (topic, group_name) = (topic.value.as_str(), group.value.0.as_str());
        if seen.iter().any(|(t, g, _)| (*t, *g) == (topic, group_name)) {
            let message = "another subscription has the same topic and group";
            problems.push(Problem::error(group.span.clone(), message).help("give it a group of its own"));
            continue;
        }
        let names = subscription.topics.as_ref().map(|topics| &topics.value);
        for (chosen, purpose) in [
            (names.and_then(|names| names.shelf.as_ref()), Purpose::Shelf),
            (names.and_then(|names| names.letters.as_ref()), Purpose::Letters),
        ] {
            let derived =
                subscription.topic.as_ref().and_then(|topic| derived(&topic.value, group_name, purpose).ok());
            let Some(name) = chosen.map(|chosen| chosen.value.clone()).or(derived) else { continue };
            if seen.iter().any(|(_, _, other)| other == name.as_str()) {
                let span = chosen.map_or(group.span.clone(), |chosen| chosen.span.clone());
                let message =
                    format!("the topic {name} would be shared with another subscription or purpose");
                problems.push(Problem::error(span, message).help("name it differently under topics"));
            }
            seen.push((topic, group_name, name.to_string()));
        }
    }
}

fn place<T>(at: Option<&At<T>>) -> Option<Range<usize>> {
    at.map(|at| at.span.clone())
}
