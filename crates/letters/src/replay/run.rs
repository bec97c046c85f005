//! Sends the letters of a job: each handful and how far the job came are one transaction, so that whoever goes on
//! after a crash begins exactly behind what was sent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use redrive::{Clock, Settings};
use redrive_core::Topic;
use redrive_kafka::{Outgoing, Refusal, TransactionFailed};
use tokio::sync::watch;
use tracing::{info, warn};

use super::before::Before;
use super::begin::{Grip, Held, take_over};
use super::destinations::Destinations;
use super::pace::{self, Next, Seen};
use super::reading::{self, Handfuls, Prepared};
use super::route::Why;
use super::watching::{Heard, Watching};
use super::{Error, Rate};
use crate::jobs::{ALIVE, Begun, Counts, Ending, Job, Key, Mark, Options, Want, outgoing};

/// What goes in one transaction at most.
const RECORDS: usize = 10_000;
const BYTES: usize = 8 << 20;

/// How often a transaction is run again that the broker undid.
const TRIES: u32 = 5;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// All letters are sent.
    Finished,
    /// Somebody wanted it to end.
    Cancelled,
    /// It stopped by itself, and says why; somebody has to let it go on.
    Paused(String),
    /// This process was told to stop; the job can go on elsewhere.
    Stopped,
    /// Another process has taken the job over.
    TakenOver,
}

/// How far a job has come.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Where this process began.
    pub from: u64,
    /// The letters below this number are dealt with.
    pub upto: u64,
    /// What became of them, as far as it was heard.
    pub counts: Counts,
    /// What it waits for, if it does.
    pub waits: Option<String>,
}

/// What a run goes by.
pub struct Running {
    /// Where the cluster is.
    pub settings: Settings,
    /// The clock.
    pub clock: Clock,
    /// Who runs it.
    pub by: String,
    /// How long to wait for what becomes of the first letters.
    pub patience: Duration,
    /// Whether to stop.
    pub stop: watch::Receiver<bool>,
    /// Whom to tell how far it is.
    pub progress: watch::Sender<Progress>,
}

struct Run<'a> {
    running: &'a Running,
    job: Grip,
    begun: Begun,
    options: Options,
    rate: Option<Rate>,
    watching: Watching,
    handfuls: Handfuls,
    ready: VecDeque<Prepared>,
    is_read: bool,
    from: u64,
    upto: u64,
    /// What was known when this process began.
    known: Counts,
    /// When the last of the first letters was sent.
    canary_sent: Option<Duration>,
    /// When the next may be sent.
    next_at: Duration,
    /// Whether it waited for something else since the last were sent.
    has_rested: bool,
    /// How far it came, as it was written last, and as it is being written.
    mark: Mark,
    under_way: Mark,
    /// When this process last said that it is there.
    said_at: Duration,
    /// How many to send at once; less while one is looked for that is too large.
    most: usize,
}

/// Why a handful was not sent.
enum Unsent {
    /// Look at it again.
    Again,
    /// The same, with less at once or without a letter that is refused: it comes to an end.
    Smaller,
    /// The producer is of no use; whether it was sent is not known.
    Lost,
    TakenOver,
    Failed(Error),
}

/// Sends the letters of a job until all are sent, or something stops it. `destinations` makes what there is to
/// send to known anew, each time the job is taken up.
pub async fn run(
    running: &Running,
    job: Held,
    mut destinations: impl FnMut() -> Result<Destinations, Error>,
) -> Result<Ended, Error> {
    let unattended = job.job().is_some_and(Job::is_unattended);
    let (mut job, mut tries) = (job, 0);
    loop {
        let id = job.id().clone();
        let mut run = Run::new(running, job, destinations()?)?;
        match run.all().await? {
            Some(ended) => return Ok(ended),
            // Whether the last transaction counts is told by the state alone.
            None if tries < TRIES => {
                tries += 1;
                warn!(job = %id, "the transactions of the job are broken; it is taken up again");
                drop(run);
                job = take_over(&running.settings, &running.clock, &id, None, unattended).await?;
            }
            None => return Err(Error::Unread),
        }
    }
}

