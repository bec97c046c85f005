//! An exact wait: a thread of its own with the finest timer there is, as a remote service that answers
//! after exactly 10 ms would behave. The runtime's timers are whole milliseconds.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::clock;

/// How long it sleeps when nobody waits.
const IDLE: Duration = Duration::from_secs(1);

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
        let mut queue = self.queue();
        queue.push_back((clock::now() + self.time, done));
        if queue.len() == 1 {
            self.more.notify_one();
        }
    }

    fn serve(&self) {
        // Otherwise the system may be late by 50 us, to save itself work.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let (mut over, mut queue) = (Vec::new(), self.queue());
        loop {
            let now = clock::now();
            while let Some(due) = queue.pop_front_if(|(due, _)| *due <= now) {
                over.push(due);
            }
            if over.is_empty() {
                let wait = queue.front().map_or(IDLE, |(due, _)| due.saturating_duration_since(now));
                queue = self.more.wait_timeout(queue, wait).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            // Not under the lock: whoever is woken may ask for the next wait.
            drop(queue);
            for (_, done) in over.drain(..) {
                let _ = done.send(());
            }
            queue = self.queue();
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<(Instant, oneshot::Sender<()>)>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
