//! Wakes the thread or the task that polls: from librdkafka's threads when there is something to take, from the
//! receiver's when there is room again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Wake {
    thread: OnceLock<Thread>,
    task: Notify,
    no_room: AtomicBool,
}

impl Wake {
    /// From now on this is the thread to wake. Before, nobody sleeps, or a task does.
    pub(crate) fn me(&self) {
        let _ = self.thread.set(thread::current());
    }

    /// Wakes it; if it does not sleep, its next sleep is skipped.
    pub(crate) fn wake(&self) {
        match self.thread.get() {
            Some(thread) => thread.unpark(),
            None => self.task.notify_one(),
        }
    }

    /// Waits until it is woken, where a task polls.
    pub(crate) async fn woken(&self) {
        self.task.notified().await;
    }

    /// Sleeps until it is woken, at most this long.
    #[allow(clippy::disallowed_methods, reason = "whoever brings something wakes it before")]
    pub(crate) fn sleep(&self, longest: Duration) {
        thread::park_timeout(longest);
    }

    /// Says that the thread waits for room. Whoever says so must look once more before it sleeps.
    pub(crate) fn want_room(&self) {
        self.no_room.store(true, Ordering::SeqCst);
    }

    /// There is room: wakes the thread if it waits for that.
    pub(crate) fn room(&self) {
        if self.no_room.load(Ordering::SeqCst) && self.no_room.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }
}
