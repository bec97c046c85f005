//! Tasks that are kept: each runs the future of one attempt after the other, so that a handler that waits
//! costs no new task. A future that blocks keeps its own task from everything else, and nobody besides.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use redrive_core::Failure;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::{AbortHandle, unconstrained};

use crate::handler::Boxed;
use crate::worker::News;

/// What a handler is doing.
pub(super) enum Job {
    One(Boxed<Result<(), Failure>>),
    Many(Boxed<Vec<Result<(), Failure>>>),
}

/// What became of it.
pub(crate) enum Answer {
    One(Result<(), Failure>),
    Many(Vec<Result<(), Failure>>),
    /// It was ended before it answered.
    None,
}

impl Job {
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        match self {
            Self::One(future) => future.as_mut().poll(context).map(Answer::One),
            Self::Many(future) => future.as_mut().poll(context).map(Answer::Many),
        }
    }

    /// Drops what a user wrote, which may panic.
    fn end(self) {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(self)));
    }
}

/// One such task, as the loop sees it.
pub(super) struct Runner {
    shared: Arc<Shared>,
    task: Option<AbortHandle>,
}

struct Shared {
    number: usize,
    job: Mutex<Option<Job>>,
    /// Whether the job is to be dropped as it is.
    end: AtomicBool,
    waker: OnceLock<Waker>,
    news: UnboundedSender<News>,
}

/// What a first poll came to.
pub(super) enum Tried {
    Answered(Answer),
    /// The runner goes on with it.
    Waits,
}

impl Runner {
    pub(super) fn new(number: usize, news: UnboundedSender<News>) -> Self {
        let shared = Shared {
            number,
            job: Mutex::new(None),
            end: AtomicBool::new(false),
            waker: OnceLock::new(),
            news,
        };
        Self { shared: Arc::new(shared), task: None }
    }

    /// Runs a job; the runner has none.
    pub(super) fn run(&mut self, job: Job) {
        *self.shared.free() = Some(job);
        self.wake();
    }

    /// Polls a job once, here; if it waits, it wakes the runner when it goes on. The runner has none, and
    /// has had one.
    pub(super) fn try_now(&mut self, mut job: Job) -> Tried {
        // Locked meanwhile: what wakes at once finds the job in its place.
        let mut place = self.shared.free();
        let waker = self.shared.waker.get().unwrap_or(Waker::noop());
        let mut polled = unconstrained(std::future::poll_fn(|context| job.poll(context)));
        if let Poll::Ready(answer) = Pin::new(&mut polled).poll(&mut Context::from_waker(waker)) {
            return Tried::Answered(answer);
        }
        *place = Some(job);
        Tried::Waits
    }

    /// Ends the job as soon as it waits.
    pub(super) fn end(&self) {
        self.shared.end.swap(true, Ordering::AcqRel);
        if let Some(waker) = self.shared.waker.get() {
            waker.wake_by_ref();
        }
    }

    fn wake(&mut self) {
        match (&self.task, self.shared.waker.get()) {
            (None, _) => self.task = Some(tokio::spawn(Run(self.shared.clone())).abort_handle()),
            (Some(_), Some(waker)) => waker.wake_by_ref(),
            // It has yet to be polled for the first time.
            (Some(_), None) => {}
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Shared {
    fn job(&self) -> MutexGuard<'_, Option<Job>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place for the next job.
    fn free(&self) -> MutexGuard<'_, Option<Job>> {
        let place = self.job();
        self.end.store(false, Ordering::Release);
        place
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.job().take().map(Job::end);
    }
}

/// The task.
struct Run(Arc<Shared>);

impl Future for Run {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let shared = &self.0;
        shared.waker.get_or_init(|| context.waker().clone());
        let mut place = shared.job();
        let Some(job) = place.as_mut() else { return Poll::Pending };
        // Written, not just read: whoever says so later finds the waker.
        let answer = match shared.end.fetch_or(false, Ordering::AcqRel) {
            true => Answer::None,
            false => match job.poll(context) {
                Poll::Ready(answer) => answer,
                Poll::Pending => return Poll::Pending,
            },
        };
        let _ = place.take().map(Job::end);
        drop(place);
        let _ = shared.news.send(News::Ended { runner: shared.number, answer });
        Poll::Pending
    }
}
