//! Replies on their way out: a response becomes a frame, in pieces so that record data is not copied
//! again. The first piece begins with the length of all. What is large stays in its log until it is sent,
//! so that the client receives the beginning while the rest is still being read.

#[cfg(target_os = "linux")]
use std::fs::File;
use std::io::{self, IoSlice};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ResponseHeader;
use kafka_protocol::protocol::{Encodable, HeaderVersion};
use tokio::io::AsyncWriteExt;
#[cfg(target_os = "linux")]
use tokio::io::Interest;
#[cfg(target_os = "linux")]
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use crate::log::Slice;

/// How many pieces go to the operating system in one call.
const AT_ONCE: usize = 64;

/// How much of a log is read before it is sent.
const CHUNK: usize = 256 * 1024;

/// A frame, length included.
#[derive(Debug)]
pub(crate) struct Reply(Vec<Piece>);

/// A part of a frame.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Bytes(Bytes),
    /// Still in its log.
    Log(Slice),
}

impl Piece {
    pub(crate) fn len(&self) -> usize {
        match self {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Log(slice) => slice.len,
        }
    }
}

impl Reply {
    /// The frame of a response that the codecs encode.
    pub(crate) fn encode<T>(correlation_id: i32, response: &T, version: i16) -> Result<Reply, String>
    where
        T: Encodable + HeaderVersion,
    {
        let mut out = begin(correlation_id, T::header_version(version));
        response.encode(&mut out, version).map_err(|e| format!("{e:#}"))?;
        Ok(Reply::finish(out, Vec::new()))
    }

    /// Sets the length in front of `head`, which `begin` began, and adds the rest.
    pub(crate) fn finish(mut head: BytesMut, rest: Vec<Piece>) -> Reply {
        let length = head.len() - 4 + rest.iter().map(Piece::len).sum::<usize>();
        head[..4].copy_from_slice(&(length as i32).to_be_bytes());
        let mut pieces = Vec::with_capacity(rest.len() + 1);
        pieces.push(Piece::Bytes(head.freeze()));
        pieces.extend(rest);
        Reply(pieces)
    }

    /// Sends the frame. If a log cannot be read any more the client has half a frame, and the connection
    /// must end.
    pub(crate) async fn write(self, to: &mut OwnedWriteHalf) -> io::Result<()> {
        let mut ready = Vec::new();
        for piece in self.0 {
            match piece {
                Piece::Bytes(bytes) => ready.push(bytes),
                Piece::Log(slice) => {
                    write_all(&ready, to).await?;
                    ready.clear();
                    stream(&slice, to).await?;
                }
            }
        }
        write_all(&ready, to).await
    }

    /// The whole frame in one.
    #[cfg(test)]
    pub(crate) fn concat(&self) -> Vec<u8> {
        let bytes = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.clone(),
            Piece::Log(slice) => slice.read().expect("a log that can be read"),
        };
        self.0.iter().flat_map(bytes).collect()
    }
}

async fn stream(slice: &Slice, to: &mut OwnedWriteHalf) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some((file, position)) = slice.file() {
        return send_file(file, position, slice.len, to.as_ref()).await;
    }
    let mut buffer = vec![0; slice.len.min(CHUNK)];
    let mut at = 0;
    while at < slice.len {
        let part = (slice.len - at).min(CHUNK);
        slice.read_part(at, &mut buffer[..part])?;
        to.write_all(&buffer[..part]).await?;
        at += part;
    }
    Ok(())
}

/// From the file to the socket inside the operating system: nothing is copied here.
#[cfg(target_os = "linux")]
async fn send_file(file: &File, mut position: u64, len: usize, to: &TcpStream) -> io::Result<()> {
    let end = position + len as u64;
    while position < end {
        to.writable().await?;
        let left = usize::try_from(end - position).unwrap_or(usize::MAX);
        let sent =
            to.try_io(Interest::WRITABLE, || Ok(rustix::fs::sendfile(to, file, Some(&mut position), left)?));
        match sent {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

async fn write_all(mut pieces: &[Bytes], to: &mut OwnedWriteHalf) -> io::Result<()> {
    let mut skip = 0;
    while let Some(first) = pieces.first() {
        if skip == first.len() {
            (pieces, skip) = (&pieces[1..], 0);
            continue;
        }
        let mut slices = [IoSlice::new(&[]); AT_ONCE];
        let count = pieces.len().min(AT_ONCE);
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
        }
        slices[0] = IoSlice::new(&first[skip..]);
        let mut written = to.write_vectored(&slices[..count]).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        while written > 0 {
            let left = pieces[0].len() - skip;
            if written < left {
                skip += written;
                break;
            }
            written -= left;
            (pieces, skip) = (&pieces[1..], 0);
        }
    }
    Ok(())
}

/// Room for the length, then the response header.
pub(crate) fn begin(correlation_id: i32, header_version: i16) -> BytesMut {
    let mut out = BytesMut::with_capacity(256);
    out.put_i32(0);
    ResponseHeader::default()
        .with_correlation_id(correlation_id)
        .encode(&mut out, header_version)
        .expect("a response header always fits");
    out
}
