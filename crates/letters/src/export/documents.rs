//! Failure groups, counts, jobs and plans as JSON.

use redrive_core::Timestamp;
use serde_json::{Value, json};

use super::moment;
use crate::groups::HOUR;
use crate::jobs::{Job, What};
use crate::replay::Plan;
use crate::stats::Bar;
use crate::{Group, Standing};

/// As many letters of a plan or a job are named.
const NAMED: usize = 1_000;

/// A failure group.
#[must_use]
pub fn group(group: &Group) -> Value {
    let hours: Vec<Value> = group
        .hours
        .iter()
        .map(|(hour, count)| {
            let from = Timestamp::from_millis(hour.saturating_mul(HOUR));
            json!({ "from": moment(from), "count": count })
        })
        .collect();
    let said = group.said.as_ref().map(
        |said| json!({ "state": said.wish.name(), "by": said.by, "at": moment(said.at), "why": said.why }),
    );
    json!({
        "id": group.failure.to_string(),
        "state": Standing::name(group.standing),
        "source": group.source,
        "group": group.group,
        "letter_topics": group.topics.iter().map(|topic| &**topic).collect::<Vec<_>>(),
        "error_type": group.error_type,
        "error_message": group.message,
        "open": group.open,
        "letters": group.count,
        "keys": group.keys,
        "first": moment(group.first),
        "last": moment(group.last),
        "hours": hours,
        "said": said,
    })
}

/// A count.
#[must_use]
pub fn bar(bar: &Bar) -> Value {
    let mut value = json!({ "letters": bar.count, "open": bar.open });
    match bar.from {
        Some(from) => value["from"] = moment(from).into(),
        None => value["name"] = bar.name.as_str().into(),
    }
    value
}

/// A job, as it stands now.
#[must_use]
pub fn job(job: &Job, now: Timestamp) -> Value {
    let counts = job.counts();
    let begun = &job.begun;
    json!({
        "id": job.id.as_str(),
        "kind": begun.kind.name(),
        "state": job.standing_at(now).name(),
        "by": begun.by,
        "reason": begun.reason,
        "began": moment(begun.time()),
        "query": begun.query,
        "to": begun.to.to_string(),
        "options": begun.options,
        "letters": counts.letters,
        "sent": counts.sent,
        "skipped": counts.skipped,
        "handled": counts.handled,
        "buried": counts.buried,
        "waiting": counts.waiting,
        "dropped": counts.dropped,
        "refused": counts.refused,
        "unheard": counts.unheard(),
        "silent": job.silent(),
        "wish": job.wish,
        "end": job.end,
    })
}

/// A job, and what became of each letter that did not go well: of the first of them, and why.
#[must_use]
pub fn job_in_full(one: &Job, now: Timestamp) -> Value {
    let mut value = job(one, now);
    let not_well = (0..).zip(one.selection.iter()).filter_map(|(number, letter)| {
        let what = one.outcome(number).filter(|what| *what != What::Handled)?;
        Some(json!({
            "letter": letter.to_string(),
            "number": number,
            "outcome": what,
            "why": one.why(number),
            "again": one.again(number),
        }))
    });
    value["not_well"] = not_well.take(NAMED).collect();
    value["whys"] =
        one.whys().into_iter().map(|(why, letters)| json!({ "why": why, "letters": letters })).collect();
    value
}

/// What a replay would do with so many letters that matched.
#[must_use]
pub fn plan(plan: &Plan, matched: usize) -> Value {
    let list = |counts: Vec<(String, u64)>| -> Vec<_> {
        counts.into_iter().map(|(what, letters)| json!({ "what": what, "letters": letters })).collect()
    };
    let routes = plan.routes.iter().map(|(route, count)| (route.to_string(), *count)).collect();
    let left_out = plan.left_out.iter().map(|(why, count)| (why.to_string(), *count)).collect();
    json!({
        "matched": matched,
        "would_send": plan.letters.len(),
        "to": list(routes),
        "left_out": list(left_out),
        "unheard": list(plan.silent.iter().map(|(topic, count)| (topic.to_string(), *count)).collect()),
        "ahead_of_leaders": plan.ahead,
        "leaders_missing": plan.leaders.iter().take(NAMED).map(ToString::to_string).collect::<Vec<_>>(),
    })
}
