//! A log held to its promises: what it acknowledged is there after a crash, readers see what they may,
//! and what is cleaned away is what the settings say. Every test runs on a real directory or in memory.

mod cleaning;
mod reading;
mod recovery;

use std::path::Path;

use bytes::Bytes;

use super::{Appended, Handles, Isolation, Log, Marker, Place, Settings, batch, records, testing};

const NOW: i64 = 1_700_000_000_000;

fn open(dir: &Path) -> Log {
    Log::open(Place {
        dir: Some(dir.to_owned()),
        handles: Handles::new(8),
    })
    .unwrap()
}

fn memory() -> Log {
    Log::open(Place {
        dir: None,
        handles: Handles::new(8),
    })
    .unwrap()
}

fn append(log: &mut Log, draft: testing::Draft, settings: &Settings) -> Appended {
    let bytes = draft.build();
    log.append(batch::check_produced(&bytes).unwrap(), &bytes, settings, NOW)
        .unwrap()
}

fn mark(log: &mut Log, producer_id: i64, commit: bool) -> i64 {
    log.append_marker(
        Marker {
            producer_id,
            epoch: 0,
            commit,
        },
        &Settings::default(),
        NOW,
    )
    .unwrap()
}

/// A record as a reader gets it: offset, key, whether it has a value.
type Seen = (i64, Vec<u8>, bool);

/// Everything from `from` on, batch by batch through the windows that a client would get.
fn read_all(log: &Log, from: i64, isolation: Isolation) -> Vec<Seen> {
    let (mut seen, mut at) = (Vec::new(), from);
    loop {
        let window = log.window(at, 1, true, isolation).unwrap();
        let Some(slice) = window.slice else { return seen };
        let bytes: Bytes = slice.read().unwrap();
        let header = batch::check(&bytes).unwrap();
        let is_aborted = window
            .aborted
            .iter()
            .any(|a| a.producer_id == header.producer_id && a.first_offset <= header.base_offset);
        if !header.is_control() && !is_aborted {
            let plain = records::payload(&header, &bytes).unwrap();
            for record in records::iterate(&plain) {
                let offset = header.base_offset + i64::from(record.offset_delta);
                seen.push((offset, record.key.unwrap_or_default().to_vec(), record.has_value));
            }
        }
        at = header.last_offset() + 1;
    }
}

fn offsets(seen: &[Seen]) -> Vec<i64> {
    seen.iter().map(|(offset, ..)| *offset).collect()
}
