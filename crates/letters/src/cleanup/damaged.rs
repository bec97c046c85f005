//! The register of damaged offsets: where records were consumed that became letters. Whoever reads a topic from the
//! start skips them.

use redrive_core::Origin;
use serde::Serialize;

use crate::query::{Query, Sort};
use crate::{Error, Index};

/// Letters that are asked for at once.
const PAGE: usize = 1_000;

/// A record that became a letter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Damaged {
    /// The topic that was consumed.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The group that it failed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Why it is a letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The type of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Where the letter lies.
    pub letter: String,
}

impl Index {
    /// Forgets these letters, which are gone, with all that is known of them.
    pub fn erase(&mut self, letters: &[Origin]) -> Result<u64, Error> {
        let mut numbers = Vec::with_capacity(letters.len());
        for letter in letters {
            numbers.extend(self.number(letter)?);
        }
        self.take_out(&numbers)
    }

    /// The damaged offsets of the letters that are meant, each once, in order: the newest letter of each counts.
    pub fn damaged(&mut self, query: &Query) -> Result<Vec<Damaged>, Error> {
        let query = Query { sort: Sort::Newest, ..query.clone() };
        let (mut damaged, mut next) = (Vec::new(), None);
        loop {
            let page = self.page(&query, PAGE, next)?;
            for letter in page.letters {
                let (Some(partition), Some(offset)) = (letter.partition, letter.offset) else { continue };
                if letter.source == letter.at.topic.as_str() {
                    continue;
                }
                damaged.push(Damaged {
                    topic: letter.source,
                    partition,
                    offset,
                    group: letter.group,
                    reason: letter.reason.map(|reason| reason.to_string()),
                    error_type: letter.error_type,
                    letter: letter.at.to_string(),
                });
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        let place = |one: &Damaged| (one.topic.clone(), one.partition, one.offset, one.group.clone());
        // Stable, so that the newest letter of an origin stays first.
        damaged.sort_by_key(place);
        damaged.dedup_by_key(|one| place(one));
        Ok(damaged)
    }
}
