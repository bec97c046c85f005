//! Where letters are dealt with: an index that follows Kafka while the process runs, and the replays that it runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Brief, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use redrive::{Clock, Settings, Timestamp};
use redrive_core::Topic;
use redrive_kafka::Admin;
use redrive_letters::feed::{Fed, Feed};
use redrive_letters::jobs::{Followed, JobId};
use redrive_letters::retention::AtRisk;
use redrive_letters::{Error, Index, told};
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::warn;

use crate::api::replays::take_up;
use crate::problem::Problem;

/// How often the index is brought up to date while letters come, or somebody asks for them.
const TURN: Duration = Duration::from_secs(5);

/// How often otherwise. Whoever asks then has it brought up to date first.
const REST: Duration = Duration::from_secs(60);

/// What was brought up to date longer ago than this is so before it is shown.
const STALE: Duration = Duration::from_millis(7_500);

/// How long one who asks waits for that, before the answer is what was known.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often it is looked at what letter topics keep.
const LOOK: Duration = Duration::from_secs(60);

/// What is needed to deal with letters.
pub struct Letters {
    /// How to reach the cluster.
    pub settings: Settings,
    /// Brings letters into the index.
    pub feed: Feed,
    /// Names and templates of addresses of logs and traces.
    pub links: Vec<(String, String)>,
    /// The shelves of this process, by source topic and group.
    pub shelves: BTreeMap<(Topic, String), Topic>,
    /// A letter that was sent back so often is left out of replays, if it is not the usual number.
    pub max_replays: Option<u32>,
}

/// Letters, and what is done with them here.
pub(crate) struct Desk {
    pub(crate) letters: Letters,
    pub(crate) clock: Clock,
    /// As it was when it was last brought up to date.
    index: Arc<Mutex<Option<Index>>>,
    /// Whose turn it is to bring it up to date.
    turn: Mutex<()>,
    /// When that was last done, and when somebody last asked.
    times: Brief<Times>,
    /// Told whenever it was done.
    turns: watch::Sender<()>,
    /// Somebody waits for the next turn.
    called: Notify,
    /// Why it could not be, the last time.
    trouble: Brief<Option<String>>,
    /// Open letters that a retention deletes, as it was last looked at.
    at_risk: Brief<Vec<AtRisk>>,
    /// The jobs that run here.
    pub(crate) jobs: Brief<BTreeMap<JobId, JoinHandle<()>>>,
    /// Whether jobs have to stop.
    pub(crate) stop: watch::Sender<bool>,
}

#[derive(Clone, Copy, Default)]
struct Times {
    turn: Option<Duration>,
    asked: Option<Duration>,
}

impl Desk {
    pub(crate) fn new(letters: Letters) -> Self {
        Self {
            letters,
            clock: Clock::system(),
            index: Arc::default(),
            turn: Mutex::default(),
            times: Brief::default(),
            turns: watch::Sender::new(()),
            called: Notify::new(),
            trouble: Brief::default(),
            at_risk: Brief::default(),
            jobs: Brief::default(),
            stop: watch::Sender::new(false),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().wall
    }

    /// Has the index follow Kafka, for ever.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut followed: Option<Followed> = None;
        let (mut is_start, mut look_at) = (true, Duration::ZERO);
        loop {
            let is_news = match self.take_turn(&mut followed).await {
                Ok(fed) => {
                    *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    fed.came + fed.left > 0 || fed.is_busy
                }
                Err(error) => {
                    self.troubled(&error);
                    followed = None;
                    true
                }
            };
            let now = self.clock.now().steady;
            if followed.is_some() && now >= look_at {
                look_at = now + LOOK;
                self.look_at_retention().await;
            }
            if let Some(followed) = &followed {
                is_start &= !take_up::left(&self, &followed.state, is_start).await;
            }
            let wait = if is_news || is_start || self.is_busy() { TURN } else { REST };
            // What was never written may be by now.
            followed.take_if(|state| !state.is_there());
            let is_lost = tokio::select! {
                is_lost = self.rest(&mut followed, wait) => is_lost,
                () = self.called.notified() => false,
            };
            followed.take_if(|_| is_lost);
        }
    }

    /// Waits for the next turn, and takes in what is written meanwhile; whether that cannot be read any more.
    async fn rest(&self, followed: &mut Option<Followed>, wait: Duration) -> bool {
        match followed {
            Some(state) => state.until(&self.clock, wait, |_| false).await.is_err(),
            None => {
                self.clock.sleep(wait).await;
                false
            }
        }
    }

    /// Whether somebody asked lately, or a replay runs here.
    fn is_busy(&self) -> bool {
        let now = self.clock.now().steady;
        let asked = self.times().asked.is_some_and(|asked| now.saturating_sub(asked) < REST);
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        asked || jobs.values().any(|job| !job.is_finished())
    }

