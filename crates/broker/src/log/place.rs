//! Where the log of one partition lives, on disk or in memory, and the small files beside its segments:
//! marks (where the log starts, how far it is cleaned) and the state of producers at some position.
//! Every small file is replaced whole or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::handles::Handles;
use super::open_transactions::OpenTransactions;
use super::producers::Producers;
use super::store::{self, Store};

const MARKS: &str = "marks.json";

/// The directory of a partition; none in memory.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) dir: Option<PathBuf>,
    pub(crate) handles: Arc<Handles>,
}

/// Offsets that must outlive the process and cannot be read from the batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    /// Records before it were deleted.
    pub(crate) start: i64,
    /// Everything before it was compacted once.
    pub(crate) cleaned: i64,
}

/// What a walk over the log up to a position of a segment would have found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) segment: i64,
    pub(crate) position: u64,
    pub(crate) next_offset: i64,
    pub(crate) producers: Producers,
    pub(crate) transactions: OpenTransactions,
}

/// What lies in a partition's directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Base offsets, ascending.
    pub(crate) segments: Vec<i64>,
    /// Offsets that snapshots were taken at, ascending.
    pub(crate) snapshots: Vec<i64>,
}

impl Place {
    pub(crate) fn store(&self, base: i64) -> Store {
        match &self.dir {
            Some(dir) => Store::file(dir.join(segment_name(base)), &self.handles),
            None => Store::memory(),
        }
    }

    /// Makes the directory, finishes what a crash interrupted and lists the rest.
    pub(crate) fn open(&self) -> io::Result<Listing> {
        let Some(dir) = &self.dir else {
            return Ok(Listing::default());
        };
        fs::create_dir_all(dir)?;
        let mut listing = Listing::default();
        let mut swaps = Vec::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let (Some(stem), Some(extension)) = (text(path.file_stem()), text(path.extension())) else {
                continue;
            };
            match extension {
                "log" => listing.segments.extend(stem.parse::<i64>().ok()),
                "state" => listing.snapshots.extend(stem.parse::<i64>().ok()),
                "swap" => swaps.extend(swap_range(stem).map(|range| (range, path.clone()))),
                "cleaned" | "tmp" => store::remove_if_there(&path)?,
                _ => {}
            }
        }
        for ((from, to), path) in swaps {
            self.swap_in(&path, from, to, &listing.segments)?;
            listing.segments.retain(|base| *base < from || *base >= to);
            listing.segments.push(from);
        }
        listing.segments.sort_unstable();
        listing.snapshots.sort_unstable();
        Ok(listing)
    }

    /// Puts a compacted file in the place of the segments from `from` up to `to`. The renaming to `.swap`
    /// decided it: a crash after that is finished at the next start.
    pub(crate) fn swap_in(&self, swap: &Path, from: i64, to: i64, bases: &[i64]) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        for base in bases.iter().filter(|base| (from..to).contains(*base)) {
            store::remove_if_there(&dir.join(segment_name(*base)))?;
        }
        fs::rename(swap, dir.join(segment_name(from)))
    }

    pub(crate) fn marks(&self) -> io::Result<Marks> {
        let Some(dir) = &self.dir else {
            return Ok(Marks::default());
        };
        let path = dir.join(MARKS);
        match fs::read(&path) {
            // Not taken for absent: records that were deleted would come back unasked.
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|cause| {
                let what = format!(
                    "{} is damaged ({cause}); without it the log starts where its files do",
                    path.display()
                );
                io::Error::new(io::ErrorKind::InvalidData, what)
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Marks::default()),
            Err(e) => Err(e),
        }
    }

    /// On the disk before this returns: nothing else knows how far records were deleted.
    pub(crate) fn save_marks(&self, marks: Marks) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let beside = write_beside(&dir.join(MARKS), &marks)?;
        File::open(&beside)?.sync_all()?;
        fs::rename(&beside, dir.join(MARKS))?;
        self.sync()
    }

    /// Forces the names of the files here onto the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.dir.as_ref().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    }

    pub(crate) fn snapshot(&self, offset: i64) -> io::Result<Option<Snapshot>> {
        let Some(dir) = &self.dir else { return Ok(None) };
        load(&dir.join(snapshot_name(offset)))
    }

    /// Keeps a snapshot and the one before it; the file system may have lost the newest.
    pub(crate) fn save_snapshot(&self, snapshot: &Snapshot) -> io::Result<()> {
        let Some(dir) = &self.dir else { return Ok(()) };
        // Not forced onto the disk: a walk over the log finds the same again.
        let path = dir.join(snapshot_name(snapshot.next_offset));
        fs::rename(write_beside(&path, snapshot)?, path)?;
        let mut kept: Vec<i64> = fs::read_dir(dir)?
            .filter_map(|entry| text(entry.ok()?.path().file_name())?.strip_suffix(".state")?.parse().ok())
            .collect();
        kept.sort_unstable();
        for offset in kept.iter().rev().skip(2) {
            store::remove_if_there(&dir.join(snapshot_name(*offset)))?;
        }
        Ok(())
    }
}

pub(crate) fn swap_name(from: i64, to: i64) -> String {
    format!("{from:020}-{to:020}.swap")
}

pub(crate) fn cleaned_name(from: i64) -> String {
    format!("{from:020}.cleaned")
}

fn segment_name(base: i64) -> String {
    format!("{base:020}.log")
}

fn snapshot_name(offset: i64) -> String {
    format!("{offset:020}.state")
}

fn swap_range(stem: &str) -> Option<(i64, i64)> {
    let (from, to) = stem.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

fn text(name: Option<&std::ffi::OsStr>) -> Option<&str> {
    name?.to_str()
}

/// A file that is missing or was not written whole counts as absent: what it says can be found again.
fn load<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Writes a file beside the one that it is to replace.
fn write_beside<T: Serialize>(path: &Path, value: &T) -> io::Result<PathBuf> {
    let beside = path.with_extension("tmp");
    fs::write(&beside, serde_json::to_vec(value)?)?;
    Ok(beside)
}
