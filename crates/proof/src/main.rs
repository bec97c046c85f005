//! A worker to be killed: a child process of the tests that writes down every call of its handler.
//!
//! What the handler does is in the value of the record, so that a test decides for each record. All
//! children of a test append to one log, a line at a time and unbuffered: what a test reads there is in
//! the order in which it happened, and a `kill -9` takes nothing of it away.

mod behaviour;
mod log;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use redrive::{Class, Clock, Cluster, Delivery, Received, Subscription, Worker, stop_signal};

use behaviour::Behaviour;
use log::Log;

#[derive(Parser)]
pub(crate) struct Arguments {
    #[arg(long)]
    brokers: String,
    #[arg(long)]
    topic: String,
    #[arg(long)]
    group: String,
    /// Where calls and events are written down
    #[arg(long)]
    log: PathBuf,
    #[arg(long, default_value_t = 8)]
    concurrency: u32,
    #[arg(long)]
    exactly_once: bool,
    #[arg(long)]
    accept_loss: bool,
    /// Each record that is handled becomes a record of this topic
    #[arg(long)]
    output: Option<String>,
    /// Every record fails by an outage until this file is there
    #[arg(long)]
    outage_until: Option<PathBuf>,
    /// Every record fails for good until this file is there
    #[arg(long)]
    broken_until: Option<PathBuf>,
    #[arg(long, default_value_t = 5_000)]
    drain_ms: u64,
    #[arg(long, default_value_t = 3_000)]
    publish_timeout_ms: u64,
    #[arg(long, default_value_t = 60_000)]
    timeout_ms: u64,
    /// CLASS=POLICY
    #[arg(long = "retry", value_parser = pair)]
    retries: Vec<(String, String)>,
    #[arg(long)]
    surge_guard: Option<String>,
    /// pass, hold or bury
    #[arg(long)]
    followers: Option<String>,
    /// How many milliseconds the calendar of this process is wrong stands in this file, once it is there
    #[arg(long)]
    calendar: Option<PathBuf>,
    /// NAME=VALUE of librdkafka
    #[arg(long = "property", value_parser = pair)]
    properties: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let log = match Log::open(&arguments.log) {
        Ok(log) => Arc::new(log),
        Err(error) => {
            eprintln!("cannot write {}: {error}", arguments.log.display());
            return ExitCode::FAILURE;
        }
    };
    let events = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG);
    events.with_writer(log.clone()).init();
    match run(arguments, log.clone()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log.event(&format!("ERROR ended: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments, log: Arc<Log>) -> Result<(), redrive::Error> {
    let cluster = Cluster::with(&arguments.brokers, arguments.properties.clone()).await?;
    let timeout = Duration::from_millis(arguments.timeout_ms);
    let mut subscription = Subscription::new(&arguments.topic, &arguments.group)
        .auto_create(true)
        .concurrency(arguments.concurrency)
        .drain_timeout(Duration::from_millis(arguments.drain_ms))
        .publish_timeout(Duration::from_millis(arguments.publish_timeout_ms))
        .timeouts(timeout, timeout)
        .retry(Class::Transient, "list(20ms x3)")
        .retry(Class::Outage, "exponential(200ms..1s x2)");
    for (class, policy) in &arguments.retries {
        subscription = subscription.retry(class.parse().expect("a class"), policy);
    }
    if let Some(guard) = &arguments.surge_guard {
        subscription = subscription.surge_guard(guard);
    }
    if let Some(followers) = &arguments.followers {
        subscription = subscription.followers(followers);
    }
    if arguments.exactly_once {
        subscription = subscription.delivery(Delivery::ExactlyOnce);
    }
    let accept_loss = arguments.accept_loss;
    let clock = Clock::system();
    if let Some(calendar) = arguments.calendar.clone() {
        clock.set_wrong(wrong(&calendar));
        tokio::spawn(follow(calendar, clock.clone()));
    }
    let behaviour = Arc::new(Behaviour::new(arguments, log));
    let subscription = subscription.handler(move |received: Received| {
        let behaviour = behaviour.clone();
        async move { behaviour.call(received).await }
    });
    let worker = Worker::new(&cluster).clock(clock).accept_loss(accept_loss).subscribe(subscription);
    worker.run(stop_signal()).await
}

/// Sets the calendar as the file says, whenever it says something else.
async fn follow(calendar: PathBuf, clock: Clock) {
    loop {
        clock.sleep(Duration::from_millis(20)).await;
        clock.set_wrong(wrong(&calendar));
    }
}

fn wrong(calendar: &Path) -> i64 {
    let text = std::fs::read_to_string(calendar).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
