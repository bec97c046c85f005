//! One connection of HTTP/1.1, and what is said on it: a request out, its answer in, by whoever waits for the
//! answer. Nothing stands between that task and the socket, which is most of what a small request costs.

mod buffer;
mod chunks;
mod head;

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWrite;

use super::answer::{Body, BrokenOff};
use super::connect::Io;
use super::fields::Fields;
use buffer::Buffer;
use chunks::{Chunks, Step};
pub(super) use head::Head;
use head::Length;

/// A body up to this size is sent in one piece with its head.
pub(super) const SMALL: usize = 16 * 1_024;

/// A request, written.
pub(super) struct Written {
    head: Vec<u8>,
    body: Bytes,
}

impl Written {
    pub(super) fn new(headers: Fields, body: Bytes) -> Self {
        let mut head = headers.into_bytes();
        head.extend_from_slice(b"\r\n");
        if body.len() > SMALL {
            return Self { head, body };
        }
        head.extend_from_slice(&body);
        Self { head, body: Bytes::new() }
    }

    fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// What is left of it behind so many bytes.
    fn rest(&self, sent: usize) -> [&[u8]; 2] {
        let head = &self.head[sent.min(self.head.len())..];
        let body = &self.body[sent.saturating_sub(self.head.len())..];
        [head, body]
    }
}

