//! What was read from a connection and not understood yet.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Most answers are shorter.
const USUAL: usize = 4 * 1_024;

/// Bytes, in the order in which they came.
pub(super) struct Buffer {
    space: Vec<u8>,
    from: usize,
    to: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { space: vec![0; USUAL], from: 0, to: 0 }
    }
}

impl Buffer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.space[self.from..self.to]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The first of them are dealt with.
    pub(super) fn pass(&mut self, count: usize) {
        self.from += count;
        if self.is_empty() {
            (self.from, self.to) = (0, 0);
        }
    }

    /// Reads more, and says how much; zero at the end.
    pub(super) fn poll_fill(
        &mut self,
        io: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        let mut room = ReadBuf::new(&mut self.space[self.to..]);
        ready!(Pin::new(io).poll_read(context, &mut room))?;
        let more = room.filled().len();
        self.to += more;
        Poll::Ready(Ok(more))
    }

    /// At least one byte, and soon many.
    fn make_room(&mut self) {
        if self.to < self.space.len() {
            return;
        }
        self.space.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        if self.to > self.space.len() / 2 {
            self.space.resize(2 * self.space.len(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_comes_goes_in_its_order(passes in prop::collection::vec(0_usize..5_000, 1..40)) {
            let sent: Vec<u8> = (0..60_000_u32).map(|number| (number % 251) as u8).collect();
            let (mut buffer, mut rest) = (Buffer::default(), &sent[..]);
            let mut context = Context::from_waker(std::task::Waker::noop());
            let mut passed = 0;
            for count in passes {
                prop_assert!(buffer.poll_fill(&mut rest, &mut context).is_ready());
                let count = count.min(buffer.bytes().len());
                prop_assert_eq!(&buffer.bytes()[..count], &sent[passed..passed + count]);
                buffer.pass(count);
                passed += count;
            }
        }
    }
}
