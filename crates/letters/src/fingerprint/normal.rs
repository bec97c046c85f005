//! A message without the values in it: numbers, UUIDs, hexadecimal digits, quoted texts and dates are replaced, so
//! that what is left says what went wrong and not with what.

use std::fmt::Write as _;

/// How much of a message counts, after values were replaced.
const MOST: usize = 400;

/// What stands for a number, a UUID, or hexadecimal digits: which of them it was may depend on chance.
const NUMBER: &str = "#";
const DATE: &str = "<date>";
const QUOTED: &str = "'?'";

const NAMES: [&str; 38] = [
    "Mon",
    "Tue",
    "Wed",
    "Thu",
    "Fri",
    "Sat",
    "Sun",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
    "January",
    "February",
    "March",
    "April",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
    "Sept",
];

/// The message with values replaced, spaces made one, and no longer than some hundred bytes.
#[must_use]
pub fn normalised(message: &str) -> String {
    let mut normal = String::with_capacity(message.len().min(MOST + 8));
    let bytes = message.as_bytes();
    let mut at = 0;
    while at < bytes.len() && normal.len() < MOST {
        at = step(message, at, &mut normal);
    }
    let mut end = normal.len().min(MOST);
    while !normal.is_char_boundary(end) {
        end -= 1;
    }
    normal.truncate(normal[..end].trim_end().len());
    normal
}

/// Takes one piece of the message; where the next begins.
fn step(message: &str, at: usize, to: &mut String) -> usize {
    let bytes = message.as_bytes();
    let byte = bytes[at];
    let is_inside = at > 0 && is_word(bytes[at - 1]);
    match byte {
        b'"' | b'\'' | b'`' if !is_inside => match closing(bytes, at) {
            Some(end) => {
                to.push_str(QUOTED);
                end + 1
            }
            None => {
                to.push(char::from(byte));
                at + 1
            }
        },
        // A sign belongs to its number.
        b'-' | b'+' if !is_inside && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => at + 1,
        b if b.is_ascii_alphanumeric() => value(message, at, to),
        b if b.is_ascii_whitespace() => {
            if !to.is_empty() && !to.ends_with(' ') {
                to.push(' ');
            }
            at + 1
        }
        b if b.is_ascii() => {
            to.push(char::from(b));
            at + 1
        }
        _ => {
            let other = message[at..].chars().next().unwrap_or(' ');
            let _ = to.write_char(other);
            at + other.len_utf8()
        }
    }
}

/// Where a quoted text ends: at the same quote, before something that is not part of a word.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        if *byte == b'\\' {
            at += 2;
            continue;
        }
        if *byte == bytes[open] && bytes.get(at + 1).is_none_or(|next| !is_word(*next)) {
            return Some(at);
        }
        at += 1;
    }
    None
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// A word, or a value that looks like one.
fn value(message: &str, at: usize, to: &mut String) -> usize {
    let bytes = &message.as_bytes()[at..];
    if let Some(length) = uuid(bytes) {
        to.push_str(NUMBER);
        return at + length;
    }
    if let Some(length) = date(bytes) {
        // A date and a time beside it are one.
        if !to.strip_suffix(' ').unwrap_or(to).ends_with(DATE) {
            to.push_str(DATE);
        }
        return at + length;
    }
    let length = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let word = &message[at..at + length];
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = length >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match word.find(|c: char| c.is_ascii_digit()) {
        None if NAMES.contains(&word) => to.push_str(DATE),
        None if !is_hex => to.push_str(word),
        // A name with a number: `order7`.
        Some(first) if !is_hex && first > 0 && first + digits == length => {
            to.push_str(&word[..first]);
            to.push_str(NUMBER);
            return at + length + fraction(&bytes[length..]);
        }
        _ => {
            to.push_str(NUMBER);
            return at + length + fraction(&bytes[length..]);
        }
    }
    at + length
}

/// How much more of a number there is: `.5`, `,000.25`, `.0.0.1`.
fn fraction(bytes: &[u8]) -> usize {
    let mut at = 0;
    while matches!(bytes.get(at), Some(b'.' | b',')) && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
        at += 1 + bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    }
    at
}

fn uuid(bytes: &[u8]) -> Option<usize> {
    const LENGTH: usize = 36;
    let text = bytes.get(..LENGTH).filter(|_| bytes.get(LENGTH).is_none_or(|next| !is_word(*next)))?;
    let fits = text.iter().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    fits.then_some(LENGTH)
}

/// `2026-11-16`, `2026-11-16T15:04:05.123+01:00`, `16/11/2026`, `15:04:05`.
fn date(bytes: &[u8]) -> Option<usize> {
    let day = shape(bytes, &[b"dddd-dd-dd", b"dddd/dd/dd", b"dd/dd/dddd", b"dd.dd.dddd"]);
    let Some(day) = day else {
        let time = time(bytes)?;
        return Some(time + zone(&bytes[time..]));
    };
    let rest = &bytes[day..];
    let time = match rest.first() {
        Some(b'T' | b't' | b' ' | b'_') => time(&rest[1..]).map(|length| length + 1),
        _ => None,
    };
    let end = time.map_or(day, |length| day + length + zone(&rest[length..]));
    bytes.get(end).is_none_or(|next| !is_word(*next)).then_some(end)
}

