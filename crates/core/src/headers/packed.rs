//! A trail in one value instead of a header for each thing it says: on the shelf a record comes by often, and every
//! header costs at every turn.

use bytes::Bytes;

use super::{Headers, Name, Trail};
use crate::offsets::leb128;
use crate::record::Record;

impl Trail {
    /// All that it says as the trail of this record: for each thing the number of its name, the length of its value,
    /// and that.
    pub(crate) fn pack(&self, record: &Record, to: &mut Vec<u8>) {
        for name in Name::ALL {
            let from = to.len();
            // Most values are short: their lengths take one byte.
            to.extend_from_slice(&[*name as u8, 0]);
            if !self.put_of(record, *name, to) {
                to.truncate(from);
                continue;
            }
            let at = from + 2;
            let length = to.len() - at;
            if length < 0x80 {
                to[at - 1] = length as u8;
                continue;
            }
            let mut long = Vec::with_capacity(8);
            leb128::put(&mut long, length as u64);
            to.splice(at - 1..at, long);
        }
    }

    /// What was packed, as headers; what a later version may have added is left out. None if it is cut off.
    pub(crate) fn unpack(packed: &Bytes) -> Option<Headers> {
        let mut headers = Headers::default();
        headers.reserve(16);
        for part in Parts(packed) {
            let (name, value) = part?;
            if let Some(name) = name {
                headers.push(name.as_str(), Some(packed.slice_ref(value)));
            }
        }
        Some(headers)
    }

    /// What was packed about where the record belongs and when it is due.
    pub(crate) fn unpack_brief(packed: &Bytes) -> Result<Self, String> {
        let mut trail = Self::default();
        for part in Parts(packed) {
            if let (Some(name), value) = part.ok_or(CUT_OFF)? {
                let bytes = || packed.slice_ref(value);
                trail.take_brief(name, value, bytes).map_err(|error| error.to_string())?;
            }
        }
        Ok(trail)
    }
}

/// What is wrong with a trail that ends too early.
pub(crate) const CUT_OFF: &str = "its trail is cut off";

/// What is left of a packed trail: the names, where they are known, and their values. `None` once it is cut off.
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = Option<(Option<Name>, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        let (number, rest) = self.0.split_first()?;
        self.0 = rest;
        let part = self.value().map(|value| (Name::ALL.get(usize::from(*number)).copied(), value));
        if part.is_none() {
            self.0 = &[];
        }
        Some(part)
    }
}

impl<'a> Parts<'a> {
    fn value(&mut self) -> Option<&'a [u8]> {
        let mut at = 0;
        let length = leb128::take(self.0, &mut at).and_then(|length| usize::try_from(length).ok())?;
        let (value, rest) = self.0.get(at..)?.split_at_checked(length)?;
        self.0 = rest;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::PREFIX;
    use proptest::prelude::*;

    #[test]
    fn the_numbers_of_names_stay_what_they_are() {
        // What lies on a shelf was written with these: a new name goes to the end.
        let names = [
            "origin",
            "origin-timestamp",
            "group",
            "attempt",
            "retries",
            "first-failed-at",
            "due",
            "lane",
            "class",
            "error-type",
            "error-message",
            "error-chain",
            "error-stack",
            "history",
            "reason",
            "leader",
            "service",
            "instance",
            "handler",
            "content-type",
            "buried-at",
            "replay",
            "replays",
            "replayed-at",
            "pointer",
            "pointer-expires",
            "signature",
            "key",
        ];
        let found: Vec<_> = Name::ALL.iter().map(|name| &name.as_str()[PREFIX.len()..]).collect();
        assert_eq!(found[..names.len()], names);
        assert!(Name::ALL.iter().enumerate().all(|(number, name)| *name as usize == number));
    }

    #[test]
    fn what_a_later_version_adds_is_left_out() {
        let packed = [&[6, 1, b'7'][..], &[99, 2, b'n', b'o'], &[3, 1, b'3']].concat();
        let headers = Trail::unpack(&Bytes::from(packed)).unwrap();
        assert_eq!((headers.text("redrive-due"), headers.text("redrive-attempt")), (Some("7"), Some("3")));
        assert_eq!(headers.iter().len(), 2);
    }

    #[test]
    fn what_is_cut_off_is_not_taken_for_less() {
        let packed: &'static [u8] = &[6, 1, b'7', 3, 1, b'3'];
        let is_read = |length: &usize| Trail::unpack(&Bytes::from_static(&packed[..*length])).is_some();
        assert_eq!((0..=packed.len()).filter(is_read).collect::<Vec<_>>(), [0, 3, packed.len()]);
    }

    #[test]
    fn long_values_are_read_as_they_were_written() {
        for length in [126, 127, 128, 129, 16_383, 16_384] {
            let trail = Trail { group: Some("g".repeat(length)), attempt: Some(3), ..Trail::default() };
            let at = "orders/3/7".parse().unwrap();
            let record = Record { at, timestamp: None, key: None, value: None, headers: Headers::default() };
            let mut packed = Vec::new();
            trail.pack(&record, &mut packed);
            let read = Trail::read(&Trail::unpack(&Bytes::from(packed)).unwrap()).unwrap();
            assert_eq!((read.group, read.attempt), (trail.group, trail.attempt));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let bytes = Bytes::from(bytes);
            // Both refuse what is cut off.
            prop_assert!(Trail::unpack(&bytes).is_some() || Trail::unpack_brief(&bytes).is_err());
        }
    }
}
