//! What this broker speaks: each API with its range of versions, the one list that is advertised and
//! that requests are checked against.

use kafka_protocol::messages::ApiKey;
use kafka_protocol::messages::api_versions_response::ApiVersion;

/// An API and its versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spoken {
    pub(crate) api: ApiKey,
    pub(crate) min: i16,
    pub(crate) max: i16,
}

/// Everything that is answered.
pub(crate) const SPOKEN: &[Spoken] = &[
    // Up to 11: from 12 on producers skip AddPartitionsToTxn, which needs the second transaction protocol.
    of(ApiKey::Produce, 3, 11),
    of(ApiKey::Fetch, 4, 17),
    of(ApiKey::ListOffsets, 1, 10),
    of(ApiKey::Metadata, 0, 13),
    // 10 and later name topics by id, which the codecs do not know yet.
    of(ApiKey::OffsetCommit, 2, 9),
    of(ApiKey::OffsetFetch, 1, 9),
    of(ApiKey::FindCoordinator, 0, 6),
    of(ApiKey::JoinGroup, 0, 9),
    of(ApiKey::Heartbeat, 0, 4),
    of(ApiKey::LeaveGroup, 0, 5),
    of(ApiKey::SyncGroup, 0, 5),
    of(ApiKey::DescribeGroups, 0, 6),
    of(ApiKey::ListGroups, 0, 5),
    of(ApiKey::ApiVersions, 0, 4),
    of(ApiKey::CreateTopics, 2, 7),
    of(ApiKey::DeleteTopics, 1, 6),
    of(ApiKey::DeleteRecords, 0, 2),
    of(ApiKey::InitProducerId, 0, 5),
    of(ApiKey::OffsetForLeaderEpoch, 2, 4),
    // 4 and 5 are between brokers.
    of(ApiKey::AddPartitionsToTxn, 0, 3),
    of(ApiKey::AddOffsetsToTxn, 0, 4),
    // 5 is the second transaction protocol, here and for the offsets.
    of(ApiKey::EndTxn, 0, 4),
    of(ApiKey::TxnOffsetCommit, 0, 4),
    of(ApiKey::DescribeConfigs, 1, 4),
    of(ApiKey::AlterConfigs, 0, 2),
    of(ApiKey::DescribeLogDirs, 1, 4),
    of(ApiKey::CreatePartitions, 0, 3),
    of(ApiKey::DeleteGroups, 0, 2),
    of(ApiKey::IncrementalAlterConfigs, 0, 1),
    of(ApiKey::ListPartitionReassignments, 0, 0),
    of(ApiKey::OffsetDelete, 0, 0),
    of(ApiKey::DescribeCluster, 0, 2),
    of(ApiKey::DescribeProducers, 0, 0),
    of(ApiKey::DescribeTopicPartitions, 0, 0),
];

const fn of(api: ApiKey, min: i16, max: i16) -> Spoken {
    Spoken { api, min, max }
}

/// The entry of an API in that version, if it is spoken.
pub(crate) fn find(key: i16, version: i16) -> Option<ApiKey> {
    let spoken = SPOKEN.iter().find(|spoken| spoken.api as i16 == key)?;
    (spoken.min..=spoken.max).contains(&version).then_some(spoken.api)
}

/// The list as ApiVersions gives it.
pub(crate) fn advertised() -> Vec<ApiVersion> {
    let entry = |spoken: &Spoken| {
        // As Kafka 4 does: older librdkafka takes a range that begins later for a broker without compression.
        let min = if spoken.api == ApiKey::Produce {
            0
        } else {
            spoken.min
        };
        ApiVersion::default()
            .with_api_key(spoken.api as i16)
            .with_min_version(min)
            .with_max_version(spoken.max)
    };
    SPOKEN.iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codecs_know_every_version_that_is_spoken() {
        for spoken in SPOKEN {
            let valid = spoken.api.valid_versions();
            assert!(
                valid.min <= spoken.min && spoken.max <= valid.max,
                "{:?} {valid}",
                spoken.api
            );
        }
    }

    #[test]
    fn what_is_outside_the_range_is_not_found() {
        assert_eq!(find(ApiKey::Fetch as i16, 3), None);
        assert_eq!(find(ApiKey::Fetch as i16, 4), Some(ApiKey::Fetch));
        assert_eq!(find(9_999, 0), None);
    }
}
