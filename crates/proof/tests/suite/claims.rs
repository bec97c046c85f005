//! Who claims a shelf is who the group gave the partition to: anybody else would take it from its owner, again and
//! again, for as long as both live.

use std::collections::{BTreeMap, BTreeSet};

/// What each process was given and still has, as its worker told it.
#[derive(Default)]
pub(crate) struct Claims {
    given: BTreeMap<u32, BTreeSet<i32>>,
}

impl Claims {
    /// The next event of a process.
    pub(crate) fn hear(&mut self, process: u32, event: &str) {
        let given = self.given.entry(process).or_default();
        if let Some(partitions) = listed(event, ": assigned partitions=") {
            given.extend(partitions);
        }
        for gone in [": given up partitions=", "nothing is committed partitions="] {
            for partition in listed(event, gone).unwrap_or_default() {
                given.remove(&partition);
            }
        }
        if let Some((_, claim)) = event.split_once(": claiming partition=") {
            let partition = claim.split(' ').next().and_then(|number| number.parse().ok());
            let partition: i32 = partition.unwrap_or_else(|| panic!("{event} names a partition"));
            assert!(given.contains(&partition), "{process} claims what is not its own: {event}");
        }
    }
}

fn listed(event: &str, words: &str) -> Option<Vec<i32>> {
    let (_, list) = event.split_once(words)?;
    let list = list.strip_prefix('[')?.split(']').next()?;
    Some(list.split(", ").filter_map(|number| number.parse().ok()).collect())
}
