//! Replies on their way out: a response becomes a frame, in pieces so that record data is not copied
//! again. The first piece begins with the length of all.

use std::io::{self, IoSlice};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::ResponseHeader;
use kafka_protocol::protocol::{Encodable, HeaderVersion};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;

/// How many pieces go to the operating system in one call.
const AT_ONCE: usize = 64;

/// A frame, length included.
#[derive(Debug)]
pub(crate) struct Reply(pub(crate) Vec<Bytes>);

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
    pub(crate) fn finish(mut head: BytesMut, rest: Vec<Bytes>) -> Reply {
        let length = head.len() - 4 + rest.iter().map(Bytes::len).sum::<usize>();
        head[..4].copy_from_slice(&(length as i32).to_be_bytes());
        let mut pieces = Vec::with_capacity(rest.len() + 1);
        pieces.push(head.freeze());
        pieces.extend(rest);
        Reply(pieces)
    }

    pub(crate) async fn write(self, to: &mut OwnedWriteHalf) -> io::Result<()> {
        let mut pieces = &self.0[..];
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
