//! A part of a table: cells in a ring, each entry as near behind its home as those before it allow.
//! The entries stand in the order of their homes, and each knows how far from home it is; so a search
//! ends early, and a removal closes the gap, without a look at any key.

/// A slot number in 28 bits, and how far from home it is in twelve: one at home, zero in an empty cell.
#[derive(Clone, Copy, Debug)]
struct Cell([u8; 5]);

const EMPTY: Cell = Cell([0; 5]);
const ID_BITS: u32 = 28;

impl Cell {
    fn new(id: u32, far: u64) -> Self {
        assert!(id < 1 << ID_BITS, "one partition keeps 268 million records at most");
        // With a seeded hash a run of a hundred is rare; one of thousands is not met.
        assert!(far < 1 << 12, "a table has an entry {far} cells from its home");
        let [a, b, c, d, e, ..] = (far << ID_BITS | u64::from(id)).to_le_bytes();
        Self([a, b, c, d, e])
    }

    fn bits(self) -> u64 {
        let [a, b, c, d, e] = self.0;
        u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
    }

    fn id(self) -> u32 {
        self.bits() as u32 & ((1 << ID_BITS) - 1)
    }

    fn far(self) -> u64 {
        self.bits() >> ID_BITS
    }
}

/// A part of a table.
#[derive(Debug)]
pub(super) struct Shard {
    cells: Box<[Cell]>,
    len: usize,
    /// The size it starts with.
    least: usize,
}

impl Shard {
    pub(super) fn new(least: usize) -> Self {
        Self { cells: Box::default(), len: 0, least }
    }

    /// The slots whose hash has the same home.
    pub(super) fn like(&self, hash: u64) -> impl Iterator<Item = u32> {
        self.positions(hash).map(|at| self.cells[at].id())
    }

    pub(super) fn insert(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.len + 1) * 8 > self.cells.len() * 7 {
            // By a fifth: half the room of a table that doubles is empty after it did.
            self.resize((self.cells.len() * 6).div_ceil(5).max(self.least), hash_of);
        }
        self.place(hash, id);
        self.len += 1;
    }

    pub(super) fn remove(&mut self, hash: u64, id: u32, hash_of: impl Fn(u32) -> u64) {
        let Some(mut at) = self.position(hash, id) else { return };
        loop {
            let next = self.after(at);
            let cell = self.cells[next];
            if cell.far() <= 1 {
                break;
            }
            self.cells[at] = Cell::new(cell.id(), cell.far() - 1);
            at = next;
        }
        self.cells[at] = EMPTY;
        self.len -= 1;
        if self.cells.len() > 4 * self.least && self.len * 2 < self.cells.len() {
            self.resize(self.len * 4 / 3 + self.least, hash_of);
        }
    }

    pub(super) fn replace(&mut self, hash: u64, from: u32, to: u32) {
        if let Some(at) = self.position(hash, from) {
            self.cells[at] = Cell::new(to, self.cells[at].far());
        }
    }

    pub(super) fn renumber(&mut self, moved: &[u32]) {
        for cell in self.cells.iter_mut().filter(|cell| cell.far() > 0) {
            *cell = Cell::new(moved[cell.id() as usize], cell.far());
        }
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.cells)
    }

    fn position(&self, hash: u64, id: u32) -> Option<usize> {
        self.positions(hash).find(|at| self.cells[*at].id() == id)
    }

    /// Where entries with the same home as this hash stand.
    fn positions(&self, hash: u64) -> impl Iterator<Item = usize> {
        let mut at = self.home(hash);
        let mut far = 0;
        std::iter::from_fn(move || {
            loop {
                let here = at;
                let found = self.cells.get(here)?.far();
                (at, far) = (self.after(here), far + 1);
                if found <= far {
                    return (found == far).then_some(here);
                }
            }
        })
    }

    fn place(&mut self, hash: u64, id: u32) {
        let (mut at, mut far) = (self.home(hash), 1);
        while self.cells[at].far() >= far {
            (at, far) = (self.after(at), far + 1);
        }
        // All from here to the next empty cell move on by one.
        let mut cell = Cell::new(id, far);
        while cell.far() > 0 {
            std::mem::swap(&mut cell, &mut self.cells[at]);
            at = self.after(at);
            if cell.far() > 0 {
                cell = Cell::new(cell.id(), cell.far() + 1);
            }
        }
    }

    fn resize(&mut self, cells: usize, hash_of: impl Fn(u32) -> u64) {
        let old = std::mem::replace(&mut self.cells, vec![EMPTY; cells].into());
        // The keys lie all over the memory: many are asked for before the first is needed.
        let mut batch = [(0, 0); 64];
        let mut ids = old.iter().filter(|cell| cell.far() > 0).map(|cell| cell.id());
        loop {
            let mut count = 0;
            for (entry, id) in batch.iter_mut().zip(&mut ids) {
                *entry = (hash_of(id), id);
                count += 1;
            }
            batch[..count].iter().for_each(|(hash, id)| self.place(*hash, *id));
            if count < batch.len() {
                break;
            }
        }
    }

    fn home(&self, hash: u64) -> usize {
        // A product instead of a remainder: the size is no power of two.
        (((hash & u64::from(u32::MAX)) * self.cells.len() as u64) >> 32) as usize
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 < self.cells.len() { at + 1 } else { 0 }
    }
}
