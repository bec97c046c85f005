//! One pass of the worker over a load.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use redrive::{Classed, Cluster, Delivery, Outgoing, Received, Subscription, Worker};
use tokio::sync::Notify;

use crate::load::{Load, create};
use crate::wait::Wait;
use crate::{clock, machine};

/// What the handler does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) wait: bool,
    pub(crate) fails: bool,
    pub(crate) output: bool,
    pub(crate) concurrency: u32,
    pub(crate) delivery: Delivery,
    pub(crate) watch_memory: bool,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            wait: false,
            fails: false,
            output: false,
            concurrency: 64,
            delivery: Delivery::AtLeastOnce,
            watch_memory: false,
        }
    }
}

/// What a pass showed.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) records: u64,
    /// From the first record to the last.
    pub(crate) time: Duration,
    pub(crate) processor: Duration,
    /// Resident megabytes, at each tenth.
    pub(crate) memory: Vec<f64>,
    pub(crate) letters: u64,
}

impl Pass {
    pub(crate) fn rate(&self) -> f64 {
        self.records as f64 / self.time.as_secs_f64()
    }

    pub(crate) fn processor_per_million(&self) -> f64 {
        self.processor.as_secs_f64() * 1e6 / self.records as f64
    }
}

#[derive(Default)]
struct Seen {
    first: OnceLock<Instant>,
    count: AtomicU64,
    all: Notify,
}

pub(crate) async fn run(
    cluster: &Cluster,
    load: &Load,
    work: Work,
) -> Result<Pass, Box<dyn std::error::Error>> {
    static PASSES: AtomicU64 = AtomicU64::new(0);
    let group = format!("pass-{}-{}", std::process::id(), PASSES.fetch_add(1, Ordering::Relaxed));
    let out = format!("{}.out", load.topic);
    create(cluster, &out).await?;
    let seen = Arc::new(Seen::default());
    let wait = Wait::start(Duration::from_millis(10));
    let records = load.records;
    let out: redrive::Topic = out.parse()?;
    let subscription = Subscription::new(&load.topic, &group)
        .auto_create(true)
        .concurrency(work.concurrency)
        .delivery(work.delivery)
        .handler({
            let seen = seen.clone();
            move |received: Received| {
                let (seen, out) = (seen.clone(), out.clone());
                async move {
                    seen.first.get_or_init(clock::now);
                    if work.wait {
                        wait.pass().await;
                    }
                    if work.output {
                        let value = received.value.clone().unwrap_or_default();
                        received.send(Outgoing::to(out).partition(received.at.partition).value(value));
                    }
                    let fails = work.fails && received.at.offset % 100 == 7;
                    if seen.count.fetch_add(1, Ordering::Relaxed) + 1 == records {
                        seen.all.notify_one();
                    }
                    if fails { Err(Classed::permanent("one in a hundred")) } else { Ok(()) }
                }
            }
        });
    let processor = machine::processor_time();
    let running = Worker::new(cluster).subscribe(subscription).start().await?;
    let mut memory = Vec::new();
    let watch = async {
        loop {
            clock::pause(Duration::from_millis(50)).await;
            let tenths = seen.count.load(Ordering::Relaxed) * 10 / records;
            if work.watch_memory && tenths as usize > memory.len() {
                memory.push(machine::resident());
            }
        }
    };
    tokio::select! {
        () = seen.all.notified() => {}
        () = watch => {}
    }
    // Done means safe: complete, letters confirmed.
    let mut status = running.statuses()[0].clone();
    status.wait_for(|status| status.counts.handled + status.counts.buried == records).await?;
    let time = seen.first.get().ok_or("there are no records")?.elapsed();
    let processor = machine::processor_time().saturating_sub(processor);
    let letters = status.borrow().counts.buried;
    running.stop().await?;
    let pass = Pass { records, time, processor, memory, letters };
    eprintln!("  {:.0}/s, {:.2} CPU s/M", pass.rate(), pass.processor_per_million());
    Ok(pass)
}
