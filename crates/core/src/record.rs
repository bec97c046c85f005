//! A record as it was consumed.

use bytes::Bytes;

use crate::headers::Headers;
use crate::origin::Origin;
use crate::time::Timestamp;

/// A Kafka record with everything it carries, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub at: Origin,
    /// Its timestamp, if it has one.
    pub timestamp: Option<Timestamp>,
    /// Its key; a null is not an empty key.
    pub key: Option<Bytes>,
    /// Its value; a null is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers.
    pub headers: Headers,
}

impl Record {
    /// About how many bytes of memory it takes: key, value and headers.
    #[must_use]
    pub fn size(&self) -> usize {
        let length = |bytes: Option<&Bytes>| bytes.map_or(0, Bytes::len);
        length(self.key.as_ref()) + length(self.value.as_ref()) + self.headers.size()
    }

    /// The same record in memory of its own, so that keeping it keeps nothing else.
    #[must_use]
    pub fn detached(&self) -> Self {
        let own = |bytes: &Option<Bytes>| bytes.as_deref().map(Bytes::copy_from_slice);
        Self { key: own(&self.key), value: own(&self.value), ..self.clone() }
    }
}
