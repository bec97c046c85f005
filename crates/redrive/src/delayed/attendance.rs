//! Whether somebody carries out orders: a member of the group that has the partition.

use redrive_core::Topic;
use redrive_kafka::{Admin, Error, GroupState};

/// Whether a worker has a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    /// One has it.
    Present,
    /// It is being given to one, or the broker cannot tell.
    Unsure,
    /// None was seen, though one may be there that the broker does not tell of.
    Unseen,
    /// None has it.
    Absent,
}

/// Whether a worker of `group` has this partition of `topic`.
pub async fn attendance(
    admin: &Admin,
    group: &str,
    topic: &Topic,
    partition: i32,
) -> Result<Attendance, Error> {
    Ok(of(&admin.group(group).await?, topic, partition))
}

pub(super) fn of(group: &GroupState, topic: &Topic, partition: i32) -> Attendance {
    let is_readable = group.members.iter().all(|member| member.assignment.is_some());
    match group.state.as_str() {
        _ if group.has(topic.as_str(), partition) => Attendance::Present,
        "Empty" => Attendance::Absent,
        "Stable" if is_readable && !group.members.is_empty() => Attendance::Absent,
        // No such group, none that we may see, or one of the newer protocol that this call does not know.
        "Dead" | "" => Attendance::Unseen,
        _ => Attendance::Unsure,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use redrive_kafka::Member;

    use super::*;

    #[test]
    fn a_worker_is_absent_only_where_the_broker_says_so() {
        let member = |given: Option<&[i32]>| Member {
            client_id: String::new(),
            host: String::new(),
            assignment: given.map(|given| BTreeMap::from([("orders".to_owned(), given.to_vec())])),
        };
        let cases = [
            ("Stable", vec![member(Some(&[1])), member(Some(&[0]))], Attendance::Present),
            ("Stable", vec![member(Some(&[1]))], Attendance::Absent),
            ("Stable", vec![member(None)], Attendance::Unsure),
            ("PreparingRebalance", vec![member(Some(&[]))], Attendance::Unsure),
            ("Empty", vec![], Attendance::Absent),
            ("Dead", vec![], Attendance::Unseen),
        ];
        for (state, members, expected) in cases {
            let group = GroupState { state: state.to_owned(), members };
            assert_eq!(of(&group, &"orders".parse().unwrap(), 0), expected, "{group:?}");
        }
    }
}
