//! Whether a journal is as it was written. Each writer numbers its entries and names the hash of the one before:
//! what was changed, removed or put elsewhere shows in the entries that are left. An entry and the head that names it
//! are one transaction: one beyond its writer's head was put there by somebody who does not write heads.

use std::collections::BTreeMap;
use std::fmt;

use super::entry::{BadEntry, Entry};
use crate::jobs::Head;

/// The journal as it is read, in order.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    writers: BTreeMap<String, Written>,
    faults: Vec<Fault>,
    entries: u64,
}

#[derive(Debug, Clone, Default)]
struct Written {
    /// By number: where, its hash, and the hash it names.
    entries: BTreeMap<u64, (i64, String, Option<String>)>,
    /// The numbers of entries that cannot be read are not known; so many there are.
    unreadable: u64,
}

/// What is wrong with a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The entry is not as it was written.
    Changed {
        /// Where it is.
        at: i64,
        /// Whose.
        writer: String,
        /// How that shows.
        why: String,
    },
    /// Entries are not there.
    Missing {
        /// Whose.
        writer: String,
        /// The first that is missing.
        from: u64,
        /// The last that is missing.
        to: u64,
    },
    /// An entry comes before one that was written earlier, or twice.
    Reordered {
        /// Where it is.
        at: i64,
        /// Whose.
        writer: String,
        /// Its number.
        number: u64,
    },
    /// An entry that no head tells of: it comes after the last that its writer is known to have written.
    Unconfirmed {
        /// Where it is.
        at: i64,
        /// Whose it says it is.
        writer: String,
        /// Its number.
        number: u64,
    },
}

impl Chain {
    /// Takes in the entry at this offset.
    pub fn take(&mut self, at: i64, writer: &str, value: &[u8]) {
        self.entries += 1;
        let written = self.writers.entry(writer.to_owned()).or_default();
        let changed = |why: String| Fault::Changed { at, writer: writer.to_owned(), why };
        let (entry, hash) = match Entry::read(value) {
            Ok((entry, hash)) if entry.deed.who == writer => (entry, hash),
            Ok((entry, _)) => {
                written.unreadable += 1;
                return self.faults.push(changed(format!("it is an entry of {}", entry.deed.who)));
            }
            Err(error @ (BadEntry::Hash | BadEntry::Form(_))) => {
                written.unreadable += 1;
                return self.faults.push(changed(error.to_string()));
            }
        };
        let last = written.entries.last_key_value().map(|(number, _)| *number);
        if last.is_some_and(|last| entry.number <= last) {
            let number = entry.number;
            self.faults.push(Fault::Reordered { at, writer: writer.to_owned(), number });
        }
        written.entries.entry(entry.number).or_insert((at, hash, entry.before));
    }

    /// How many entries it has.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// How many writers.
    #[must_use]
    pub fn writers(&self) -> usize {
        self.writers.len()
    }

    /// What is wrong with it, if the last entries of the writers are these.
    #[must_use]
    pub fn faults(mut self, heads: &BTreeMap<String, Head>) -> Vec<Fault> {
        for writer in heads.keys() {
            self.writers.entry(writer.clone()).or_default();
        }
        for (writer, written) in &self.writers {
            self.faults.extend(gaps(writer, written, heads.get(writer)));
            self.faults.extend(breaks(writer, written, heads.get(writer)));
            self.faults.extend(unconfirmed(writer, written, heads.get(writer)));
        }
        self.faults
    }

    /// Whether these heads, or later ones, tell of all entries.
    #[must_use]
    pub fn is_confirmed(&self, heads: &BTreeMap<String, Head>) -> bool {
        self.writers.iter().all(|(writer, written)| beyond(written, heads.get(writer)).next().is_none())
    }
}

/// The entries after the last that is noted of their writer.
fn beyond<'a>(written: &'a Written, head: Option<&Head>) -> impl Iterator<Item = (u64, i64)> + 'a {
    let next = head.map_or(0, |head| head.number.saturating_add(1));
    written.entries.range(next..).map(|(number, (at, _, _))| (*number, *at))
}

fn unconfirmed(writer: &str, written: &Written, head: Option<&Head>) -> Vec<Fault> {
    let fault = |(number, at)| Fault::Unconfirmed { at, writer: writer.to_owned(), number };
    beyond(written, head).map(fault).collect()
}

/// The numbers that no entry has.
fn gaps(writer: &str, written: &Written, head: Option<&Head>) -> Vec<Fault> {
    let (mut faults, mut next) = (Vec::new(), 0);
    // An entry that cannot be read is told as changed; it is not missing as well.
    let mut unreadable = written.unreadable;
    let mut missing = |from: u64, below: u64| {
        let excused = unreadable.min(below.saturating_sub(from));
        unreadable -= excused;
        if from + excused < below {
            faults.push(Fault::Missing { writer: writer.to_owned(), from, to: below - 1 });
        }
    };
    for number in written.entries.keys().copied() {
        missing(next, number);
        next = number.saturating_add(1);
    }
    if let Some(head) = head {
        missing(next, head.number.saturating_add(1));
    }
    faults
}

