//! What this process has used so far.

use std::fs;
use std::time::Duration;

/// Processor time of this process.
pub(crate) fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("this is Linux");
    // The name in parentheses may hold anything; the fields after it are numbers.
    let fields: Vec<&str> = stat[stat.rfind(')').expect("a name") + 2..].split(' ').collect();
    let ticks: u64 = [11, 12].iter().map(|field| fields[*field].parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}

/// Resident memory of this process, in MB.
pub(crate) fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    let kilobytes: f64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
    kilobytes / 1_024.0
}
