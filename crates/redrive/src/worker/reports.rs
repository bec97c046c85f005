//! Reports of what became of letters that were sent back, on their way to `redrive.state`.
//!
//! No record waits for them: they go through a queue with an end, are tried again for a while in their order, and
//! counted when they are given up.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redrive_core::Origin;
use redrive_core::flow::{Fate, Now};
use redrive_core::shelf::Verdict;
use redrive_kafka::{Admin, Error as KafkaError, Publisher, Publishing, Settings};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::back_off;
use super::engine::{Engine, chain};
use super::troubles::About;
use crate::clock::Clock;
use crate::pauses;
use crate::replay::{Report, What};

/// How many may wait to be written.
const MOST: usize = 50_000;
/// How many are written at once.
const AT_ONCE: usize = 1_000;
/// How often they are tried.
const TRIES: u32 = 8;
/// For how long the end of a worker waits for them.
const LAST: Duration = Duration::from_secs(5);
/// For how long it is told that a lane was opened as its time was over.
const TOLD: Duration = Duration::from_mins(10);

/// Reports on their way; whoever writes them begins with the first.
#[derive(Default)]
pub(crate) struct Reports {
    queue: Option<mpsc::Sender<Report>>,
    task: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
    /// Until when it is told of lanes that were opened.
    overdue: HashMap<i32, Duration>,
}

impl Reports {
    /// Reports that were given up.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn send(&mut self, report: Report, settings: &Settings) {
        let queue = self.queue.get_or_insert_with(|| {
            let (queue, reports) = mpsc::channel(MOST);
            let writing = write_all(settings.clone(), reports, self.lost.clone());
            self.task = Some(tokio::spawn(writing));
            queue
        });
        if queue.try_send(report).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets the last of them be written.
    pub(super) async fn end(&mut self) {
        self.queue = None;
        if let Some(mut task) = self.task.take() {
            // Not a wait of the subscription's: nobody turns a clock for it.
            let clock = Clock::system();
            tokio::select! {
                _ = &mut task => {}
                () = clock.sleep(LAST) => task.abort(),
            }
        }
    }

    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.overdue.values().min().copied()
    }
}

impl Engine {
    /// It is certain what became of a letter that was sent back.
    pub(super) fn sent_back(&mut self, replay: &str, origin: &Origin, fate: Fate) {
        let (what, why) = match fate {
            Fate::Handled => (What::Handled, None),
            Fate::Dropped => (What::Dropped, None),
            Fate::Waiting => (What::Waiting, None),
            Fate::Refused(Verdict::StillWaiting) => {
                (What::Refused, Some("the record still waits, or is with the handler"))
            }
            Fate::Refused(Verdict::Already) => {
                (What::Refused, Some("the record was sent back as often before, by another job"))
            }
            Fate::Refused(Verdict::TooLarge) => {
                (What::Refused, Some("the record does not fit on the shelf; raise its max.message.bytes"))
            }
            Fate::Refused(_) => (What::Refused, Some("the record was never consumed by this group")),
        };
        info!(%origin, replay, ?what, "sent back");
        self.report(replay, what, None, why);
    }

    /// A letter that was sent back is one again.
    pub(super) fn report_buried(&mut self, replay: &str, letter: Option<Origin>, why: Option<&str>) {
        self.report(replay, What::Buried, letter, why);
    }

    fn report(&mut self, replay: &str, what: What, letter: Option<Origin>, why: Option<&str>) {
        let Some((job, number)) = Report::of(replay) else { return };
        let (at, by) = (self.clock.now().wall, self.spec.writer.instance.clone());
        let why = why.map(ToOwned::to_owned);
        self.reports.send(Report { job, number, what, at, by, letter, why }, &self.kafka);
    }

    /// A lane was opened although its letters were not all sent back.
    pub(super) fn overdue(&mut self, partition: i32, leader: i64, job: &str, left: usize, now: Now) {
        self.tally.lanes_overdue += 1;
        let what = format!(
            "job {job} announced to send back the letters of the lane that record {leader} of partition {partition} \
             closed, and was not done in time: the lane is open, {left} letters of it were not sent back"
        );
        let remedy = format!("look at what became of the job: redrive replay show {job}");
        self.troubles.raise(About::Overdue(partition), what, &remedy);
        self.reports.overdue.insert(partition, now.steady.saturating_add(TOLD));
    }

    /// What was told for long enough is told no more.
    pub(super) fn forget_overdue(&mut self, now: Now) {
        for (partition, _) in self.reports.overdue.extract_if(|_, until| *until <= now.steady) {
            self.troubles.clear(About::Overdue(partition));
        }
    }
}

/// Writes reports until nobody sends any more. One batch at a time: of a letter the last that is written counts.
async fn write_all(settings: Settings, mut reports: mpsc::Receiver<Report>, lost: Arc<AtomicU64>) {
    let (clock, mut publisher, mut warned) = (Clock::system(), None, false);
    let mut batch = Vec::new();
    while reports.recv_many(&mut batch, AT_ONCE).await > 0 {
        // Only the last of a letter, in the order of the last.
        let mut last: HashMap<(String, u64), Report> = HashMap::new();
        for report in batch.drain(..) {
            last.insert((report.job.clone(), report.number), report);
        }
        let mut left: Vec<_> = last.into_values().collect();
        for tries in 0..TRIES {
            if tries > 0 {
                clock.sleep(back_off(tries - 1)).await;
            }
            match write(&settings, &mut publisher, &left).await {
                Ok(failed) if failed.is_empty() => {
                    left.clear();
                    break;
                }
                Ok(failed) => left = failed,
                Err(error) => {
                    let error = chain(&error);
                    if !std::mem::replace(&mut warned, true) {
                        warn!(
                            error,
                            "what became of letters that were sent back cannot be reported to redrive.state; allow \
                             this user what redrive acls prints"
                        );
                    }
                    break;
                }
            }
        }
        lost.fetch_add(left.len() as u64, Ordering::Relaxed);
    }
}

/// Writes these; says which were not.
async fn write(
    settings: &Settings,
    publisher: &mut Option<Publisher>,
    reports: &[Report],
) -> Result<Vec<Report>, KafkaError> {
    let publisher = match publisher {
        Some(publisher) => publisher,
        None => {
            pauses::prepare(&Admin::new(settings)?).await?;
            publisher.insert(Publisher::new(settings, &Publishing::default())?)
        }
    };
    let sent: Vec<_> = reports.iter().map(|report| (report, publisher.publish(report.write()))).collect();
    let mut failed = Vec::new();
    for (report, published) in sent {
        if published.await.is_err() {
            failed.push(report.clone());
        }
    }
    Ok(failed)
}
