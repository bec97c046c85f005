//! Who consumes a topic and how far: paused, behind, out of range, or nobody at all; and what is overdue then.

use redrive::Pause;
use redrive::delayed::{Delayed, Standing, View};
use redrive_core::{Origin, Timestamp};
use redrive_kafka::{Error, GroupState, Picker, committed};

use super::look::{Flow, Look};
use crate::exit::Exit;
use crate::{human, when};

/// So many partitions are asked for how old their next records are, those that are furthest behind first.
const ASKED: usize = 8;

/// How far a group is in a partition.
struct Part {
    partition: i32,
    begins: i64,
    ends: i64,
    at: Option<i64>,
}

impl Part {
    fn behind(&self) -> u64 {
        u64::try_from(self.ends - self.at.unwrap_or(self.begins).max(self.begins)).unwrap_or(0)
    }
}

pub(super) async fn look(
    look: &mut Look<'_>,
    flow: &Flow,
    view: Option<&View>,
    pause: Option<&Pause>,
    is_run: bool,
) -> Result<(), Exit> {
    if let Some(pause) = pause {
        let why = pause.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let what = format!("paused by {}, {}{why}", pause.by, when::from_now(pause.since, look.now));
        look.add("paused", &flow.name(), what, look.command(&format!("resume {}", flow.name())));
    }
    let group = look.admin.group(&flow.group).await;
    let Some(group) = look.or_unseen(&flow.name(), group)? else { return Ok(()) };
    let parts = parts(look, flow).await;
    let Some(parts) = look.or_unseen(&flow.name(), parts)? else { return Ok(()) };
    out_of_range(look, flow, &parts);
    let behind: u64 = parts.iter().map(Part::behind).sum();
    let is_consumed = is_run || is_consumed(&group, flow);
    if !is_consumed {
        let records = match behind {
            0 => "nothing is behind".to_owned(),
            behind => format!("{} behind", human::count(behind, "record is", "records are")),
        };
        look.add("nobody", &flow.name(), format!("nobody consumes it; {records}"), look.run(flow));
    } else if pause.is_none() && behind > 0 {
        let found = oldest(look, flow, &parts).await;
        let found = look.or_unseen(&flow.name(), found)?.flatten();
        if let Some((partition, time)) = found.filter(|(_, time)| look.now.since(*time) >= look.patience) {
            let age = human::rough(look.now.since(time));
            let records = human::count(behind, "record is", "records are");
            let what = format!(
                "{records} behind; the next of partition {partition} is {age} old; one more process shares the work"
            );
            look.add("behind", &flow.name(), what, look.run(flow));
        }
    }
    if let Some(view) = view {
        overdue(look, flow, view, |partition| is_run || has(&group, flow, partition));
    }
    Ok(())
}

async fn parts(look: &Look<'_>, flow: &Flow) -> Result<Vec<Part>, Error> {
    let found = look.admin.outline(std::slice::from_ref(&flow.topic)).await?;
    let partitions = found.get(&flow.topic).map_or(0, |state| state.partitions);
    if partitions == 0 {
        return Ok(Vec::new());
    }
    let bounds = look.admin.bounds(&flow.topic, partitions).await?;
    let marks = committed(look.settings, &flow.group, &flow.topic, partitions).await?;
    let part = |(partition, ((begins, ends), at))| Part { partition, begins, ends, at };
    Ok((0..).zip(bounds.into_iter().zip(marks)).map(part).collect())
}

/// A state that is between two others says nothing.
fn is_consumed(group: &GroupState, flow: &Flow) -> bool {
    let is_given = |member: &redrive_kafka::Member| {
        member.assignment.as_ref().is_none_or(|given| given.contains_key(flow.topic.as_str()))
    };
    match group.state.as_str() {
        "Empty" | "Dead" | "" => false,
        "Stable" => group.members.iter().any(is_given),
        _ => true,
    }
}

fn has(group: &GroupState, flow: &Flow, partition: i32) -> bool {
    match group.state.as_str() {
        "Empty" | "Dead" | "" => false,
        "Stable" => {
            let is_readable = group.members.iter().all(|member| member.assignment.is_some());
            !is_readable || group.has(flow.topic.as_str(), partition)
        }
        _ => true,
    }
}

/// Where the group would go on there is nothing: the partition stands still until somebody says from where.
fn out_of_range(look: &mut Look<'_>, flow: &Flow, parts: &[Part]) {
    for Part { partition, begins, ends, at } in parts {
        let what = match at {
            Some(at) if at < begins => {
                let gone = u64::try_from(begins - at).unwrap_or(0);
                let gone = human::count(gone, "record was", "records were");
                format!("{gone} deleted unread: the group is at {at}, the topic begins at {begins}")
            }
            Some(at) if at > ends => {
                format!("the group is at {at} and the topic ends at {ends}: it was made anew")
            }
            Some(_) | None => continue,
        };
        let what = format!("{what}; it stands still until somebody accepts that");
        // Where the group stands is in its shelf, too: no other tool moves both.
        let remedy = format!("{} --accept-loss", look.run(flow));
        look.add("out-of-range", &format!("{} partition {partition}", flow.name()), what, remedy);
    }
}

/// The partition whose next record is the oldest, and its time.
async fn oldest(look: &Look<'_>, flow: &Flow, parts: &[Part]) -> Result<Option<(i32, Timestamp)>, Error> {
    let mut behind: Vec<&Part> = parts.iter().filter(|part| part.behind() > 0 && part.at.is_some()).collect();
    behind.sort_by_key(|part| std::cmp::Reverse(part.behind()));
    let picker = Picker::new(look.settings)?;
    let mut oldest: Option<(i32, Timestamp)> = None;
    for part in behind.into_iter().take(ASKED) {
        let offset = part.at.unwrap_or(part.begins).max(part.begins);
        let from = Origin { topic: flow.topic.clone(), partition: part.partition, offset };
        let records = picker.pick(from, offset).await?;
        let time = records.first().and_then(|record| record.timestamp);
        if let Some(time) = time.filter(|time| oldest.is_none_or(|(_, other)| *time < other)) {
            oldest = Some((part.partition, time));
        }
    }
    Ok(oldest)
}

/// Records that are due on partitions that nobody has.
fn overdue(look: &mut Look<'_>, flow: &Flow, view: &View, has: impl Fn(i32) -> bool) {
    let now = look.now;
    let is_overdue = |one: &Delayed| {
        one.standing == Standing::First && !one.cancelled && one.due <= now && !has(one.origin.partition)
    };
    let overdue: Vec<Delayed> = view.records().into_iter().filter(is_overdue).collect();
    let Some(longest) = overdue.iter().map(|one| one.due).min() else { return };
    let records = human::count(overdue.len() as u64, "record is", "records are");
    let since = human::rough(now.since(longest));
    let what = format!("{records} due and nobody consumes, the oldest for {since}");
    look.add("overdue", view.shelf(), what, look.run(flow));
}
