//! Which topics a group of consumers reads, from what its members told their assignor.

use std::collections::BTreeSet;

use bytes::{Buf, Bytes};

use super::group::Group;

impl Group {
    /// Unknown where the members are no consumers or speak in a form of their own.
    pub(super) fn subscribed_topics(&self) -> Option<BTreeSet<String>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol.as_deref()?;
        let mut all = BTreeSet::new();
        for member in self.members.values() {
            all.extend(topics(member.metadata(protocol))?);
        }
        Some(all)
    }

    /// In doubt a group of consumers reads every topic: its offsets are not taken from under it.
    pub(super) fn reads(&self, topic: &str) -> bool {
        match self.subscribed_topics() {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }
}

/// The beginning that all versions of a consumer's subscription share: version, then topics.
fn topics(mut metadata: Bytes) -> Option<Vec<String>> {
    metadata.try_get_i16().ok()?;
    let count = metadata.try_get_i32().ok()?;
    (0..count).map(|_| topic(&mut metadata)).collect()
}

fn topic(metadata: &mut Bytes) -> Option<String> {
    let len = usize::try_from(metadata.try_get_i16().ok()?).ok()?;
    if len > metadata.len() {
        return None;
    }
    String::from_utf8(metadata.split_to(len).to_vec()).ok()
}
