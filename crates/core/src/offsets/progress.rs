//! How far a partition has come, as bytes: a mark, then gap and length of each range ahead of it.
//!
//! All numbers are LEB128, so that a run of any length takes a few bytes.

use super::Ranges;
use super::leb128::put;

const VERSION: u8 = 1;

/// The low-water mark and what is complete ahead of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Never negative.
    mark: i64,
    /// All above the mark, and not right at it.
    ahead: Ranges,
}

/// Bytes that are no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadProgress {
    /// Written by a version that this one cannot read.
    #[error("progress has version {0}; this program reads version {VERSION}")]
    Version(u8),
    /// The bytes end too early.
    #[error("progress ends in the middle")]
    Truncated,
    /// Not something that [`Progress::encode`] writes.
    #[error("progress is malformed at byte {0}")]
    Malformed(usize),
}

impl Progress {
    /// Nothing is known but where to read from.
    #[must_use]
    pub fn at(mark: i64) -> Self {
        Self::new(mark, Ranges::default())
    }

    /// The mark, moved over what is complete right at it, and what is complete ahead of that.
    #[must_use]
    pub fn new(mark: i64, mut ahead: Ranges) -> Self {
        let mark = ahead.end_of_run_at(mark.max(0));
        ahead.drop_below(mark);
        Self { mark, ahead }
    }

    /// Everything below is complete.
    #[must_use]
    pub fn mark(&self) -> i64 {
        self.mark
    }

    /// Complete although something below is not.
    #[must_use]
    pub fn ahead(&self) -> &Ranges {
        &self.ahead
    }

    pub(super) fn into_parts(self) -> (i64, Ranges) {
        (self.mark, self.ahead)
    }

    /// The compact form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_len());
        bytes.push(VERSION);
        self.numbers().for_each(|number| put(&mut bytes, number));
        bytes
    }

    /// How long the compact form is.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        1 + self.numbers().map(width).sum::<usize>()
    }

    /// Reads the compact form, and accepts nothing that [`Progress::encode`] would not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadProgress> {
        let version = *bytes.first().ok_or(BadProgress::Truncated)?;
        if version != VERSION {
            return Err(BadProgress::Version(version));
        }
        let mut at = 1;
        let mark = take_offset(bytes, &mut at)?;
        let mut end = mark;
        let mut ahead = Ranges::default();
        while at < bytes.len() {
            let start = end.checked_add(take_positive(bytes, &mut at)?).ok_or(BadProgress::Malformed(at))?;
            end = start.checked_add(take_positive(bytes, &mut at)?).ok_or(BadProgress::Malformed(at))?;
            ahead.insert(start..end);
        }
        Ok(Self { mark, ahead })
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let ends = std::iter::once(self.mark).chain(self.ahead.iter().map(|range| range.end));
        let pairs = self.ahead.iter().zip(ends);
        let pairs = pairs.flat_map(|(range, before)| [range.start - before, range.end - range.start]);
        std::iter::once(self.mark).chain(pairs).map(i64::cast_unsigned)
    }
}

fn width(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

fn take_positive(bytes: &[u8], at: &mut usize) -> Result<i64, BadProgress> {
    let start = *at;
    match take_offset(bytes, at)? {
        0 => Err(BadProgress::Malformed(start)),
        number => Ok(number),
    }
}

fn take_offset(bytes: &[u8], at: &mut usize) -> Result<i64, BadProgress> {
    let start = *at;
    let mut number = 0_u64;
    loop {
        let byte = *bytes.get(*at).ok_or(BadProgress::Truncated)?;
        let shift = 7 * (*at - start);
        *at += 1;
        // Nine bytes hold 63 bits, all that an offset has; a last byte of zero would be a second spelling.
        if shift > 56 || (byte == 0 && shift > 0) {
            return Err(BadProgress::Malformed(start));
        }
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return i64::try_from(number).map_err(|_| BadProgress::Malformed(start));
        }
    }
}
