//! One record in 29 bytes: offsets and times in six bytes, the lane in five, and no padding.

use super::waiting::{LaneTag, Stage, Waiting};
use crate::time::Timestamp;

const LIVE: u8 = 1;
const LANED: u8 = 1 << 1;
const CANCELLED: u8 = 1 << 2;
const CANDIDATE: u8 = 1 << 3;
const HEAPED: u8 = 1 << 4;
const STAGE: u8 = 3 << 5;
const POINTER: u8 = 1 << 7;

/// One record, or what is left of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    origin: [u8; 6],
    at: [u8; 6],
    due: [u8; 6],
    lane: [u8; 5],
    attempt: [u8; 2],
    size: [u8; 2],
    replay: u8,
    marks: u8,
}

const _: () = assert!(size_of::<Slot>() == 29);

impl Slot {
    /// A slot without a record; `next` is for the arena to remember.
    pub(super) fn vacant(next: i64) -> Self {
        let (due, lane, pair) = ([0; 6], [0; 5], [0; 2]);
        Self { origin: pack(next), at: due, due, lane, attempt: pair, size: pair, replay: 0, marks: 0 }
    }

    /// The record, neither a candidate nor in the heap.
    pub(super) fn of(waiting: &Waiting) -> Self {
        let origin = pack(waiting.origin);
        assert!(unpack(origin) == waiting.origin, "offset {} does not fit in 48 bits", waiting.origin);
        let [a, b, c, d, e, ..] = waiting.lane.map_or(0, LaneTag::bits).to_le_bytes();
        let mark = |holds: bool, mark: u8| if holds { mark } else { 0 };
        let mut slot = Self {
            origin,
            at: pack(waiting.at),
            due: pack(waiting.due.millis()),
            lane: [a, b, c, d, e],
            attempt: u16::try_from(waiting.attempt).unwrap_or(u16::MAX).to_le_bytes(),
            size: shorten(waiting.size).to_le_bytes(),
            replay: u8::try_from(waiting.replay).unwrap_or(u8::MAX),
            marks: LIVE
                | mark(waiting.lane.is_some(), LANED)
                | mark(waiting.cancelled, CANCELLED)
                | mark(waiting.pointer, POINTER),
        };
        slot.set_stage(waiting.stage);
        slot
    }

    pub(super) fn waiting(&self) -> Waiting {
        Waiting {
            origin: self.origin(),
            at: unpack(self.at),
            due: self.due(),
            lane: self.lane(),
            attempt: u16::from_le_bytes(self.attempt).into(),
            replay: self.replay.into(),
            size: self.size(),
            cancelled: self.marks & CANCELLED != 0,
            pointer: self.marks & POINTER != 0,
            stage: self.stage(),
        }
    }

    pub(super) fn origin(&self) -> i64 {
        unpack(self.origin)
    }

    pub(super) fn due(&self) -> Timestamp {
        Timestamp::from_millis(unpack(self.due))
    }

    pub(super) fn lane(&self) -> Option<LaneTag> {
        let [a, b, c, d, e] = self.lane;
        let tag = || LaneTag::new(u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]));
        (self.marks & LANED != 0).then(tag)
    }

    /// The lane it has a place in: what is finished stands in no lane any more.
    pub(super) fn place(&self) -> Option<LaneTag> {
        match self.stage() {
            Stage::Waiting | Stage::Out | Stage::Held => self.lane(),
            Stage::Finished => None,
        }
    }

    pub(super) fn size(&self) -> u32 {
        lengthen(u16::from_le_bytes(self.size))
    }

    pub(super) fn stage(&self) -> Stage {
        match (self.marks & STAGE) >> 5 {
            0 => Stage::Waiting,
            1 => Stage::Out,
            2 => Stage::Finished,
            _ => Stage::Held,
        }
    }

    pub(super) fn set_stage(&mut self, stage: Stage) {
        let bits = match stage {
            Stage::Waiting => 0,
            Stage::Out => 1,
            Stage::Finished => 2,
            Stage::Held => 3,
        };
        self.marks = self.marks & !STAGE | bits << 5;
    }

    pub(super) fn set_due(&mut self, due: Timestamp) {
        self.due = pack(due.millis());
    }

    pub(super) fn set_cancelled(&mut self) {
        self.marks |= CANCELLED;
    }

    /// Whether a record is in it.
    pub(super) fn is_live(&self) -> bool {
        self.marks & LIVE != 0
    }

    pub(super) fn is_candidate(&self) -> bool {
        self.marks & CANDIDATE != 0
    }

    /// Whether the heap has it, so that neither its due nor its number may change.
    pub(super) fn is_heaped(&self) -> bool {
        self.marks & HEAPED != 0
    }

    pub(super) fn set_live(&mut self, live: bool) {
        self.set(LIVE, live);
    }

    pub(super) fn set_candidate(&mut self, candidate: bool) {
        self.set(CANDIDATE, candidate);
    }

    pub(super) fn set_heaped(&mut self, heaped: bool) {
        self.set(HEAPED, heaped);
    }

    fn set(&mut self, mark: u8, holds: bool) {
        self.marks = if holds { self.marks | mark } else { self.marks & !mark };
    }
}

const HIGHEST: i64 = (1 << 47) - 1;

fn pack(number: i64) -> [u8; 6] {
    let [a, b, c, d, e, f, ..] = number.clamp(-HIGHEST - 1, HIGHEST).to_le_bytes();
    [a, b, c, d, e, f]
}

fn unpack([a, b, c, d, e, f]: [u8; 6]) -> i64 {
    // In the upper six bytes first, so that the shift extends the sign.
    i64::from_le_bytes([0, 0, a, b, c, d, e, f]) >> 16
}

/// Eleven bits and where they stand; the twelfth, the highest, goes without saying.
fn shorten(size: u32) -> u16 {
    let shift = size.checked_ilog2().unwrap_or(0).saturating_sub(11);
    let Ok(kept) = u16::try_from(size >> shift) else { unreachable!("twelve bits are kept") };
    // The twelfth bit adds one to the shift that is written; without it the shift is zero.
    ((shift as u16) << 11) + kept
}

fn lengthen(short: u16) -> u32 {
    match u32::from(short >> 11) {
        0 => short.into(),
        shift => u32::from(short & 0x7ff | 0x800) << (shift - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_exact_when_small_and_close_when_large() {
        (0..4096).for_each(|size| assert_eq!(lengthen(shorten(size)), size));
        for size in (4096..u32::MAX).step_by(99_991).chain([u32::MAX]) {
            let kept = lengthen(shorten(size));
            assert!(kept <= size && size - kept <= size / 2048, "{size} became {kept}");
        }
    }

    #[test]
    fn numbers_keep_their_sign_and_stop_at_the_end() {
        for number in [0, 1, -1, 1_753_000_000_000, HIGHEST, -HIGHEST - 1] {
            assert_eq!(unpack(pack(number)), number);
        }
        assert_eq!(unpack(pack(i64::MAX)), HIGHEST);
        assert_eq!(unpack(pack(i64::MIN)), -HIGHEST - 1);
    }
}
