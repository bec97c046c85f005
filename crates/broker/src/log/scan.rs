//! A walk over the batch headers of a segment: a reader and a range come in, each header is shown
//! with its position. Records are skipped unless the visitor asks for them; nothing is checked here.

use std::io;
use std::ops::{ControlFlow, Range};

use bytes::Bytes;

use super::batch::{BadBatch, BatchHeader, HEADER};
use super::store::Reader;

/// A batch met on the walk.
pub(crate) struct Met<'a> {
    pub(crate) header: &'a BatchHeader,
    pub(crate) position: u64,
    reader: &'a Reader,
}

impl Met<'_> {
    /// The whole batch, read now.
    pub(crate) fn bytes(&self) -> io::Result<Bytes> {
        self.reader.read(self.position, self.header.size())
    }
}

/// Why a walk ended before its range did.
#[derive(Debug)]
pub(crate) enum Stop<B> {
    /// The visitor had enough.
    Broke(B),
    /// What stands at this position is not a whole batch.
    Bad(u64, BadBatch),
}

/// Walks the headers in `range`, reading `window` bytes at a time. Gives where it stopped, or nothing
/// when every byte belonged to a batch.
pub(crate) fn headers<B>(
    reader: &Reader,
    range: Range<u64>,
    window: usize,
    mut visit: impl FnMut(Met<'_>) -> io::Result<ControlFlow<B>>,
) -> io::Result<Option<Stop<B>>> {
    let mut buffer = vec![0; window.max(HEADER)];
    let (mut filled, mut start) = (0usize, range.start);
    let mut position = range.start;
    while position < range.end {
        let in_buffer = position >= start && position + HEADER as u64 <= start + filled as u64;
        if !in_buffer {
            start = position;
            filled = buffer.len().min((range.end - position) as usize);
            reader.read_into(start, &mut buffer[..filled])?;
        }
        let header = match BatchHeader::parse(&buffer[(position - start) as usize..filled]) {
            Ok(header) => header,
            Err(bad) => return Ok(Some(Stop::Bad(position, bad))),
        };
        if position + header.size() as u64 > range.end {
            return Ok(Some(Stop::Bad(position, BadBatch::Truncated)));
        }
        if let ControlFlow::Break(value) = visit(Met {
            header: &header,
            position,
            reader,
        })? {
            return Ok(Some(Stop::Broke(value)));
        }
        position += header.size() as u64;
    }
    Ok(None)
}
