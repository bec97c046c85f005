//! Dead letters: failure groups that grow or came back, and letters that a retention deletes.

use std::collections::HashMap;
use std::time::Duration;

use redrive::{Timestamp, Topic};
use redrive_letters::retention::Limit;
use redrive_letters::{Error, Fingerprint, Group, Index, Query, Standing, State};

use super::look::Look;
use crate::{bytes_text, human, when};

const HOUR: Duration = Duration::from_secs(3_600);

/// How many letters are open, in how many failure groups.
#[derive(Clone, Copy, Default)]
pub(super) struct Open {
    pub(super) letters: u64,
    pub(super) groups: usize,
}

pub(super) async fn look(look: &mut Look<'_>, index: &mut Index, topics: &[Topic]) -> Result<Open, Error> {
    retention(look, index, topics).await?;
    let now = look.now;
    let all = index.groups(&open(), now)?;
    let last = Query { after: Some(before(now, HOUR)), ..open() };
    let last = counted(index.groups(&last, now)?);
    let earlier = Query { after: Some(before(now, 2 * HOUR)), before: Some(before(now, HOUR)), ..open() };
    let earlier = counted(index.groups(&earlier, now)?);
    for group in &all {
        let of = |counts: &HashMap<Fingerprint, u64>| counts.get(&group.failure).copied().unwrap_or(0);
        tell(look, group, of(&last), of(&earlier));
    }
    Ok(Open { letters: all.iter().map(|group| group.open).sum(), groups: all.len() })
}

fn open() -> Query {
    Query { states: vec![State::Open], ..Query::default() }
}

fn before(time: Timestamp, length: Duration) -> Timestamp {
    let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(time.millis().saturating_sub(millis))
}

fn counted(groups: Vec<Group>) -> HashMap<Fingerprint, u64> {
    groups.into_iter().map(|group| (group.failure, group.count)).collect()
}

fn tell(look: &mut Look<'_>, group: &Group, last: u64, earlier: u64) {
    let is_back = match group.standing {
        Standing::Muted | Standing::Resolved => return,
        Standing::Regressed => true,
        Standing::New | Standing::Ongoing => false,
    };
    if last <= earlier && !is_back {
        return;
    }
    let kind = if is_back { "regressed" } else { "grows" };
    let back = if is_back { "resolved, and seen again; " } else { "" };
    let error = bytes_text::cut(&bytes_text::line(group.message.as_bytes()), 60);
    let place = match &group.group {
        Some(consumer) => format!("{}/{consumer}", group.source),
        None => group.source.clone(),
    };
    let last = human::count(last, "letter", "letters");
    let what =
        format!("{back}{last} in the last hour, {earlier} in the hour before, {} open: {error}", group.open);
    let deed = format!("dlq list --group {}", group.failure);
    look.add(kind, &place, what, look.command(&deed));
}

/// Open letters on topics that do not keep them.
async fn retention(look: &mut Look<'_>, index: &mut Index, topics: &[Topic]) -> Result<(), Error> {
    let described = match look.admin.describe(topics).await {
        Ok(described) => described,
        // Who may not see settings sees the letters all the same.
        Err(error) if error.refusal().is_some_and(redrive_kafka::Refused::is_denied) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for risk in index.at_risk(described.values(), look.now)? {
        let letters = human::count(risk.open, "open letter", "open letters");
        let setting = risk.limit.setting();
        let what = match risk.limit {
            Limit::Time { kept, first, soon } => {
                let when = match first <= look.now {
                    true => "the first at any moment".to_owned(),
                    false => format!("the first {}", when::from_now(first, look.now)),
                };
                let (millis, kept) = (kept.as_millis(), human::rough(kept));
                format!("{setting}={millis} ({kept}) deletes {letters}, {when}, {soon} within a day")
            }
            Limit::Size { bytes } => {
                format!("{setting}={bytes} deletes the oldest of {letters} when more come")
            }
        };
        look.add("retention", &risk.topic, what, keep(look, &risk.topic, setting));
    }
    Ok(())
}

fn keep(look: &Look<'_>, topic: &Topic, setting: &str) -> String {
    format!(
        "kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name {topic} --add-config {setting}=-1",
        look.settings.brokers
    )
}
