//! Connections of HTTP/1.1 that are kept. Whoever sends a request has its connection meanwhile: neither needs
//! a task beside the attempt's own, and an answer wakes nobody else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use redrive::Clock;

use super::answer::Answer;
use super::connect::{Connect, NoConnection};
use super::wire::{Head, Lost, Wire, Written};

/// Connections to one place, those that nobody uses among them.
#[derive(Clone)]
pub(super) struct Lines {
    connect: Connect,
    clock: Clock,
    idle: Duration,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    /// Since when nobody uses them, the longest first.
    lines: Vec<(Duration, Box<Wire>)>,
    /// Whether somebody will close those that nobody comes for.
    is_watched: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    #[error("no connection")]
    Connect(#[from] NoConnection),
    #[error("no answer")]
    Exchange(#[from] Lost),
}

impl Lines {
    /// None yet; one that nobody uses is closed after `idle`.
    pub(super) fn new(connect: Connect, clock: Clock, idle: Duration) -> Self {
        Self { connect, clock, idle, kept: Arc::default() }
    }

    /// Sends a request and reads its answer with `read`. A connection that was closed before it took any of the request
    /// is replaced. If the future is dropped, so is the connection.
    pub(super) async fn exchange(
        &self,
        request: &Written,
        read: impl AsyncFnOnce(Head, &mut Wire) -> Answer,
    ) -> Result<Answer, Unanswered> {
        loop {
            let (mut line, is_new) = match self.take() {
                Some(line) => (line, false),
                None => (Box::new(Wire::new(self.connect.clone().connect().await?)), true),
            };
            let head = match line.ask(request).await {
                Ok(head) => head,
                Err(unsaid) if !unsaid.began && !is_new => continue,
                Err(unsaid) => return Err(unsaid.lost.into()),
            };
            let answer = read(head, &mut line).await;
            self.keep(line);
            return Ok(answer);
        }
    }

    /// The line that was used last; those that the other side has closed meanwhile go.
    fn take(&self) -> Option<Box<Wire>> {
        let mut kept = self.kept();
        while let Some((_, mut line)) = kept.lines.pop() {
            if line.is_free() {
                return Some(line);
            }
        }
        None
    }

    fn keep(&self, mut line: Box<Wire>) {
        if !line.is_free() {
            return;
        }
        let mut kept = self.kept();
        kept.lines.push((self.clock.now().steady, line));
        if !std::mem::replace(&mut kept.is_watched, true) {
            tokio::spawn(watch(Arc::downgrade(&self.kept), self.clock.clone(), self.idle));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes what nobody uses, until there is nothing left.
async fn watch(kept: Weak<Mutex<Kept>>, clock: Clock, idle: Duration) {
    loop {
        clock.sleep(idle).await;
        let Some(kept) = kept.upgrade() else { return };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock.now().steady;
        let old = kept.lines.iter().take_while(|(since, _)| now.saturating_sub(*since) >= idle).count();
        kept.lines.drain(..old);
        if kept.lines.is_empty() {
            kept.is_watched = false;
            return;
        }
    }
}
