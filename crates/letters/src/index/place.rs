//! The number of a letter in the index: its place, which is a partition of a letter topic, and its offset there.

/// How many bits an offset has: enough for a million letters a second for a hundred days.
const BITS: u32 = 43;
/// The largest offset that fits.
pub(crate) const LAST: i64 = (1 << BITS) - 1;

/// The number of the letter at an offset.
pub(crate) fn id(place: i64, offset: i64) -> i64 {
    (place << BITS) | offset.clamp(0, LAST)
}

pub(crate) fn place_of(id: i64) -> i64 {
    id >> BITS
}

pub(crate) fn offset_of(id: i64) -> i64 {
    id & LAST
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_letter_has_a_number_of_its_own(place in 0..1_i64 << 19, offset in 0..=LAST) {
            let id = id(place, offset);
            prop_assert_eq!((place_of(id), offset_of(id)), (place, offset));
        }
    }
}
