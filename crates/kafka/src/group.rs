//! Who is in a consumer group, and what each member has been given.

use std::collections::BTreeMap;

/// A consumer group as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// The broker's word for its state: `Stable`, `Empty`, `PreparingRebalance`, `Dead`.
    pub state: String,
    /// Who is in it.
    pub members: Vec<Member>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// How it calls itself.
    pub client_id: String,
    /// Where it connected from.
    pub host: String,
    /// The partitions it has been given, by topic; `None` if that cannot be read.
    pub assignment: Option<BTreeMap<String, Vec<i32>>>,
}

impl GroupState {
    /// Whether a member has been given this partition.
    #[must_use]
    pub fn has(&self, topic: &str, partition: i32) -> bool {
        let given = |member: &Member| {
            member.assignment.as_ref()?.get(topic).map(|partitions| partitions.contains(&partition))
        };
        self.members.iter().any(|member| given(member).unwrap_or(false))
    }
}

/// What a member's assignment says, in the format of Kafka's own consumers: a version, then topics with
/// their partitions.
pub(crate) fn assignment(bytes: &[u8]) -> Option<BTreeMap<String, Vec<i32>>> {
    if bytes.is_empty() {
        return Some(BTreeMap::new());
    }
    let mut bytes = Bytes(bytes);
    let _version = bytes.take::<2>()?;
    let topics = bytes.count()?;
    (0..topics)
        .map(|_| {
            let length = usize::try_from(i16::from_be_bytes(bytes.take()?)).ok()?;
            let name = std::str::from_utf8(bytes.slice(length)?).ok()?.to_owned();
            let partitions = bytes.count()?;
            let partitions = (0..partitions).map(|_| Some(i32::from_be_bytes(bytes.take()?)));
            Some((name, partitions.collect::<Option<Vec<_>>>()?))
        })
        .collect()
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn slice(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.slice(N)?.try_into().ok()
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(i32::from_be_bytes(self.take()?)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_read_and_a_torn_one_is_not() {
        let mut bytes = vec![0, 1, 0, 0, 0, 1, 0, 6];
        bytes.extend(b"orders");
        bytes.extend([0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 255, 255, 255, 255]);
        let given = BTreeMap::from([("orders".to_owned(), vec![0, 3])]);
        assert_eq!(assignment(&bytes), Some(given.clone()));
        assert_eq!(assignment(&[]), Some(BTreeMap::new()));
        for length in 1..bytes.len() - 4 {
            assert_eq!(assignment(&bytes[..length]), None, "{length} bytes");
        }
        let member = Member { client_id: "c".into(), host: "h".into(), assignment: Some(given) };
        let group = GroupState { state: "Stable".into(), members: vec![member] };
        assert!(group.has("orders", 3) && !group.has("orders", 1) && !group.has("other", 0));
    }
}
