//! Classification rules: from what was typed to what is asked, and those that can never match.

use std::ops::Range;
use std::sync::Arc;

use redrive_core::Topic;
use redrive_core::classify::{Condition, Rule};

use super::subscription::Resolved;
use crate::problem::Problem;
use crate::typed::{At, Classify, Text};

/// Rules and where each stands in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Placed {
    pub(super) rules: Arc<[Rule]>,
    pub(super) spans: Vec<Range<usize>>,
    /// Each rule in words, without what came from a variable.
    words: Vec<String>,
}

pub(super) fn global(defaults: Option<&crate::typed::Defaults>, problems: &mut Vec<Problem>) -> Placed {
    placed(defaults.and_then(|defaults| defaults.classify.as_ref()), problems)
}

pub(super) fn placed(typed: Option<&At<Vec<At<Classify>>>>, problems: &mut Vec<Problem>) -> Placed {
    let mut rules = Vec::new();
    let (mut spans, mut words) = (Vec::new(), Vec::new());
    for typed in typed.iter().flat_map(|list| &list.value) {
        // What could not be read is told already; without it the rule would say something else.
        let Some(class) = typed.class.as_ref().filter(|_| typed.whole) else { continue };
        problems.extend(empty_names(&typed.value));
        let conditions = conditions(&typed.value);
        match Rule::new(conditions, class.value) {
            Ok(rule) => {
                words.push(typed.shown(&rule));
                rules.push(rule);
                spans.push(class.span.clone());
            }
            Err(error) => problems.push(Problem::error(class.span.clone(), typed.shown(error))),
        }
    }
    Placed { rules: rules.into(), spans, words }
}

/// `*` alone would match every type, and a header without a name none.
fn empty_names(rule: &Classify) -> Option<Problem> {
    let star = rule.type_name.as_ref().filter(|name| name.0 == "*");
    let star =
        star.map(|name| Problem::error(name.span.clone(), "this matches every type; name one, or remove it"));
    let header = rule.header.as_ref().filter(|header| header.0.starts_with('='));
    star.or_else(|| header.map(|header| Problem::error(header.span.clone(), "the header needs a name")))
}

fn conditions(rule: &Classify) -> Vec<Condition> {
    let text = |field: &Option<At<Text>>| field.as_ref().map(|text| text.value.0.clone());
    let type_name = text(&rule.type_name).map(|name| match name.strip_prefix('*') {
        Some(suffix) => Condition::TypeSuffix(suffix.to_owned()),
        None => Condition::Type(name),
    });
    let header = text(&rule.header).map(|header| match header.split_once('=') {
        Some((name, value)) => Condition::Header { name: name.to_owned(), value: Some(value.to_owned()) },
        None => Condition::Header { name: header, value: None },
    });
    let conditions = [
        type_name,
        text(&rule.message).map(Condition::Message),
        rule.pattern.as_ref().map(|pattern| Condition::Pattern(pattern.value.clone())),
        rule.status.as_ref().map(|status| Condition::Status(status.value.clone())),
        text(&rule.code).map(Condition::Code),
        rule.topic.as_ref().map(|topic| Condition::Topic(topic.value.clone())),
        header,
    ];
    conditions.into_iter().flatten().collect()
}

/// Warns of each rule that can never match, and says why.
pub(super) fn unreachable(global: &Placed, subscriptions: &[Resolved], problems: &mut Vec<Problem>) {
    let everywhere = |one: &Rule, later: &Rule| one.covers(later);
    for resolved in subscriptions {
        let topic = &resolved.subscription.topic;
        for index in 0..resolved.own.rules.len() {
            let in_topic = |one: &Rule, later: &Rule| one.covers_in(topic, later);
            let foreign = foreign_topic(&resolved.own.rules[index], topic);
            let why = foreign.or_else(|| covered(&resolved.own, index, in_topic));
            problems.extend(why.map(|why| never(&resolved.own.spans[index], &why)));
        }
    }
    for index in 0..global.rules.len() {
        let rule = &global.rules[index];
        let why = covered(global, index, everywhere).or_else(|| hidden_everywhere(rule, subscriptions));
        problems.extend(why.map(|why| never(&global.spans[index], &why)));
    }
}

fn never(span: &Range<usize>, why: &str) -> Problem {
    Problem::warning(span.clone(), format!("this rule can never match: {why}"))
        .help("remove it, or move it up")
}

fn foreign_topic(rule: &Rule, topic: &Topic) -> Option<String> {
    (!rule.allows_topic(topic)).then(|| format!("the subscription consumes {topic}"))
}

fn covered(placed: &Placed, index: usize, covers: impl Fn(&Rule, &Rule) -> bool) -> Option<String> {
    let rule = &placed.rules[index];
    let earlier = placed.rules[..index].iter().position(|earlier| covers(earlier, rule))?;
    Some(format!("an earlier one always comes first, {}", placed.words[earlier]))
}

/// A global rule is asked for every subscription; it is useless if none of them lets anything through to it.
fn hidden_everywhere(rule: &Rule, subscriptions: &[Resolved]) -> Option<String> {
    let hidden = |resolved: &Resolved| {
        !rule.allows_topic(&resolved.subscription.topic)
            || resolved.own.rules.iter().any(|own| own.covers(rule))
    };
    let useless = !subscriptions.is_empty() && subscriptions.iter().all(hidden);
    useless.then(|| "every subscription has another topic or a rule of its own that comes first".to_owned())
}