/// Why there is no answer, or not all of it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lost {
    #[error("the connection was closed before the end")]
    Closed,
    #[error("the connection broke")]
    Broke(#[source] io::Error),
    #[error("{0}")]
    Parse(httparse::Error),
    #[error("{0}")]
    NotHttp(&'static str),
}

/// A request that has no answer.
pub(super) struct Unsaid {
    pub(super) lost: Lost,
    /// Whether any of it may have got there.
    pub(super) began: bool,
}

/// A connection.
pub(super) struct Wire {
    io: TokioIo<Io>,
    buffer: Buffer,
    /// How much of the answer's body is still to come.
    left: Length,
    /// Whether another request may follow.
    keeps: bool,
}

impl Wire {
    pub(super) fn new(io: Io) -> Self {
        Self { io: TokioIo::new(io), buffer: Buffer::default(), left: Length::Known(0), keeps: true }
    }

    /// Sends a request and waits for the head of its answer. What stands before the end of the request in the answer's
    /// place is the answer, too: whoever refuses something large need not read it all.
    pub(super) async fn ask(&mut self, request: &Written) -> Result<Head, Unsaid> {
        let mut sent = 0;
        let head = std::future::poll_fn(|context| {
            let broke = match self.poll_send(request, &mut sent, context) {
                Poll::Ready(Err(error)) => Some(error),
                Poll::Ready(Ok(())) | Poll::Pending => None,
            };
            match (self.poll_head(context), broke) {
                (Poll::Ready(Err(_)) | Poll::Pending, Some(broke)) => Poll::Ready(Err(Lost::Broke(broke))),
                (head, _) => head,
            }
        });
        let head = head.await.map_err(|lost| Unsaid { lost, began: sent > 0 })?;
        self.left = head.length;
        self.keeps = head.keeps && sent == request.len();
        Ok(head)
    }

    /// Whether another request may follow: the answer is read to its end, nothing else came, and the other side has
    /// not hung up, as far as that is known here.
    pub(super) fn is_free(&mut self) -> bool {
        let is_read = self.is_over() && self.left != Length::UntilClosed && self.buffer.is_empty();
        let mut context = Context::from_waker(Waker::noop());
        is_read && self.keeps && self.buffer.poll_fill(&mut self.io, &mut context).is_pending()
    }

    fn poll_send(
        &mut self,
        request: &Written,
        sent: &mut usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while *sent < request.len() {
            let io = Pin::new(&mut self.io);
            let written = match request.rest(*sent) {
                // The system does more for two pieces than for one.
                [head, []] => io.poll_write(context, head),
                both => io.poll_write_vectored(context, &both.map(IoSlice::new)),
            };
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => *sent += more,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<Head, Lost>> {
        loop {
            if !self.buffer.is_empty()
                && let Some((head, length)) = head::read(self.buffer.bytes())?
            {
                self.buffer.pass(length);
                // More is to come, unless the other side begins to speak something else.
                if head.status.is_informational() && head.status != hyper::StatusCode::SWITCHING_PROTOCOLS {
                    continue;
                }
                return Poll::Ready(Ok(head));
            }
            ready!(self.poll_more_bytes(context))?;
        }
    }

    fn poll_more_bytes(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        match ready!(self.buffer.poll_fill(&mut self.io, context)) {
            Ok(0) => Poll::Ready(Err(Lost::Closed)),
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(Lost::Broke(error))),
        }
    }

    /// What the buffer has of the body; none at its end.
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Lost>>> {
        loop {
            if self.is_over() {
                return Poll::Ready(None);
            }
            let step = match &mut self.left {
                Length::Known(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(self.buffer.bytes().len());
                    *left -= here as u64;
                    if here == 0 { Step::More } else { Step::Data(here) }
                }
                Length::Chunks(chunks) => chunks.step(self.buffer.bytes())?,
                Length::UntilClosed if self.buffer.is_empty() => Step::More,
                Length::UntilClosed => Step::Data(self.buffer.bytes().len()),
            };
            match step {
                Step::Data(count) => {
                    let data = Bytes::copy_from_slice(&self.buffer.bytes()[..count]);
                    self.buffer.pass(count);
                    return Poll::Ready(Some(Ok(data)));
                }
                Step::Passed(count) => self.buffer.pass(count),
                Step::More => match (ready!(self.poll_more_bytes(context)), self.left) {
                    (Ok(()), _) => {}
                    (Err(Lost::Closed), Length::UntilClosed) => return Poll::Ready(None),
                    (Err(lost), _) => return Poll::Ready(Some(Err(lost))),
                },
            }
        }
    }
}

impl Body for Wire {
    fn is_over(&self) -> bool {
        matches!(self.left, Length::Known(0) | Length::Chunks(Chunks::Over))
    }

    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        self.poll_data(context).map_err(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// A wire to somebody who does this with the other end.
    async fn wire(other: impl FnOnce(TcpStream) + Send + 'static) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || other(listener.accept().unwrap().0));
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        Wire::new(Io::Tcp(TokioIo::new(stream)))
    }

    fn request(body: usize) -> Written {
        Written::new(Fields::behind(b"POST / HTTP/1.1\r\n", 0), Bytes::from(vec![b'x'; body]))
    }

    async fn body(wire: &mut Wire) -> Vec<u8> {
        let mut body = Vec::new();
        while let Some(more) = std::future::poll_fn(|context| wire.poll_more(context)).await {
            body.extend(more.unwrap());
        }
        body
    }

    #[tokio::test]
    async fn an_answer_may_come_before_the_end_of_the_request() {
        let mut wire = wire(|mut stream| {
            stream.read_exact(&mut [0; 100]).unwrap();
            stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig").unwrap();
            // Until the other side hangs up.
            let _ = stream.read_to_end(&mut Vec::new());
        })
        .await;
        let head = wire.ask(&request(64 << 20)).await.ok().unwrap();
        assert_eq!((head.status.as_u16(), body(&mut wire).await), (413, b"big".to_vec()));
        assert!(!wire.is_free(), "the rest of the request is still to be sent");
    }

    #[tokio::test]
    async fn a_large_body_arrives_whole_and_answers_follow_each_other() {
        let mut wire = wire(|mut stream| {
            for size in [200_000, 20_000, 10] {
                let mut read = vec![0; b"POST / HTTP/1.1\r\n\r\n".len() + size];
                stream.read_exact(&mut read).unwrap();
                assert!(read.ends_with(&vec![b'x'; size]));
                let early = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
                let answer = format!("{early}HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
                // In pieces that end anywhere.
                for piece in format!("{answer}6\r\n{size:6}\r\n0\r\n\r\n").as_bytes().chunks(7) {
                    stream.write_all(piece).unwrap();
                }
            }
            let _ = stream.read(&mut [0]);
        })
        .await;
        for size in [200_000, 20_000, 10] {
            let head = wire.ask(&request(size)).await.ok().unwrap();
            assert_eq!(head.status.as_u16(), 200);
            assert_eq!(body(&mut wire).await, format!("{size:6}").into_bytes());
            assert!(wire.is_free());
        }
    }

    #[tokio::test]
    async fn what_has_no_end_but_the_connections_is_read_to_that_and_no_further() {
        let mut wire = wire(|mut stream| {
            let _ = stream.read(&mut [0; 100]);
            stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nhello").unwrap();
        })
        .await;
        assert!(wire.ask(&request(0)).await.is_ok());
        assert_eq!(body(&mut wire).await, b"hello");
        assert!(!wire.is_free());
    }
}
