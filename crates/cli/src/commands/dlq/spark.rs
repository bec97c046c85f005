//! Numbers over time in one line.

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Hours, each with a number, as at most so many bars from `from` to `to`. Nothing is a space.
pub(super) fn line(hours: &[(i64, u64)], from: i64, to: i64, width: usize) -> String {
    let span = to.saturating_sub(from).saturating_add(1).max(1);
    let bars = i64::try_from(width).unwrap_or(1).clamp(1, span);
    let mut sums = vec![0_u64; usize::try_from(bars).unwrap_or(1)];
    for (hour, count) in hours.iter().filter(|(hour, _)| (from..=to).contains(hour)) {
        let at = (i128::from(*hour) - i128::from(from)) * i128::from(bars) / i128::from(span);
        if let Some(sum) = usize::try_from(at).ok().and_then(|at| sums.get_mut(at)) {
            *sum += count;
        }
    }
    shown(&sums)
}

/// Numbers as bars.
pub(super) fn shown(sums: &[u64]) -> String {
    let most = sums.iter().copied().max().unwrap_or(0).max(1);
    let bar = |sum: &u64| match usize::try_from((sum * 8).div_ceil(most)) {
        Ok(0) => ' ',
        Ok(height) => BARS[height.min(8) - 1],
        Err(_) => BARS[7],
    };
    sums.iter().map(bar).collect()
}

/// One number beside the largest.
pub(super) fn bar(count: u64, most: u64, width: usize) -> String {
    let width = u64::try_from(width).unwrap_or(0);
    let length = (count * width).div_ceil(most.max(1));
    "█".repeat(usize::try_from(length).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_become_bars_as_high_as_their_numbers() {
        assert_eq!(shown(&[0, 1, 4, 8]), " ▁▄█");
        assert_eq!(line(&[(10, 1), (13, 8)], 10, 13, 24), "▁  █");
        assert_eq!(line(&[(0, 1), (1, 1), (2, 2), (3, 2)], 0, 3, 2), "▄█");
        assert_eq!(line(&[(i64::MIN, 1), (i64::MAX, 1)], i64::MIN, i64::MAX, 4).chars().count(), 4);
        assert_eq!(
            (bar(5, 10, 10), bar(0, 0, 10), bar(1, 1_000, 10)),
            ("█████".into(), String::new(), "█".into())
        );
    }
}