impl<'a> Run<'a> {
    fn new(running: &'a Running, held: Held, destinations: Destinations) -> Result<Self, Error> {
        let Running { settings, clock, .. } = running;
        let Held { followed, grip } = held;
        let Some(job) = followed.state.job(&grip.id) else { return Err(Error::NoJob(grip.id.to_string())) };
        if !job.sends() {
            return Err(Error::NoReplay(grip.id));
        }
        let (upto, known, begun, mark) = (job.mark.upto, job.counts(), job.begun.clone(), job.mark.clone());
        let options = begun.options.clone();
        let whose = (job, running.by.as_str());
        let sent = (destinations, Before::of(&followed.state, job));
        let handfuls = reading::read((settings, clock), whose, (upto, followed.state.moves()), sent)?;
        let watching = Watching::start(settings, clock, &grip.id, followed);
        let rate = options.rate.as_deref().and_then(|rate| rate.parse().ok());
        let now = clock.now().steady;
        let canary_sent = (upto > 0).then_some(now);
        Ok(Self {
            running,
            job: grip,
            begun,
            options,
            rate,
            watching,
            handfuls,
            ready: VecDeque::new(),
            is_read: false,
            from: upto,
            upto,
            known,
            canary_sent,
            next_at: now,
            has_rested: true,
            mark,
            under_way: Mark::default(),
            // What is known of it may be old, or be that it had stopped.
            said_at: now.saturating_sub(ALIVE),
            most: RECORDS,
        })
    }

    /// None if it has to be taken up anew.
    async fn all(&mut self) -> Result<Option<Ended>, Error> {
        let clock = &self.running.clock;
        let mut tries = 0;
        loop {
            let heard = self.watching.heard.borrow_and_update().clone();
            if *self.running.stop.borrow() {
                return Ok(Some(self.say_how_it_is(true).await.unwrap_or(Ended::Stopped)));
            }
            let next = pace::next(&self.seen(&heard), &self.options);
            let is_quiet = clock.now().steady >= self.said_at + ALIVE;
            if is_quiet
                && matches!(next, Next::Listen | Next::Send(_))
                && let Some(ended) = self.say_how_it_is(false).await
            {
                return Ok(Some(ended));
            }
            match next {
                Next::Done => {
                    self.end(Ending::Finished).await?;
                    self.tell(&heard, None);
                    return Ok(Some(Ended::Finished));
                }
                Next::Cancel => {
                    // Nobody goes on with it, so nothing is to wait for it.
                    self.end(Ending::Cancelled).await?;
                    return Ok(Some(Ended::Cancelled));
                }
                Next::Pause(why) => return self.pause(why, false).await.map(Some),
                Next::PauseAtFirst(why) => return self.pause(why, true).await.map(Some),
                Next::Hold => {
                    let words = heard.wish.as_ref().map_or_else(String::new, |wish| {
                        let why = if wish.why.is_empty() { String::new() } else { format!(": {}", wish.why) };
                        format!("paused by {}{why}", wish.by)
                    });
                    self.tell(&heard, Some(words));
                    self.wait(None).await;
                }
                Next::Listen => {
                    let unheard = heard.canary.unheard();
                    self.tell(&heard, Some(format!("waits to hear of {unheard} of the first")));
                    let since = *self.canary_sent.get_or_insert(clock.now().steady);
                    self.wait(Some((since + self.patience()).min(self.said_at + ALIVE))).await;
                }
                Next::Send(limit) => {
                    self.tell(&heard, None);
                    if !self.fill(limit).await? {
                        continue;
                    }
                    match self.send(limit).await {
                        Ok(()) | Err(Unsent::Smaller) => tries = 0,
                        Err(Unsent::Again) if tries < TRIES => {
                            tries += 1;
                            clock.sleep(Duration::from_millis(100 << tries)).await;
                        }
                        Err(Unsent::Again | Unsent::Lost) => return Ok(None),
                        Err(Unsent::TakenOver) => return Ok(Some(Ended::TakenOver)),
                        Err(Unsent::Failed(error)) => return Err(error),
                    }
                }
            }
        }
    }

    /// Has the job wait until somebody lets it go on.
    async fn pause(&self, why: String, at_first: bool) -> Result<Ended, Error> {
        self.job.pause(&self.running.clock, &self.running.by, &why, at_first).await?;
        info!(job = %self.job.id, why, "the replay pauses");
        Ok(Ended::Paused(why))
    }