/// Where an entry is not the one that the next names.
fn breaks(writer: &str, written: &Written, head: Option<&Head>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, (at, hash, before)) in &written.entries {
        let changed =
            |at: i64, why: &str| Fault::Changed { at, writer: writer.to_owned(), why: why.to_owned() };
        match number.checked_sub(1).map(|earlier| written.entries.get(&earlier)) {
            None if before.is_some() => faults.push(changed(*at, "the first entry names one before it")),
            Some(Some((earlier, hash, _))) if before.as_ref() != Some(hash) => {
                faults.push(changed(*earlier, "the next entry names another hash than it has"));
            }
            None | Some(Some(_) | None) => {}
        }
        if head.is_some_and(|head| head.number == *number && head.hash != *hash) {
            faults.push(changed(*at, "the last entry has another hash than was noted of it"));
        }
    }
    faults
}

impl Fault {
    /// In a word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Changed { .. } => "changed",
            Self::Missing { .. } => "missing",
            Self::Reordered { .. } => "reordered",
            Self::Unconfirmed { .. } => "unconfirmed",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { at, writer, why } => {
                write!(f, "the entry of {writer} at offset {at} was changed: {why}")
            }
            Self::Missing { writer, from, to } if from == to => {
                write!(f, "entry {from} of {writer} is missing")
            }
            Self::Missing { writer, from, to } => write!(f, "entries {from} to {to} of {writer} are missing"),
            Self::Reordered { at, writer, number } => {
                write!(f, "entry {number} of {writer} at offset {at} is not in its place")
            }
            Self::Unconfirmed { at, writer, number } => write!(
                f,
                "entry {number} of {writer} at offset {at} is not confirmed by the head in redrive.state: who wrote it did not write that, or the head was removed"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::journal::Deed;

    fn deed(who: &str, what: &str) -> Deed {
        Deed {
            who: who.to_owned(),
            at: 7,
            what: what.to_owned(),
            selection: String::new(),
            job: None,
            counts: BTreeMap::new(),
            why: String::new(),
        }
    }

    /// A journal of these writers, one entry each time one is named.
    fn written(writers: &[u8]) -> (Vec<(String, Bytes)>, BTreeMap<String, Head>) {
        let (mut journal, mut heads) = (Vec::new(), BTreeMap::<String, Head>::new());
        for (turn, writer) in writers.iter().enumerate() {
            let who = format!("w{writer}");
            let head = heads.get(&who);
            let number = head.map_or(0, |head| head.number + 1);
            let before = head.map(|head| head.hash.clone());
            let (bytes, hash) = Entry { number, before, deed: deed(&who, &format!("deed {turn}")) }.write();
            journal.push((who.clone(), bytes));
            heads.insert(who, Head { number, hash });
        }
        (journal, heads)
    }

    fn faults(journal: &[(String, Bytes)], heads: &BTreeMap<String, Head>) -> Vec<Fault> {
        let mut chain = Chain::default();
        for (at, (writer, bytes)) in journal.iter().enumerate() {
            chain.take(at as i64, writer, bytes);
        }
        chain.faults(heads)
    }

    proptest! {
        #[test]
        fn a_journal_as_it_was_written_is_in_order(writers in prop::collection::vec(0..3_u8, 0..20)) {
            let (journal, heads) = written(&writers);
            prop_assert_eq!(faults(&journal, &heads), vec![]);
        }

        #[test]
        fn an_entry_that_is_removed_is_missed(writers in prop::collection::vec(0..3_u8, 1..20), place in any::<prop::sample::Index>()) {
            let (mut journal, heads) = written(&writers);
            let (writer, _) = journal.remove(place.index(writers.len()));
            let found = faults(&journal, &heads);
            let is_it = matches!(found.as_slice(), [Fault::Missing { writer: named, from, to }] if *named == writer && from == to);
            prop_assert!(is_it, "{:?}", found);
        }

        #[test]
        fn an_entry_that_says_something_else_is_found(writers in prop::collection::vec(0..3_u8, 1..20), place in any::<prop::sample::Index>(), knows_hashes in any::<bool>()) {
            let (mut journal, heads) = written(&writers);
            let place = place.index(writers.len());
            let (entry, _) = Entry::read(&journal[place].1).unwrap();
            let forged = Entry { deed: deed(&journal[place].0, "nothing at all"), ..entry }.write().0;
            // A careless forger changes a text; a careful one also the hash.
            journal[place].1 = if knows_hashes { forged } else {
                let text = String::from_utf8(journal[place].1.to_vec()).unwrap();
                Bytes::from(text.replace("deed", "need"))
            };
            let found = faults(&journal, &heads);
            let is_it = found.iter().any(|fault| matches!(fault, Fault::Changed { at, .. } if *at == place as i64));
            prop_assert!(is_it, "{:?}", found);
        }

        #[test]
        fn an_entry_that_is_well_formed_and_no_head_tells_of_is_found(writers in prop::collection::vec(0..3_u8, 0..20), who in 0..4_u8) {
            let (journal, heads) = written(&writers);
            let (more, _) = written(&[&writers[..], &[who]].concat());
            let forged = faults(&more, &heads);
            let at = journal.len() as i64;
            let is_it = matches!(forged.as_slice(), [Fault::Unconfirmed { at: found, writer, .. }] if *found == at && *writer == format!("w{who}"));
            prop_assert!(is_it, "{:?}", forged);
        }

        #[test]
        fn entries_in_another_order_are_found(count in 2..10_usize, place in any::<prop::sample::Index>()) {
            let (mut journal, heads) = written(&vec![0; count]);
            let place = place.index(count - 1);
            journal.swap(place, place + 1);
            let found = faults(&journal, &heads);
            let is_it = matches!(found.as_slice(), [Fault::Reordered { number, .. }] if *number == place as u64);
            prop_assert!(is_it, "{:?}", found);
        }
    }
}
