//! Frames on their way in: a length, then that many bytes. Frames are read ahead, within a bound; a
//! length that no request has ends the connection before anything is reserved for it.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// What is reserved before the bytes of a frame are there: lengths are claims.
const STEP: usize = 1 << 20;
const SMALLEST_READ: usize = 16 * 1024;

/// A reader of frames.
pub(crate) struct Frames<R> {
    from: R,
    buffer: BytesMut,
    max: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(from: R, max: usize) -> Frames<R> {
        Frames {
            from,
            buffer: BytesMut::new(),
            max,
        }
    }

    /// The length of the next frame, or nothing if the other side has finished.
    pub(crate) async fn length(&mut self) -> io::Result<Option<usize>> {
        while self.buffer.len() < 4 {
            self.buffer.reserve(SMALLEST_READ);
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
        let claimed = self.buffer.get_i32();
        match usize::try_from(claimed) {
            Ok(length) if length <= self.max => Ok(Some(length)),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a frame of {claimed} bytes is refused"),
            )),
        }
    }

    /// The frame whose length was just read.
    pub(crate) async fn body(&mut self, length: usize) -> io::Result<Bytes> {
        while self.buffer.len() < length {
            if self.buffer.capacity() == self.buffer.len() || self.buffer.capacity() < length.min(STEP) {
                self.buffer
                    .reserve((length - self.buffer.len()).min(STEP.max(self.buffer.len())));
            }
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.split_to(length).freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(mut input: &[u8]) -> (Vec<Bytes>, Option<io::ErrorKind>) {
        let mut frames = Frames::new(&mut input, 10_000_000);
        let mut got = Vec::new();
        loop {
            let length = match frames.length().await {
                Ok(Some(length)) => length,
                Ok(None) => return (got, None),
                Err(e) => return (got, Some(e.kind())),
            };
            match frames.body(length).await {
                Ok(body) => got.push(body),
                Err(e) => return (got, Some(e.kind())),
            }
        }
    }

    #[tokio::test]
    async fn frames_are_cut_where_their_lengths_say() {
        let large = vec![7; 3_000_000];
        let input = [
            &[0, 0, 0, 2, 1, 2][..],
            &[0, 0, 0, 0],
            &(large.len() as u32).to_be_bytes(),
            &large,
        ]
        .concat();
        let (frames, error) = all(&input).await;
        assert_eq!(
            frames.iter().map(Bytes::len).collect::<Vec<_>>(),
            [2, 0, 3_000_000]
        );
        assert_eq!(error, None);
    }

    #[tokio::test]
    async fn a_length_of_two_gigabytes_is_refused() {
        assert_eq!(
            all(&[0x7f, 0xff, 0xff, 0xff, 0]).await.1,
            Some(io::ErrorKind::InvalidData)
        );
        assert_eq!(
            all(&[0xff, 0xff, 0xff, 0xff, 0]).await.1,
            Some(io::ErrorKind::InvalidData)
        );
    }

    #[tokio::test]
    async fn a_frame_that_breaks_off_is_an_error() {
        assert_eq!(all(&[0, 0, 0, 9, 1]).await.1, Some(io::ErrorKind::UnexpectedEof));
    }
}
