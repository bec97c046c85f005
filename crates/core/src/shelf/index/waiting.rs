//! What the index says and is told of one record.

use crate::time::Timestamp;

/// A business key's tag, 40 bits of a keyed hash. Different keys may share one, so whole keys are
/// compared where it matters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaneTag(u64);

impl LaneTag {
    /// The tag of a key with this hash.
    #[must_use]
    pub const fn new(hash: u64) -> Self {
        Self(hash & ((1 << 40) - 1))
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }
}

/// One record that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Its source offset: the identity. Between -2^47 and 2^47.
    pub origin: i64,
    /// Where its newest entry stands in the shelf. Kept within -2^47 and 2^47.
    pub at: i64,
    /// When it may run, if nothing of its lane is before it. Kept within some 4000 years of the epoch.
    pub due: Timestamp,
    /// The lane it stands in, if it has a key.
    pub lane: Option<LaneTag>,
    /// Which attempt is next. Kept up to 65535.
    pub attempt: u32,
    /// Which replay of it this is. Kept up to 255.
    pub replay: u32,
    /// Bytes of its entry: exact below 4096, above that up to one part in 2048 too low.
    pub size: u32,
    /// It is not to run any more.
    pub cancelled: bool,
    /// Its payload is still where it was consumed.
    pub pointer: bool,
    /// How far it is.
    pub stage: Stage,
}

/// How far a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// On the shelf.
    Waiting,
    /// In memory, on its way to the handler or with it.
    Out,
    /// Complete here; the log does not say so yet.
    Finished,
    /// Its lane is closed.
    Held,
}
