//! Many subscriptions in one process, and nothing to do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use redrive::Cluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::load::config;
use crate::process::{processor_time, resident};
use crate::program::{Program, subscription};
use crate::{Outcome, Sizes, clock};

pub(crate) async fn measure(cluster: &Cluster, sizes: &Sizes, folder: &Path) -> Outcome<()> {
    let names: Vec<String> =
        (0..sizes.subscriptions).map(|n| format!("bench-idle{n}-{}", std::process::id())).collect();
    let admin: AdminClient<DefaultClientContext> = config(cluster).create()?;
    let topics: Vec<NewTopic<'_>> =
        names.iter().map(|name| NewTopic::new(name, sizes.partitions, TopicReplication::Fixed(1))).collect();
    for made in admin.create_topics(&topics, &AdminOptions::new()).await? {
        made.map_err(|(topic, error)| format!("cannot make {topic}: {error}"))?;
    }
    drop(admin);
    let endpoint = Program::endpoint()?;
    let url = format!("http://{}/records", endpoint.address);
    let all: String = names.iter().map(|name| subscription(name, "idle", &url, 64)).collect();
    let program = Program::redrive(folder, cluster, &all)?;
    while !is_ready(&program.address).await? {
        clock::pause(Duration::from_millis(500)).await;
    }
    // Starting is not idleness.
    clock::pause(Duration::from_secs(sizes.idle / 2)).await;
    let (before, began) = (processor_time(program.id()), clock::nanos());
    let woken = wakes(program.id());
    clock::pause(Duration::from_secs(sizes.idle)).await;
    let seconds = (clock::nanos() - began) as f64 / 1e9;
    let woken = wakes(program.id()).saturating_sub(woken) as f64 / seconds;
    let spent = (processor_time(program.id()) - before).as_secs_f64();
    let what =
        format!("{} subscriptions that idle, {} partitions each", sizes.subscriptions, sizes.partitions);
    println!("| {what}: share of a core | {:.2}% | below 2% |", 100.0 * spent / seconds);
    println!("| {what}: resident memory | {:.0} MB | below 150 MB |", resident(program.id()));
    println!("| {what}: threads that wake, each second | {woken:.0} | |");
    drop(program);
    let empty = empty_wake().await;
    println!("| what a thread that wakes and does nothing costs on this machine | {empty:.1} us | |");
    Ok(())
}

/// How often threads of a process have waited for something, so far.
fn wakes(process: u32) -> u64 {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return 0 };
    let status = threads.flatten().filter_map(|one| std::fs::read_to_string(one.path().join("status")).ok());
    let waits = status.filter_map(|status| {
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    waits.sum()
}

/// Microseconds of processor time: so many threads wake each second as four for each subscription would.
async fn empty_wake() -> f64 {
    let end = Arc::new(AtomicBool::new(false));
    for nth in 0..400_u64 {
        let end = end.clone();
        std::thread::spawn(move || {
            clock::sleep(Duration::from_micros(nth * 2_500));
            while !end.load(Ordering::Relaxed) {
                clock::sleep(Duration::from_secs(1));
            }
        });
    }
    clock::pause(Duration::from_secs(2)).await;
    let me = std::process::id();
    let (spent, woken) = (processor_time(me), wakes(me));
    clock::pause(Duration::from_secs(5)).await;
    let (spent, woken) = (processor_time(me) - spent, wakes(me).saturating_sub(woken));
    end.store(true, Ordering::Relaxed);
    spent.as_secs_f64() * 1e6 / woken.max(1) as f64
}

async fn is_ready(address: &str) -> Outcome<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let ask = format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}
