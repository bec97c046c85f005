//! Which topics letters may be deleted from: letter topics, and never what Redrive keeps or somebody consumes.

use redrive::pauses;
use redrive_core::{Origin, Topic};
use redrive_kafka::Admin;
use redrive_letters::journal;

use super::place::Reached;
use crate::exit::Exit;
use crate::{cluster, human, screen};

/// Refuses topics that are no letter topics. `meant` are those that are read here.
pub(super) async fn topics<'a>(
    reached: &Reached,
    meant: &[Topic],
    topics: impl IntoIterator<Item = &'a Topic>,
) -> Result<(), Exit> {
    let failed = |error: redrive_kafka::Error| cluster::failed(&error, reached.file());
    let mut there = None;
    for topic in topics {
        let there = match &there {
            Some(there) => there,
            None => {
                there.insert(Admin::new(&reached.settings).map_err(failed)?.topics().await.map_err(failed)?)
            }
        };
        let consumed = || there.iter().find(|other| is_made_for(topic, other));
        let why = if !there.contains(topic) {
            Some("there is no such topic".to_owned())
        } else {
            own(reached, topic)
                .or_else(|| consumed().map(|other| format!("{other} belongs to who consumes it")))
        };
        let why = why.or_else(|| {
            (!meant.contains(topic)).then(|| "it is not a letter topic that is read here".to_owned())
        });
        if let Some(why) = why {
            screen::say(&format!(
                "error: nothing is deleted from {topic}: {why}\nhelp: redrive dlq list shows letters and their topics; --letters TOPIC names a letter topic that is called otherwise"
            ));
            return Err(Exit::Failed);
        }
    }
    Ok(())
}

/// Refuses an offset that is not within its partition.
pub(super) async fn offset(reached: &Reached, below: &Origin) -> Result<(), Exit> {
    let failed = |error: redrive_kafka::Error| cluster::failed(&error, reached.file());
    let Origin { topic, partition, offset } = below;
    let admin = Admin::new(&reached.settings).map_err(failed)?;
    let found = admin.outline(std::slice::from_ref(topic)).await.map_err(failed)?;
    let partitions = found.get(topic).map_or(0, |state| state.partitions);
    if !(0..partitions).contains(partition) {
        let count = human::count(u64::try_from(partitions).unwrap_or(0), "partition", "partitions");
        screen::say(&format!(
            "error: {topic} has no partition {partition}\nhelp: it has {count}, from 0; redrive dlq list shows where letters lie"
        ));
        return Err(Exit::Failed);
    }
    let bounds = admin.bounds(topic, partitions).await.map_err(failed)?;
    let bounds = usize::try_from(*partition).ok().and_then(|partition| bounds.get(partition).copied());
    let (begin, end) = bounds.unwrap_or_default();
    if *offset > end || *offset < 0 {
        screen::say(&format!(
            "error: {topic}/{partition} has no offset {offset}\nhelp: it begins at {begin} and ends at {end}: --up-to {topic}/{partition}/{end} deletes all of it"
        ));
        return Err(Exit::Failed);
    }
    if *offset <= begin {
        screen::say(&format!("nothing lies below {below}: the partition begins at {begin}"));
        return Err(Exit::NothingMatched);
    }
    Ok(())
}

/// What of Redrive's own, or of the file, a topic is.
fn own(reached: &Reached, topic: &Topic) -> Option<String> {
    let subscriptions =
        reached.config.as_ref().map(|config| config.subscriptions.as_slice()).unwrap_or_default();
    if topic.as_str() == pauses::TOPIC || topic.as_str() == journal::TOPIC {
        return Some("Redrive keeps there what it has done".to_owned());
    }
    if topic.as_str().ends_with(".shelf") || subscriptions.iter().any(|one| one.shelf == *topic) {
        return Some("records wait there".to_owned());
    }
    let consumed = subscriptions.iter().find(|one| one.topic == *topic);
    consumed.map(|one| format!("it is the source that {} consumes", one.group))
}

/// Whether a topic is called as those that are made for the records of another.
fn is_made_for(source: &Topic, made: &Topic) -> bool {
    let rest = made.as_str().strip_prefix(source.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let group = rest.and_then(|rest| rest.strip_suffix(".shelf").or_else(|| rest.strip_suffix(".dlq")));
    group.is_some_and(|group| !group.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_known_by_the_topics_that_are_made_for_it() {
        let is_made =
            |source: &str, made: &str| is_made_for(&source.parse().unwrap(), &made.parse().unwrap());
        assert!(is_made("orders", "orders.billing.dlq") && is_made("orders", "orders.billing.shelf"));
        assert!(!is_made("orders", "orders.dlq") && !is_made("orders.billing.dlq", "orders.billing.dlq"));
        assert!(!is_made("order", "orders.billing.dlq"));
    }
}