    /// Opens the lanes that were held for the letters, and ends: in one transaction.
    async fn end(&self, how: Ending) -> Result<(), Error> {
        let Running { clock, by, .. } = self.running;
        self.job.end(clock, how, by, self.upto, self.begun.opens(&self.job.id, by)).await
    }

    fn seen(&self, heard: &Heard) -> Seen {
        let now = self.running.clock.now().steady;
        let is_late = self.canary_sent.is_some_and(|sent| now >= sent + self.patience());
        let want = heard.wish.as_ref().map(|wish| wish.want);
        let is_let_go = heard.wish.as_ref().is_some_and(|wish| wish.canary && wish.want == Want::Run);
        let Heard { counts, canary, .. } = *heard;
        Seen { upto: self.upto, counts, canary, known: self.known, want, is_late, is_let_go }
    }

    /// How long to wait for what becomes of the first letters.
    fn patience(&self) -> Duration {
        self.options.canary_wait_ms.map_or(self.running.patience, Duration::from_millis)
    }

    /// Says that this process is there, or that it stops here: a job whose process is gone has to be resumed, and
    /// nobody could tell otherwise. It is no harm if that cannot be written, unless another process has the job.
    async fn say_how_it_is(&mut self, stopped: bool) -> Option<Ended> {
        let clock = &self.running.clock;
        self.said_at = clock.now().steady;
        let alive = Some(clock.now().wall.millis());
        let mark = Mark { alive, stopped, by: self.running.by.clone(), ..self.mark.clone() };
        let mark = outgoing(&Key::Mark(self.job.id.clone()), &mark);
        match self.job.transactions.publish(vec![mark]).await {
            Ok(()) => None,
            Err(TransactionFailed::Fenced(error)) => {
                warn!(job = %self.job.id, %error, "another process goes on with the job");
                Some(Ended::TakenOver)
            }
            Err(error) => {
                warn!(job = %self.job.id, error = crate::told(&error), "it is not written down that the job is run");
                None
            }
        }
    }

    fn tell(&self, heard: &Heard, waits: Option<String>) {
        let told = Progress { from: self.from, upto: self.upto, counts: heard.counts, waits };
        self.running.progress.send_if_modified(|progress| {
            *progress != told && {
                *progress = told;
                true
            }
        });
    }

    /// Waits for news, for the end of this process, or until then.
    async fn wait(&mut self, until: Option<Duration>) {
        let mut stop = self.running.stop.clone();
        let until = until.unwrap_or(Duration::MAX);
        self.has_rested = true;
        tokio::select! {
            _ = self.watching.heard.changed() => {}
            _ = stop.wait_for(|stop| *stop) => {}
            () = self.running.clock.sleep_until(until) => {}
        }
    }

