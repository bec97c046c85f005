//! What survives of the topics: one entry for each change, written before the change is answered.
//! The entries come back at the next start and are folded into the list of topics.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A change to the list of topics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Entry {
    Create(Kept),
    Delete { id: Uuid },
    Grow { id: Uuid, partitions: i32 },
    Configure { id: Uuid, config: BTreeMap<String, String> },
}

/// A topic as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) name: String,
    pub(super) id: Uuid,
    pub(super) partitions: i32,
    pub(super) config: BTreeMap<String, String>,
}

impl Entry {
    pub(super) fn encode(&self) -> Bytes {
        Bytes::from(serde_json::to_vec(self).expect("names, numbers and texts are always JSON"))
    }
}

/// The topics that all entries together leave. An entry that is not understood stops the start: to
/// skip it could bring back a topic that was deleted.
pub(super) fn fold(entries: &[Bytes]) -> Result<Vec<Kept>, serde_json::Error> {
    let mut topics: Vec<Kept> = Vec::new();
    for entry in entries {
        match serde_json::from_slice(entry)? {
            Entry::Create(kept) => topics.push(kept),
            Entry::Delete { id } => topics.retain(|topic| topic.id != id),
            Entry::Grow { id, partitions } => {
                topics
                    .iter_mut()
                    .filter(|topic| topic.id == id)
                    .for_each(|topic| topic.partitions = partitions);
            }
            Entry::Configure { id, config } => {
                topics
                    .iter_mut()
                    .filter(|topic| topic.id == id)
                    .for_each(|topic| topic.config = config.clone());
            }
        }
    }
    Ok(topics)
}

/// The topics that entries say were deleted.
pub(super) fn deleted(entries: &[Bytes]) -> HashSet<Uuid> {
    let gone = |entry: &Bytes| match serde_json::from_slice(entry) {
        Ok(Entry::Delete { id }) => Some(id),
        Ok(Entry::Create(_) | Entry::Grow { .. } | Entry::Configure { .. }) | Err(_) => None,
    };
    entries.iter().filter_map(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_fold_into_the_topics_that_are_left() {
        let kept = |name: &str, id| Kept { name: name.into(), id, partitions: 1, config: BTreeMap::new() };
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let config = BTreeMap::from([("retention.ms".to_owned(), "5".to_owned())]);
        let entries = [
            Entry::Create(kept("a", a)),
            Entry::Create(kept("b", b)),
            Entry::Grow { id: b, partitions: 4 },
            Entry::Configure { id: b, config: config.clone() },
            Entry::Delete { id: a },
        ];
        let left = fold(&entries.map(|entry| entry.encode())).unwrap();
        assert_eq!(left, [Kept { partitions: 4, config, ..kept("b", b) }]);
    }
}
