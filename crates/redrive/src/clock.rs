//! What time it is, and waiting until it is later. The only place that asks the system.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use redrive_core::Timestamp;
use redrive_core::flow::Now;

use crate::handler::Boxed;

/// The system's clock, or one that a test turns by hand.
///
/// The system's goes by the broker's calendar once it has heard of it: due times are the broker's, and a
/// clock here that is wrong or jumps makes nothing early.
#[derive(Debug, Clone)]
pub struct Clock {
    kind: Kind,
    broker: Arc<Broker>,
    /// By how many milliseconds the system's calendar is said to be wrong, by a test.
    wrong: Arc<AtomicI64>,
}

#[derive(Debug, Clone)]
enum Kind {
    System(Instant),
    #[cfg(feature = "testkit")]
    Manual {
        start: Timestamp,
        passed: Arc<tokio::sync::watch::Sender<Duration>>,
    },
}

impl Clock {
    /// The system's clock.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "this is the clock's file")]
    pub fn system() -> Self {
        Self { kind: Kind::System(Instant::now()), broker: Arc::default(), wrong: Arc::default() }
    }

    /// A clock that stands still at `start` until it is turned with [`Self::advance`].
    #[cfg(feature = "testkit")]
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        let passed = Arc::new(tokio::sync::watch::Sender::new(Duration::ZERO));
        Self { kind: Kind::Manual { start, passed }, broker: Arc::default(), wrong: Arc::default() }
    }

    /// Turns a clock made by [`Self::manual`] forward; every wait that is over ends.
    ///
    /// # Panics
    /// If it is the system's clock.
    #[cfg(feature = "testkit")]
    pub fn advance(&self, by: Duration) {
        let Kind::Manual { passed, .. } = &self.kind else { panic!("only a manual clock can be turned") };
        passed.send_modify(|passed| *passed += by);
    }

    /// Sets the system's calendar wrong by so many milliseconds, as this clock and its clones see it.
    #[cfg(feature = "testkit")]
    pub fn set_wrong(&self, millis: i64) {
        self.wrong.store(millis, Ordering::Relaxed);
    }

    /// What the system's calendar shows.
    fn calendar(&self) -> Timestamp {
        Timestamp::from_millis(system().millis().saturating_add(self.wrong.load(Ordering::Relaxed)))
    }

    /// Whether somebody turns it by hand.
    pub(crate) fn is_turned(&self) -> bool {
        match &self.kind {
            Kind::System(_) => false,
            #[cfg(feature = "testkit")]
            Kind::Manual { .. } => true,
        }
    }

    /// This moment.
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "this is the clock's file")]
    pub fn now(&self) -> Now {
        match &self.kind {
            Kind::System(start) => {
                let steady = start.elapsed();
                let wall = self.broker.at(steady).unwrap_or_else(|| self.calendar());
                Now { steady, wall }
            }
            #[cfg(feature = "testkit")]
            Kind::Manual { start, passed } => {
                let passed = *passed.borrow();
                Now { steady: passed, wall: start.plus(passed) }
            }
        }
    }

    /// What the system's calendar shows, in nanoseconds since 1970: for whoever tells others when something was.
    /// Nothing here is due by it.
    #[must_use]
    pub fn unix_nanos(&self) -> u64 {
        match &self.kind {
            Kind::System(_) => {
                let wrong = self.wrong.load(Ordering::Relaxed).saturating_mul(1_000_000);
                nanos(since_epoch()).saturating_add_signed(wrong)
            }
            #[cfg(feature = "testkit")]
            Kind::Manual { start, passed } => {
                let start = Duration::from_millis(u64::try_from(start.millis()).unwrap_or_default());
                nanos(start.saturating_add(*passed.borrow()))
            }
        }
    }

    /// This moment for one who asks to wait: the broker's calendar is not ahead of it, as it is never behind
    /// that of [`Self::now`]. A wait that begins here and ends there is never short.
    pub(crate) fn asked(&self) -> Now {
        let now = self.now();
        match &self.kind {
            Kind::System(_) => {
                Now { wall: self.broker.at_most(now.steady).unwrap_or(now.wall).max(now.wall), ..now }
            }
            #[cfg(feature = "testkit")]
            Kind::Manual { .. } => now,
        }
    }

    /// Something that we have just read was written when the broker had this time; if it is ours, `sent` is
    /// when we sent it.
    pub(crate) fn heard(&self, broker: Timestamp, sent: Option<Duration>) {
        match &self.kind {
            Kind::System(start) => self.broker.heard(broker, sent, start.elapsed()),
            #[cfg(feature = "testkit")]
            Kind::Manual { .. } => {}
        }
    }

    /// How far the system's calendar is from the broker's at least, if the broker was heard of. What was read
    /// long after it was written says little, and must not be taken for a clock that is wrong.
    pub(crate) fn skew(&self) -> Option<Duration> {
        match &self.kind {
            Kind::System(start) => {
                let (ours, steady) = (self.calendar(), start.elapsed());
                let behind = self.broker.at(steady)?.since(ours);
                let ahead = self.broker.at_most(steady).map(|theirs| ours.since(theirs));
                Some(behind.max(ahead.unwrap_or_default()))
            }
            #[cfg(feature = "testkit")]
            Kind::Manual { .. } => None,
        }
    }

    /// Waits until the steady clock shows `until`.
    #[allow(clippy::disallowed_methods, reason = "this is the clock's file")]
    pub async fn sleep_until(&self, until: Duration) {
        match &self.kind {
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

fn system() -> Timestamp {
    Timestamp::from_millis(i64::try_from(since_epoch().as_millis()).unwrap_or(i64::MAX))
}

#[allow(clippy::disallowed_methods, reason = "this is the clock's file")]
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// For how long the best of what was heard counts, in microseconds: the broker's clock may be set, too.
const WINDOW: i64 = 30_000_000;
const UNHEARD: i64 = i64::MIN;

/// What the broker's calendar shows, at least and at most: what was read was written before, and what we wrote
/// was written after we sent it, however long either took.
#[derive(Debug)]
struct Broker {
    /// By how much the broker's calendar is ahead of our steady clock, in microseconds: it tells milliseconds,
    /// but where they change is told by many of them.
    least: AtomicI64,
    most: AtomicI64,
    window: Mutex<Window>,
}

/// The best that was heard in this window and in the one before it.
#[derive(Debug)]
struct Window {
    began: i64,
    least: [i64; 2],
    most: [i64; 2],
}

impl Default for Broker {
    fn default() -> Self {
        let window = Window { began: 0, least: [UNHEARD; 2], most: [i64::MAX; 2] };
        Self { least: AtomicI64::new(UNHEARD), most: AtomicI64::new(i64::MAX), window: Mutex::new(window) }
    }
}

impl Broker {
    fn at(&self, steady: Duration) -> Option<Timestamp> {
        let least = self.least.load(Ordering::Relaxed);
        (least != UNHEARD)
            .then(|| Timestamp::from_millis(least.saturating_add(micros(steady)).div_euclid(1_000)))
    }

    fn at_most(&self, steady: Duration) -> Option<Timestamp> {
        let most = self.most.load(Ordering::Relaxed);
        let millis = |micros: i64| micros.saturating_add(999).div_euclid(1_000);
        (most != i64::MAX).then(|| Timestamp::from_millis(millis(most.saturating_add(micros(steady)))))
    }

    fn heard(&self, broker: Timestamp, sent: Option<Duration>, steady: Duration) {
        let (now, broker) = (micros(steady), broker.millis().saturating_mul(1_000));
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if now - window.began > WINDOW {
            window.began = now;
            window.least = [UNHEARD, window.least[0]];
            window.most = [i64::MAX, window.most[0]];
        }
        let least = broker.saturating_sub(now);
        window.least[0] = window.least[0].max(least);
        self.least.store(window.least[0].max(window.least[1]), Ordering::Relaxed);
        if let Some(sent) = sent {
            // A broker that shows a millisecond may be at the end of it.
            let most = broker.saturating_add(1_000).saturating_sub(micros(sent));
            window.most[0] = window.most[0].min(most);
        }
        self.most.store(window.most[0].min(window.most[1]), Ordering::Relaxed);
    }
}

fn micros(steady: Duration) -> i64 {
    i64::try_from(steady.as_micros()).unwrap_or(i64::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_time_is_never_taken_for_later_than_it_is() {
        let broker = Broker::default();
        let steady = Duration::from_millis;
        assert_eq!(broker.at(steady(5)), None);
        // Written at 1000, read 40 ms later.
        broker.heard(Timestamp::from_millis(1_000), None, steady(100));
        assert_eq!(broker.at(steady(110)), Some(Timestamp::from_millis(1_010)));
        broker.heard(Timestamp::from_millis(1_058), None, steady(120));
        assert_eq!(broker.at(steady(120)), Some(Timestamp::from_millis(1_058)));
        // Old news does not set it back.
        broker.heard(Timestamp::from_millis(7), None, steady(130));
        assert_eq!(broker.at(steady(130)), Some(Timestamp::from_millis(1_068)));
    }

    #[test]
    fn nor_for_earlier_by_one_who_asks_to_wait() {
        let broker = Broker::default();
        let steady = Duration::from_millis;
        assert_eq!(broker.at_most(steady(5)), None);
        // Sent at 60, written at 1000, which may be nearly 1001, and read 40 ms later.
        broker.heard(Timestamp::from_millis(1_000), Some(steady(60)), steady(100));
        assert_eq!(broker.at(steady(100)), Some(Timestamp::from_millis(1_000)));
        assert_eq!(broker.at_most(steady(100)), Some(Timestamp::from_millis(1_041)));
        // What took longer says less.
        broker.heard(Timestamp::from_millis(1_200), Some(steady(130)), steady(260));
        assert_eq!(broker.at_most(steady(100)), Some(Timestamp::from_millis(1_041)));
    }

    #[test]
    fn a_broker_whose_clock_is_set_back_is_believed_after_a_while() {
        let broker = Broker::default();
        let mut steady = 0;
        broker.heard(Timestamp::from_millis(1_000_000), None, Duration::ZERO);
        for _ in 0..100 {
            steady += 1_000;
            let now = Duration::from_millis(steady as u64);
            broker.heard(Timestamp::from_millis(500_000 + steady), None, now);
        }
        let now = broker.at(Duration::from_millis(steady as u64));
        assert_eq!(now, Some(Timestamp::from_millis(500_000 + steady)));
    }
}
