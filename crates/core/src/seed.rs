//! Chance as an argument: numbers that look random and are the same every time.

use crate::origin::Origin;

/// Where the scatter of a record's delays comes from: its origin, so that every instance agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// A seed for tests and pictures.
    #[must_use]
    pub const fn fixed(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed of a record.
    #[must_use]
    pub fn of(origin: &Origin) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let tail = origin.partition.to_be_bytes().into_iter().chain(origin.offset.to_be_bytes());
        for byte in origin.topic.as_str().bytes().chain(tail) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self(hash)
    }

    /// The `draw`th number of this seed, in 0..1.
    #[must_use]
    pub fn unit(self, draw: u32) -> f64 {
        // The finisher of SplitMix64: neighbouring seeds and draws give unrelated numbers.
        let mut z = self.0.wrapping_add(u64::from(draw).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
