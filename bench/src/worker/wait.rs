//! An exact wait: a thread of its own with the finest timer there is, as a remote service that answers
//! after exactly 10 ms would behave. The runtime's timers are whole milliseconds.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::clock;

/// Wakes everyone exactly so long after they asked; all waits are alike, so they end in order.
pub(crate) struct Wait {
    queue: Mutex<VecDeque<(Instant, oneshot::Sender<()>)>>,
    more: Condvar,
    time: Duration,
}

impl Wait {
    pub(crate) fn start(time: Duration) -> &'static Self {
        let this: &'static Self =
            Box::leak(Box::new(Self { queue: Mutex::default(), more: Condvar::new(), time }));
        std::thread::spawn(move || this.serve());
        this
    }

    pub(crate) async fn pass(&self) {
        let (done, wait) = oneshot::channel();
        self.ask(done);
        let _ = wait.await;
    }

    fn ask(&self, done: oneshot::Sender<()>) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back((clock::now() + self.time, done));
        if queue.len() == 1 {
            self.more.notify_one();
        }
    }

    fn serve(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = clock::now();
            while queue.front().is_some_and(|(due, _)| *due <= now) {
                let Some((_, done)) = queue.pop_front() else { break };
                let _ = done.send(());
            }
            let wait =
                queue.front().map_or(Duration::from_secs(1), |(due, _)| due.saturating_duration_since(now));
            queue = self.more.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
