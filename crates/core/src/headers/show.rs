//! Values as the text of headers, without what general formatting costs: on the shelf they are written for every
//! record.

use crate::class::Class;
use crate::origin::Origin;
use crate::route::{Reason, Retries};
use crate::time::Timestamp;

/// What has a text, the same as when it is displayed.
pub(crate) trait Show {
    /// Adds the text.
    fn show(&self, to: &mut Vec<u8>);
}

/// Adds a whole number in decimal digits.
pub(crate) fn number(to: &mut Vec<u8>, number: impl itoa::Integer) {
    to.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Adds a number in sixteen hexadecimal digits.
pub(crate) fn hexadecimal(to: &mut Vec<u8>, number: u64) {
    let digit = |place: u32| b"0123456789abcdef"[(number >> (4 * place) & 15) as usize];
    to.extend((0..16).rev().map(digit));
}

impl<T: Show + ?Sized> Show for &T {
    fn show(&self, to: &mut Vec<u8>) {
        (**self).show(to);
    }
}

impl Show for str {
    fn show(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.as_bytes());
    }
}

impl Show for String {
    fn show(&self, to: &mut Vec<u8>) {
        self.as_str().show(to);
    }
}

impl Show for u32 {
    fn show(&self, to: &mut Vec<u8>) {
        number(to, *self);
    }
}

impl Show for Timestamp {
    fn show(&self, to: &mut Vec<u8>) {
        number(to, self.millis());
    }
}

impl Show for Class {
    fn show(&self, to: &mut Vec<u8>) {
        self.name().show(to);
    }
}

impl Show for Reason {
    fn show(&self, to: &mut Vec<u8>) {
        self.name().show(to);
    }
}

impl Show for Origin {
    fn show(&self, to: &mut Vec<u8>) {
        self.topic.as_str().show(to);
        to.push(b'/');
        number(to, self.partition);
        to.push(b'/');
        number(to, self.offset);
    }
}

impl Show for Retries {
    fn show(&self, to: &mut Vec<u8>) {
        number(to, self.in_place);
        to.push(b'/');
        number(to, self.blocked);
        to.push(b'/');
        number(to, self.set_aside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(value: &impl Show) -> String {
        let mut text = Vec::new();
        value.show(&mut text);
        String::from_utf8(text).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_shown_is_what_is_displayed(
            number in any::<u32>(), time in any::<i64>(), topic in "[a-z._-]{3,20}", partition in 0..i32::MAX,
            offset in 0..i64::MAX, retries in any::<[u32; 3]>(), hex in any::<u64>(),
        ) {
            prop_assert_eq!(shown(&number), number.to_string());
            let time = Timestamp::from_millis(time);
            prop_assert_eq!(shown(&time), time.to_string());
            let origin = Origin { topic: topic.parse().unwrap(), partition, offset };
            prop_assert_eq!(shown(&origin), origin.to_string());
            let retries = Retries { in_place: retries[0], blocked: retries[1], set_aside: retries[2] };
            prop_assert_eq!(shown(&retries), retries.to_string());
            let mut digits = Vec::new();
            hexadecimal(&mut digits, hex);
            prop_assert_eq!(String::from_utf8(digits).unwrap(), format!("{hex:016x}"));
        }
    }
}