    fn times(&self) -> std::sync::MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody asks: what was not brought up to date for long is so first, unless that takes long.
    async fn freshen(&self) {
        let now = self.clock.now().steady;
        let turn = {
            let mut times = self.times();
            times.asked = Some(now);
            times.turn
        };
        if turn.is_none_or(|turn| now.saturating_sub(turn) < STALE) {
            return;
        }
        let mut turns = self.turns.subscribe();
        self.called.notify_one();
        tokio::select! {
            _ = turns.changed() => {}
            () = self.clock.sleep(PATIENCE) => {}
        }
    }

    fn troubled(&self, error: &Error) {
        let why = told(error);
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if trouble.as_ref() != Some(&why) {
            warn!(error = why, "letters cannot be read; it is tried again");
        }
        *trouble = Some(why);
        // Nobody waits for what cannot be had: the answer is what was known.
        let now = self.clock.now().steady;
        if let Some(turn) = &mut self.times().turn {
            *turn = now;
        }
        self.turns.send_replace(());
    }

    /// Finds out which letters are deleted before anybody has dealt with them; who may not see settings is told nothing.
    async fn look_at_retention(&self) {
        let looked = async {
            let admin = Admin::new(&self.letters.settings)?;
            let topics = self.look_up(Index::letter_topics).await.unwrap_or_default();
            let described = admin.describe(&topics).await?;
            Ok::<_, redrive_kafka::Error>(described)
        };
        let Ok(described) = looked.await else { return };
        let now = self.now();
        let at_risk = self.look_up(move |index| index.at_risk(described.values(), now)).await;
        let mut known = self.at_risk.lock().unwrap_or_else(PoisonError::into_inner);
        for risk in at_risk.as_deref().unwrap_or_default() {
            if !known.iter().any(|one| one.topic == risk.topic && one.limit.setting() == risk.limit.setting())
            {
                let (topic, open, setting) = (&risk.topic, risk.open, risk.limit.setting());
                warn!(%topic, open, setting, remedy = "redrive status tells when, and what keeps them", "open letters will be deleted");
            }
        }
        *known = at_risk.unwrap_or_default();
    }

    /// Open letters that a retention deletes.
    pub(crate) fn at_risk(&self) -> Vec<AtRisk> {
        self.at_risk.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn take_turn(&self, followed: &mut Option<Followed>) -> Result<Fed, Error> {
        let _turn = self.turn.lock().await;
        let (mut index, fed) = self.letters.feed.catch_up(|_| {}).await?;
        let state = match followed.take() {
            Some(state) => state,
            None => Followed::read(&self.letters.settings).await?,
        };
        let (index, state) = spawn_blocking(move || {
            state.state.hand_over(&mut index)?;
            Ok::<_, Error>((index, state))
        })
        .await??;
        *followed = Some(state);
        *self.index.lock().await = Some(index);
        self.times().turn = Some(self.clock.now().steady);
        self.turns.send_replace(());
        Ok(fed)
    }

    /// Brings the index up to date now, with all that was written before.
    pub(crate) async fn refresh(&self) -> Result<(), Problem> {
        self.take_turn(&mut None).await?;
        Ok(())
    }

    /// Asks the index.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Index) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        self.freshen().await;
        self.look_up(ask).await
    }

    /// Looks something up in the index as it is.
    async fn look_up<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Index) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Problem> {
        let mut index = self.index.clone().lock_owned().await;
        let asked = spawn_blocking(move || index.as_mut().map(ask));
        match asked.await.map_err(Error::from)? {
            Some(answer) => Ok(answer?),
            None => Err(self.unread()),
        }
    }

    /// The index itself, for as long as it is needed.
    pub(crate) async fn index(&self) -> Result<tokio::sync::MappedMutexGuard<'_, Index>, Problem> {
        self.freshen().await;
        let guard = self.index.lock().await;
        tokio::sync::MutexGuard::try_map(guard, Option::as_mut).map_err(|_| self.unread())
    }

    fn unread(&self) -> Problem {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let why = trouble.unwrap_or_else(|| "the letters are being read".to_owned());
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("{why}; ask again in a moment"))
    }

    /// Lets jobs end what is on its way, for so long.
    pub(crate) async fn stop(&self, patience: Duration) {
        self.stop.send_replace(true);
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap_or_else(PoisonError::into_inner));
        let until = self.clock.now().steady + patience;
        for (id, mut job) in jobs {
            tokio::select! {
                _ = &mut job => {}
                () = self.clock.sleep_until(until) => {
                    warn!(job = %id, "it did not stop in time; redrive replay resume goes on where it was");
                    job.abort();
                }
            }
        }
    }
}
