//! The bytes of one segment, in a file or in memory, with one behaviour: append at the end, read
//! anywhere. What was appended is with the operating system when `append` returns.

use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};

use super::handles::{Handles, Slot};
use crate::sync::lock;

/// Where a segment's bytes are.
#[derive(Debug)]
pub(crate) enum Store {
    File {
        path: PathBuf,
        handles: Arc<Handles>,
        slot: Arc<Slot>,
    },
    Memory(Arc<Mutex<Vec<u8>>>),
}

/// A hold on the bytes for reading; it outlives the segment's removal and replacement.
#[derive(Clone, Debug)]
pub(crate) enum Reader {
    File(Arc<File>),
    Memory(Arc<Mutex<Vec<u8>>>),
}

impl Store {
    pub(crate) fn file(path: PathBuf, handles: &Arc<Handles>) -> Store {
        Store::File {
            path,
            handles: handles.clone(),
            slot: Arc::default(),
        }
    }

    pub(crate) fn memory() -> Store {
        Store::Memory(Arc::default())
    }

    pub(crate) fn reader(&self) -> io::Result<Reader> {
        match self {
            Store::File { path, handles, slot } => handles.file(slot, path).map(Reader::File),
            Store::Memory(bytes) => Ok(Reader::Memory(bytes.clone())),
        }
    }

    /// Appends the parts as one. On failure nothing is left behind: the file is cut back to `size`.
    pub(crate) fn append(&self, size: u64, parts: &[&[u8]]) -> io::Result<()> {
        match self {
            Store::File { path, handles, slot } => {
                let file = handles.file(slot, path)?;
                write_all(&file, parts).inspect_err(|_| {
                    // The error that is reported is the write's; a tail that stays is cut at the next start.
                    let _ = file.set_len(size);
                })
            }
            Store::Memory(bytes) => {
                let mut bytes = lock(bytes);
                parts.iter().for_each(|part| bytes.extend_from_slice(part));
                Ok(())
            }
        }
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        match self {
            Store::File { path, .. } => match fs::metadata(path) {
                Ok(meta) => Ok(meta.len()),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
                Err(e) => Err(e),
            },
            Store::Memory(bytes) => Ok(lock(bytes).len() as u64),
        }
    }

    pub(crate) fn truncate(&self, size: u64) -> io::Result<()> {
        match self {
            Store::File { path, handles, slot } => handles.file(slot, path)?.set_len(size),
            Store::Memory(bytes) => {
                lock(bytes).truncate(size as usize);
                Ok(())
            }
        }
    }

    /// Forces what was appended onto the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match self {
            Store::File { path, handles, slot } => handles.file(slot, path)?.sync_data(),
            Store::Memory(_) => Ok(()),
        }
    }

    pub(crate) fn remove(&self) -> io::Result<()> {
        match self {
            Store::File { path, .. } => remove_if_there(path),
            Store::Memory(_) => Ok(()),
        }
    }
}

impl Reader {
    pub(crate) fn read(&self, at: u64, len: usize) -> io::Result<Bytes> {
        let mut out = BytesMut::zeroed(len);
        self.read_into(at, &mut out)?;
        Ok(out.freeze())
    }

    pub(crate) fn read_into(&self, at: u64, out: &mut [u8]) -> io::Result<()> {
        match self {
            Reader::File(file) => file.read_exact_at(out, at),
            Reader::Memory(bytes) => {
                let bytes = lock(bytes);
                let from = bytes.get(at as usize..at as usize + out.len());
                out.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// One system call in the ordinary case: the parts go out together.
fn write_all(mut file: &File, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut rest, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
