//! Many subscriptions in one process, and nothing to do.

use std::path::Path;
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
        (0..sizes.subscriptions).map(|n| format!("idle-{}-{n}", std::process::id())).collect();
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
    clock::pause(Duration::from_secs(sizes.idle)).await;
    let seconds = (clock::nanos() - began) as f64 / 1e9;
    let spent = (processor_time(program.id()) - before).as_secs_f64();
    let what =
        format!("{} subscriptions that idle, {} partitions each", sizes.subscriptions, sizes.partitions);
    println!("| {what}: share of a core | {:.2}% | below 2% |", 100.0 * spent / seconds);
    println!("| {what}: resident memory | {:.0} MB | below 150 MB |", resident(program.id()));
    Ok(())
}

async fn is_ready(address: &str) -> Outcome<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let ask = format!("GET /readyz HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}
