//! An entry of the journal, and its bytes. Its hash is over the bytes themselves, so that nothing in them can be
//! changed, known to this version or not.

use std::collections::BTreeMap;

use bytes::Bytes;
use redrive_core::Timestamp;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// The form of entries.
const VERSION: u32 = 1;

/// How an entry begins: the hash of all that comes after it.
const BEGINS: &[u8] = br#"{"hash":""#;
/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;

/// What somebody did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// Who, as `user@host`.
    pub who: String,
    /// When, in epoch milliseconds.
    pub at: i64,
    /// What: `replay`, `purge`.
    pub what: String,
    /// To which letters, in words; the job, where there is one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selection: String,
    /// The job that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// To how many, by what became of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// An entry: a deed, and its place in the chain of its writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number among the entries of its writer.
    pub number: u64,
    /// The hash of the writer's entry before; none for the first.
    pub before: Option<String>,
    /// What was done.
    pub deed: Deed,
}

#[derive(Serialize, Deserialize)]
struct Body {
    v: u32,
    number: u64,
    before: Option<String>,
    #[serde(flatten)]
    deed: Deed,
}

/// Why bytes are no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    /// Its hash is not that of its bytes.
    #[error("its hash is not that of what it says")]
    Hash,
    /// It is none.
    #[error("it is no entry of a journal: {0}")]
    Form(String),
}

impl Deed {
    /// When.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.at)
    }
}

impl Entry {
    /// Its bytes and its hash.
    #[must_use]
    pub fn write(&self) -> (Bytes, String) {
        let Self { number, before, deed } = self.clone();
        // A map with text for keys: JSON holds it.
        let body = serde_json::to_vec(&Body { v: VERSION, number, before, deed }).unwrap_or_default();
        let hash = sha256(&body);
        let mut bytes = BEGINS.to_vec();
        bytes.extend_from_slice(hash.as_bytes());
        bytes.extend_from_slice(b"\",");
        bytes.extend_from_slice(body.get(1..).unwrap_or_default());
        (Bytes::from(bytes), hash)
    }

    /// What bytes say, and their hash.
    pub fn read(bytes: &[u8]) -> Result<(Self, String), BadEntry> {
        let no_entry = || BadEntry::Form("it does not begin with its hash".to_owned());
        let rest = bytes.strip_prefix(BEGINS).ok_or_else(no_entry)?;
        let (told, rest) = rest.split_at_checked(DIGITS).ok_or_else(no_entry)?;
        let rest = rest.strip_prefix(b"\",").ok_or_else(no_entry)?;
        let body = [b"{", rest].concat();
        let hash = sha256(&body);
        if told != hash.as_bytes() {
            return Err(BadEntry::Hash);
        }
        let Body { v: _, number, before, deed } =
            serde_json::from_slice(&body).map_err(|error| BadEntry::Form(error.to_string()))?;
        Ok((Self { number, before, deed }, hash))
    }
}

/// SHA-256, in hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries() -> impl Strategy<Value = Entry> {
        let deed = ("\\PC{0,20}", any::<i64>(), "\\PC{0,20}", "\\PC{0,20}", any::<u64>()).prop_map(
            |(who, at, what, why, count)| Deed {
                who,
                at,
                what,
                selection: "--all".to_owned(),
                job: Some("abc".to_owned()),
                counts: BTreeMap::from([("letters".to_owned(), count)]),
                why,
            },
        );
        (any::<u64>(), proptest::option::of("[0-9a-f]{64}"), deed).prop_map(|(number, before, deed)| Entry {
            number,
            before,
            deed,
        })
    }

    proptest! {
        #[test]
        fn an_entry_is_read_as_it_was_written(entry in entries()) {
            let (bytes, hash) = entry.write();
            prop_assert_eq!(Entry::read(&bytes), Ok((entry, hash)));
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
        }

        #[test]
        fn no_byte_can_be_changed(entry in entries(), place in any::<prop::sample::Index>(), by in 1..255_u8) {
            let (bytes, _) = entry.write();
            let mut changed = bytes.to_vec();
            let place = place.index(changed.len());
            changed[place] = changed[place].wrapping_add(by);
            prop_assert!(Entry::read(&changed).is_err());
        }
    }
}
