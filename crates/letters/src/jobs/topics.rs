//! Whether a letter topic is still the one that a job was about. A topic that is deleted and made anew has the same
//! name and the same offsets, and another id: nothing that was said of the former letters is true of the new ones.

use std::collections::BTreeMap;

use redrive_core::Topic;
use redrive_kafka::{Admin, Error};

use super::value::Begun;

/// The ids of letter topics as they are now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicIds(BTreeMap<Topic, Now>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Now {
    /// It is there, under this id; brokers before 2.8 have none.
    There(Option<String>),
    Gone,
}

/// What became of a topic since a job began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// It is the same, as far as it is known.
    Same,
    /// It was deleted, and made anew.
    Anew,
    /// It was deleted.
    Gone,
}

impl TopicIds {
    /// Of topics that are there.
    pub fn of(topics: impl IntoIterator<Item = (Topic, Option<String>)>) -> Self {
        Self(topics.into_iter().map(|(topic, id)| (topic, Now::There(id))).collect())
    }

    /// Asks for the ids of these topics: one request.
    pub async fn ask(admin: &Admin, topics: &[Topic]) -> Result<Self, Error> {
        let found = admin.outline(topics).await?;
        let now = |topic: &Topic| match found.get(topic) {
            Some(state) => Now::There(state.id.map(|id| id.to_string())),
            None => Now::Gone,
        };
        Ok(Self(topics.iter().map(|topic| (topic.clone(), now(topic))).collect()))
    }

    /// What became of a topic since a job began. An id that is not known, then or now, counts as the same.
    #[must_use]
    pub fn since(&self, begun: &Begun, topic: &Topic) -> Since {
        match (self.0.get(topic), begun.topics.get(topic.as_str())) {
            (Some(Now::Gone), _) => Since::Gone,
            (Some(Now::There(Some(now))), Some(then)) if now != then => Since::Anew,
            (Some(Now::There(_)) | None, _) => Since::Same,
        }
    }

    /// The topics of a job that were made anew since it began; nearly always none.
    #[must_use]
    pub fn anew(&self, begun: &Begun) -> Vec<Topic> {
        let topics = begun.topics.keys().filter_map(|name| name.parse().ok());
        topics.filter(|topic| self.since(begun, topic) == Since::Anew).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(topics: &str) -> Begun {
        let text = format!(r#"{{"kind":"replay","by":"ann","at":1,"letters":1,"chunks":1{topics}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    fn ids(id: Option<&str>) -> TopicIds {
        TopicIds::of([("a.dlq".parse().unwrap(), id.map(ToOwned::to_owned))])
    }

    #[test]
    fn a_topic_is_another_only_if_its_id_is_known_then_and_now_and_differs() {
        let topic: Topic = "a.dlq".parse().unwrap();
        let (told, older) = (begun(r#","topics":{"a.dlq":"one"}"#), begun(""));
        for (begun, now, expected) in [
            (&told, ids(Some("one")), Since::Same),
            (&told, ids(Some("two")), Since::Anew),
            (&told, ids(None), Since::Same),
            (&told, TopicIds::default(), Since::Same),
            (&older, ids(Some("two")), Since::Same),
            (&older, TopicIds([(topic.clone(), Now::Gone)].into()), Since::Gone),
        ] {
            assert_eq!(now.since(begun, &topic), expected, "{begun:?} {now:?}");
            assert_eq!(now.anew(begun).is_empty(), expected != Since::Anew);
        }
    }
}
