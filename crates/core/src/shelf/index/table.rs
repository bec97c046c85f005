//! Slot numbers by key, in five bytes each: several may have one key, and the keys themselves are in
//! the slots. Robin Hood hashing, so that the table stays quick though seven cells of eight are taken.
//!
//! It consists of shards that grow one after another: no growth halts everything for long, and the
//! room that is not used yet is that of a growth just past in a few of them only.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::shard::Shard;

const SHARDS: usize = 16;

/// Slot numbers by key.
#[derive(Debug)]
pub(super) struct Table {
    /// Whoever chooses the keys must not be able to choose where they are put.
    seed: u64,
    shards: [Shard; SHARDS],
}

impl Default for Table {
    fn default() -> Self {
        let seed = DefaultHashBuilder::default().hash_one(0_u64);
        // Of different sizes from the start, and by the same factor ever after.
        Self { seed, shards: std::array::from_fn(|shard| Shard::new(SHARDS + shard)) }
    }
}

impl Table {
    /// The slots that may be of this key: few others are among them.
    pub(super) fn like(&self, key: u64) -> impl Iterator<Item = u32> {
        let hash = self.hash(key);
        self.shards[shard(hash)].like(hash)
    }

    /// Adds a slot; `key_of` tells the keys of those that are there.
    pub(super) fn insert(&mut self, key: u64, id: u32, key_of: impl Fn(u32) -> u64) {
        let (hash, seed) = (self.hash(key), self.seed);
        self.shards[shard(hash)].insert(hash, id, |id| mix(key_of(id) ^ seed));
    }

    /// Removes a slot that is there; `key_of` tells the keys of the others.
    pub(super) fn remove(&mut self, key: u64, id: u32, key_of: impl Fn(u32) -> u64) {
        let (hash, seed) = (self.hash(key), self.seed);
        self.shards[shard(hash)].remove(hash, id, |id| mix(key_of(id) ^ seed));
    }

    /// The record of `key` has moved from one slot to another.
    pub(super) fn replace(&mut self, key: u64, from: u32, to: u32) {
        let hash = self.hash(key);
        self.shards[shard(hash)].replace(hash, from, to);
    }

    /// Every record has moved, from slot `id` to slot `moved[id]`.
    pub(super) fn renumber(&mut self, moved: &[u32]) {
        self.shards.iter_mut().for_each(|shard| shard.renumber(moved));
    }

    pub(super) fn memory(&self) -> usize {
        self.shards.iter().map(Shard::memory).sum()
    }

    fn hash(&self, key: u64) -> u64 {
        mix(key ^ self.seed)
    }
}

fn shard(hash: u64) -> usize {
    // The home within the shard is taken from the lower half.
    (hash >> 60) as usize
}

/// The last step of MurmurHash3: each bit of the key turns every bit of the hash, or does not, by chance.
fn mix(mut key: u64) -> u64 {
    key = (key ^ key >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    key = (key ^ key >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    key ^ key >> 33
}