fn time(bytes: &[u8]) -> Option<usize> {
    let clock = shape(bytes, &[b"dd:dd:dd", b"dd:dd"])?;
    let fraction = match bytes.get(clock) {
        Some(b'.' | b',') => bytes[clock + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count(),
        _ => 0,
    };
    Some(if fraction > 0 { clock + 1 + fraction } else { clock })
}

fn zone(bytes: &[u8]) -> usize {
    match bytes.first() {
        Some(b'Z' | b'z') if bytes.get(1).is_none_or(|next| !is_word(*next)) => 1,
        Some(b'+' | b'-') => shape(&bytes[1..], &[b"dd:dd", b"dddd", b"dd"]).map_or(0, |length| length + 1),
        _ => 0,
    }
}

/// The length of the first of these that fits; `d` is a digit, and no further digit follows.
fn shape(bytes: &[u8], shapes: &[&[u8]]) -> Option<usize> {
    let fits = |shape: &&&[u8]| {
        bytes.len() >= shape.len()
            && shape.iter().zip(bytes).all(|(sign, byte)| match sign {
                b'd' => byte.is_ascii_digit(),
                sign => sign == byte,
            })
            && bytes.get(shape.len()).is_none_or(|next| !next.is_ascii_digit())
    };
    shapes.iter().find(fits).map(|shape| shape.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_left_says_what_went_wrong() {
        let table = [
            ("no customer 7", "no customer #"),
            ("no customer -7.25", "no customer #"),
            ("order42 of tenant_3 failed", "order# of tenant_# failed"),
            ("row 1,234,567.89 of 0x7fff1c", "row # of #"),
            ("user 550e8400-e29b-41d4-a716-446655440000 not found", "user # not found"),
            ("commit deadbeef and 0a1b2c3d4e5f", "commit # and #"),
            ("no column \"price\" in 'orders'", "no column '?' in '?'"),
            ("can't parse user's `key`", "can't parse user's '?'"),
            ("unclosed \"quote", "unclosed \"quote"),
            ("said 'it\\'s' twice", "said '?' twice"),
            ("at 2026-11-16T15:04:05.123Z refused", "at <date> refused"),
            ("at 2026-11-16 15:04:05,123+01:00 refused", "at <date> refused"),
            ("on 2026-11-16: closed", "on <date>: closed"),
            ("10.0.0.1:5432 refused", "#:# refused"),
            ("  two\n\n lines\t", "two lines"),
            ("größe 5 zu groß", "größe # zu groß"),
            ("", ""),
        ];
        for (message, normal) in table {
            assert_eq!(normalised(message), normal, "{message:?}");
        }
    }

    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<u64>().prop_map(|n| n.to_string()),
            any::<i32>().prop_map(|n| n.to_string()),
            "[1-9][0-9]{0,5}\\.[0-9]{1,6}"
        ]
    }

    fn uuid() -> impl Strategy<Value = String> {
        prop_oneof![
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}"
        ]
    }

    fn hex() -> impl Strategy<Value = String> {
        prop_oneof!["0x[0-9a-f]{1,16}", "[0-9a-f]{8,40}", "[0-9A-F]{8,40}"]
    }

    fn quoted() -> impl Strategy<Value = String> {
        prop_oneof!["'[a-z0-9 .:/é-]{0,20}'", "\"[a-z0-9 .:'/-]{0,20}\"", "`[a-z0-9 .:/-]{0,20}`"]
    }

    fn date() -> impl Strategy<Value = String> {
        let day = (1_970..2_100, 1..13, 1..29).prop_map(|(y, m, d)| format!("{y:04}-{m:02}-{d:02}"));
        let zone = proptest::sample::select(vec!["", "Z", "+01:00", "-0500"]);
        let time =
            (0..24, 0..60, 0..60, proptest::option::of(0..1_000), zone).prop_map(|(h, m, s, f, zone)| {
                format!("{h:02}:{m:02}:{s:02}{}{zone}", f.map_or(String::new(), |f| format!(".{f:03}")))
            });
        (day, proptest::option::of(time)).prop_map(|(day, time)| match time {
            Some(time) => format!("{day}T{time}"),
            None => day,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn other_values_leave_what_is_left_as_it_is(
            a in [number(), number()], b in [uuid(), uuid()], c in [hex(), hex()], d in [quoted(), quoted()],
            e in [date(), date()],
        ) {
            let message = |n: usize| format!(
                "order {} of {} ({}) says {}: refused at {}, it's over", a[n], b[n], c[n], d[n], e[n]);
            prop_assert_eq!(normalised(&message(0)), normalised(&message(1)));
            prop_assert_eq!(normalised(&message(0)), "order # of # (#) says '?': refused at <date>, it's over");
        }

        #[test]
        fn any_message_is_normalised_within_bounds(message in "\\PC{0,600}") {
            let normal = normalised(&message);
            prop_assert!(normal.len() <= MOST, "{}", normal.len());
        }
    }
}