    /// Waits until letters are there and may be sent; whether they may.
    async fn fill(&mut self, limit: u64) -> Result<bool, Error> {
        let clock = &self.running.clock;
        if self.rate.is_some() && clock.now().steady < self.next_at {
            let has_rested = self.has_rested;
            self.wait(Some(self.next_at.min(self.said_at + ALIVE))).await;
            self.has_rested = has_rested;
            return Ok(false);
        }
        let wanted = usize::try_from(limit - self.upto).unwrap_or(usize::MAX).min(self.at_once());
        while self.ready.len() < wanted && !self.is_read {
            let mut stop = self.running.stop.clone();
            let handful = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return Ok(false),
                handful = self.handfuls.recv() => handful,
                () = clock.sleep_until(self.said_at + ALIVE) => return Ok(false),
            };
            match handful.transpose()? {
                Some(handful) if !handful.is_empty() => self.ready.extend(handful),
                Some(_) | None => self.is_read = true,
            }
        }
        Ok(!self.ready.is_empty())
    }

    fn at_once(&self) -> usize {
        let handful =
            self.rate.map_or(usize::MAX, |rate| usize::try_from(rate.handful()).unwrap_or(usize::MAX));
        self.most.min(handful)
    }

    /// Sends what is ready, up to this number.
    async fn send(&mut self, limit: u64) -> Result<(), Unsent> {
        let mut most = usize::try_from(limit - self.upto).unwrap_or(usize::MAX).min(self.at_once());
        let mut bytes = 0;
        for (place, prepared) in self.ready.iter().enumerate().take(most) {
            bytes += prepared.size;
            if bytes > BYTES && place > 0 {
                most = place;
                break;
            }
        }
        let count = most.min(self.ready.len());
        if std::mem::take(&mut self.has_rested) {
            // Nothing is saved up while it waits for something else.
            self.next_at = self.next_at.max(self.running.clock.now().steady);
        }
        let records = self.transaction(count);
        match self.job.transactions.publish(records.clone()).await {
            Ok(()) => self.sent(count),
            Err(failed) => return Err(self.failed(failed, &records)),
        }
        Ok(())
    }

    /// The records of a handful, and the mark.
    fn transaction(&mut self, count: usize) -> Arc<[Outgoing]> {
        let mark = Mark {
            upto: self.upto + count as u64,
            at: self.running.clock.now().wall.millis(),
            by: self.running.by.clone(),
            ..Mark::default()
        };
        self.under_way = mark.clone();
        let mark = outgoing(&Key::Mark(self.job.id.clone()), &mark);
        self.ready.drain(..count).map(|prepared| prepared.record).chain([mark]).collect()
    }

    /// Takes back what was not sent.
    fn take_back(&mut self, records: &[Outgoing]) {
        let letters = records.split_last().map_or(&[][..], |(_mark, letters)| letters);
        for record in letters.iter().rev() {
            let length = |bytes: Option<&bytes::Bytes>| bytes.map_or(0, bytes::Bytes::len);
            let size = length(record.key.as_ref()) + length(record.value.as_ref());
            self.ready.push_front(Prepared { record: record.clone(), size });
        }
    }

    fn sent(&mut self, count: usize) {
        self.upto += count as u64;
        self.mark = std::mem::take(&mut self.under_way);
        let now = self.running.clock.now().steady;
        if let Some(rate) = self.rate {
            // What was late is not made up for in a rush.
            self.next_at = self.next_at.max(now.saturating_sub(Duration::from_secs(1)));
            self.next_at += rate.time_of(count as u64);
        }
        if self.options.canary.is_some_and(|canary| self.upto >= canary) {
            self.canary_sent.get_or_insert(now);
        }
        self.said_at = now;
        self.most = (self.most * 2).min(RECORDS);
    }

    /// Looks for the letter that is refused, and leaves it out: it may be the batch that is too large, or any of it
    /// that is at fault; alone, it is the letter.
    fn leave_out(&mut self, count: usize, why: impl FnOnce(Topic) -> Why) -> Unsent {
        if count > 1 {
            self.most = (count / 2).max(1);
            return Unsent::Smaller;
        }
        let now = self.running.clock.now().wall;
        if let Some(first) = self.ready.front_mut() {
            let why = why(first.record.topic.clone());
            first.record = reading::skipped(&self.job.id, self.upto, &why, (&self.running.by, now));
        }
        Unsent::Smaller
    }

    fn failed(&mut self, failed: TransactionFailed, records: &[Outgoing]) -> Unsent {
        self.take_back(records);
        let (job, count) = (self.job.id.clone(), records.len().saturating_sub(1));
        match failed {
            TransactionFailed::Refused { kind: Refusal::TooLarge, .. } => {
                self.leave_out(count, |_| Why::TooLarge)
            }
            // One letter must not hold up the others for ever.
            failed if failed.is_for_good() => {
                warn!(%job, error = crate::told(&failed), "a letter is refused");
                self.leave_out(count, Why::Refused)
            }
            TransactionFailed::Refused { topic, kind, .. } => Unsent::Failed(Error::Refused { topic, kind }),
            TransactionFailed::Fenced(error) => {
                warn!(%job, %error, "another process goes on with the job");
                Unsent::TakenOver
            }
            TransactionFailed::Aborted(error) => {
                warn!(%job, %error, "a transaction was undone; it is run again");
                Unsent::Again
            }
            TransactionFailed::Broken(_) | TransactionFailed::CutOff(_) => Unsent::Lost,
            failed => Unsent::Failed(Error::Write { job, source: failed }),
        }
    }
}
