//! Lengths of time as people read them: `1h 55m 3s`.

use std::time::Duration;

/// The two or three largest parts, exact below a day.
pub(crate) fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let parts = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
    let mut left = millis;
    let mut shown = Vec::new();
    for (size, unit) in parts {
        if left >= size {
            shown.push(format!("{}{unit}", left / size));
            left %= size;
        }
    }
    if shown.is_empty() { "0s".to_owned() } else { shown.join(" ") }
}

/// The two largest parts, and nothing below a second where there are seconds.
pub(crate) fn rough(length: Duration) -> String {
    let whole = match length.as_secs() {
        0 => length,
        seconds => Duration::from_secs(seconds),
    };
    duration(whole).split(' ').take(2).collect::<Vec<_>>().join(" ")
}

/// `1 retry`, `2 retries`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_their_parts() {
        let shown = [0, 250, 1_500, 6_903_000, 93_600_000].map(|ms| duration(Duration::from_millis(ms)));
        assert_eq!(shown, ["0s", "250ms", "1s 500ms", "1h 55m 3s", "1d 2h"]);
    }
}
