//! What time it is, and waiting until it is later. The only place that asks the system.

use std::time::{Duration, Instant, SystemTime};

use redrive_core::Timestamp;
use redrive_core::flow::Now;

use crate::handler::Boxed;

/// The system's clock, or one that a test turns by hand.
#[derive(Debug, Clone)]
pub struct Clock(Kind);

#[derive(Debug, Clone)]
enum Kind {
    System(Instant),
    #[cfg(feature = "testkit")]
    Manual {
        start: Timestamp,
        passed: std::sync::Arc<tokio::sync::watch::Sender<Duration>>,
    },
}

impl Clock {
    /// The system's clock.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "this is the clock's file")]
    pub fn system() -> Self {
        Self(Kind::System(Instant::now()))
    }

    /// A clock that stands still at `start` until it is turned with [`Self::advance`].
    #[cfg(feature = "testkit")]
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Kind::Manual {
            start,
            passed: std::sync::Arc::new(tokio::sync::watch::Sender::new(Duration::ZERO)),
        })
    }

    /// Turns a clock made by [`Self::manual`] forward; every wait that is over ends.
    ///
    /// # Panics
    /// If it is the system's clock.
    #[cfg(feature = "testkit")]
    pub fn advance(&self, by: Duration) {
        let Kind::Manual { passed, .. } = &self.0 else { panic!("only a manual clock can be turned") };
        passed.send_modify(|passed| *passed += by);
    }

    /// This moment.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "this is the clock's file")]
    pub fn now(&self) -> Now {
        match &self.0 {
            Kind::System(start) => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
                Now { steady: start.elapsed(), wall: Timestamp::from_millis(millis) }
            }
            #[cfg(feature = "testkit")]
            Kind::Manual { start, passed } => {
                let passed = *passed.borrow();
                Now { steady: passed, wall: start.plus(passed) }
            }
        }
    }

    /// Waits until the steady clock shows `until`.
    #[allow(clippy::disallowed_methods, reason = "this is the clock's file")]
    pub async fn sleep_until(&self, until: Duration) {
        match &self.0 {
            Kind::System(start) => match start.checked_add(until) {
                Some(until) => tokio::time::sleep_until(until.into()).await,
                None => std::future::pending().await,
            },
            #[cfg(feature = "testkit")]
            Kind::Manual { passed, .. } => {
                let mut passed = passed.subscribe();
                // The sender lives as long as the clock does.
                let _ = passed.wait_for(|passed| *passed >= until).await;
            }
        }
    }

    /// An alarm that goes by this clock.
    #[must_use]
    pub(crate) fn alarm(&self) -> Alarm {
        Alarm { clock: self.clone(), set: None }
    }

    /// Waits this long.
    pub async fn sleep(&self, wait: Duration) {
        self.sleep_until(self.now().steady.saturating_add(wait)).await;
    }
}

/// A wait that is asked for again and again, each time until another moment. It may end early: to set it
/// anew whenever it could end later would cost more than to look once more.
pub(crate) struct Alarm {
    clock: Clock,
    set: Option<(Duration, Boxed<()>)>,
}

impl Alarm {
    /// Waits until the steady clock shows `until`, or less. Nothing is lost if the future is dropped.
    pub(crate) async fn ring(&mut self, until: Duration) {
        let (_, wait) = match &mut self.set {
            Some(set) if set.0 <= until => set,
            set => {
                let clock = self.clock.clone();
                let wait = Box::pin(async move { clock.sleep_until(until).await });
                set.insert((until, wait))
            }
        };
        wait.await;
        self.set = None;
    }
}
