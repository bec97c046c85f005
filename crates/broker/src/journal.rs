//! An append-only file of entries: what must survive the process is here before anyone is told of it.
//!
//! Comes in: entries as bytes. Goes out, at the next start: the same entries in order. A torn tail is
//! cut at open; damage with whole entries behind it is refused, since cutting there would lose them. An entry is whole or absent; one that was acknowledged is never lost when the process
//! dies. Entries are with the operating system on return, not on the platter.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use tracing::warn;

pub(crate) mod fields;
#[cfg(test)]
mod tests;

/// Length and CRC32C of the entry that follows, both big-endian.
const HEADER: usize = 8;
/// No owner writes entries of this size; a greater length is garbage, not a reason to allocate.
const MAX_ENTRY: usize = 256 << 20;

/// The journal of one owner.
#[derive(Debug)]
pub(crate) struct Journal(Mutex<Backing>);

#[derive(Debug)]
enum Backing {
    Memory,
    File(Tail),
}

#[derive(Debug)]
struct Tail {
    path: PathBuf,
    file: File,
    /// Where the last whole entry ends: whatever lies behind it was never acknowledged.
    len: u64,
    /// A failed append may have left a part of its entry, which would hide all later ones.
    torn: bool,
}

impl Journal {
    /// Opens or creates the file and returns its entries; without a path nothing is kept.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<(Self, Vec<Bytes>)> {
        let Some(path) = path else {
            return Ok((Self(Mutex::new(Backing::Memory)), Vec::new()));
        };
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let found = content.len() as u64;
        let content = Bytes::from(content);
        let (entries, len) = whole_entries(content.clone());
        if hides_entries(&content.slice(usize::try_from(len).unwrap_or(content.len())..)) {
            let what = format!(
                "{} is damaged at byte {len} and has whole entries behind it; restore it from a copy, or cut it \
                 there and lose what follows",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if len < found {
            warn!(path = %path.display(), cut = found - len, "journal ends in a torn entry, cut");
            file.set_len(len)?;
        }
        let tail = Tail { path: path.to_owned(), file, len, torn: false };
        Ok((Self(Mutex::new(Backing::File(tail))), entries))
    }

    /// Adds an entry, whole or not at all.
    pub(crate) fn append(&self, entry: &[u8]) -> io::Result<()> {
        match &mut *self.backing() {
            Backing::Memory => Ok(()),
            Backing::File(tail) => tail.append(&framed(entry)?),
        }
    }

    /// Replaces all entries by these; a crash leaves either the old or the new ones.
    pub(crate) fn rewrite(&self, live: impl IntoIterator<Item = Bytes>) -> io::Result<()> {
        match &mut *self.backing() {
            Backing::Memory => Ok(()),
            Backing::File(tail) => tail.rewrite(live),
        }
    }

    /// Forces the entries onto the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match &*self.backing() {
            Backing::Memory => Ok(()),
            Backing::File(tail) => tail.sync(),
        }
    }

    /// The size of the file.
    pub(crate) fn len_bytes(&self) -> u64 {
        match &*self.backing() {
            Backing::Memory => 0,
            Backing::File(tail) => tail.len,
        }
    }

    fn backing(&self) -> MutexGuard<'_, Backing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn append(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.len)?;
            self.torn = false;
        }
        if let Err(error) = self.file.write_all(frame) {
            self.torn = self.file.set_len(self.len).is_err();
            return Err(error);
        }
        self.len += frame.len() as u64;
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()?;
        self.path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
    }

    fn rewrite(&mut self, live: impl IntoIterator<Item = Bytes>) -> io::Result<()> {
        let beside = self.path.with_extension("new");
        let mut content = Vec::new();
        for entry in live {
            content.extend_from_slice(&framed(&entry)?);
        }
        let mut file = File::create(&beside)?;
        file.write_all(&content)?;
        // Before the rename: a file system may otherwise keep the new name with no content.
        file.sync_data()?;
        // And the handle too: what fails after the rename would leave us writing to a file without a name.
        let appended = OpenOptions::new().append(true).open(&beside)?;
        fs::rename(&beside, &self.path)?;
        self.file = appended;
        self.len = content.len() as u64;
        self.torn = false;
        Ok(())
    }
}

fn framed(entry: &[u8]) -> io::Result<Vec<u8>> {
    if entry.is_empty() || entry.len() > MAX_ENTRY {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a journal entry of {} bytes", entry.len()),
        ));
    }
    let mut frame = Vec::with_capacity(HEADER + entry.len());
    frame.extend_from_slice(&(entry.len() as u32).to_be_bytes());
    frame.extend_from_slice(&crc32c::crc32c(entry).to_be_bytes());
    frame.extend_from_slice(entry);
    Ok(frame)
}

fn whole_entries(mut content: Bytes) -> (Vec<Bytes>, u64) {
    let mut entries = Vec::new();
    let mut len = 0;
    while let Some(entry) = next_entry(&mut content) {
        len += (HEADER + entry.len()) as u64;
        entries.push(entry);
    }
    (entries, len)
}

/// Whether a whole entry stands somewhere behind a broken one: then it is not the tail that is torn.
fn hides_entries(broken: &Bytes) -> bool {
    /// Far enough to get past any entry that is ever written, near enough to be quick.
    const LOOK: usize = 4 << 20;
    (1..broken.len().min(LOOK)).any(|at| next_entry(&mut broken.slice(at..)).is_some())
}

fn next_entry(content: &mut Bytes) -> Option<Bytes> {
    if content.len() < HEADER {
        return None;
    }
    let len = content.get_u32() as usize;
    let crc = content.get_u32();
    // An empty entry is never written, but a tail of zeros after a power cut looks like many.
    if len == 0 || len > MAX_ENTRY || len > content.len() {
        return None;
    }
    let entry = content.split_to(len);
    (crc32c::crc32c(&entry) == crc).then_some(entry)
}
