//! How long after a record is sent the request that carries it arrives, at a steady rate. That is more than
//! what Redrive adds: producing the record, and the way to the endpoint, are in it.

use std::path::Path;
use std::time::Duration;

use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use redrive::Cluster;

use crate::load::{config, create};
use crate::program::{Program, subscription, until_seen};
use crate::{Outcome, Sizes, clock};

pub(crate) async fn measure(cluster: &Cluster, sizes: &Sizes, folder: &Path) -> Outcome<()> {
    let topic = format!("latency-{}", std::process::id());
    create(cluster, &topic).await.map_err(|error| error.to_string())?;
    let endpoint = Program::endpoint()?;
    let url = format!("http://{}/ages", endpoint.address);
    let _program = Program::redrive(folder, cluster, &subscription(&topic, "latency", &url, 64))?;
    let producer: ThreadedProducer<DefaultProducerContext> =
        config(cluster).set("linger.ms", "0").create()?;
    // Whoever comes first finds clients that do not know the cluster yet, and is not timed.
    let warm = 2 * sizes.rate;
    for n in 0..warm {
        send(&producer, &topic, n, &"-".repeat(sizes.size))?;
    }
    until_seen(&endpoint, u64::from(warm)).await?;
    clock::pause(Duration::from_secs(2)).await;
    let (count, began) = (sizes.rate * sizes.seconds, clock::nanos());
    let step = 1_000_000_000 / u64::from(sizes.rate);
    for n in 0..count {
        let due = began + u64::from(n) * step;
        while let wait = due.saturating_sub(clock::nanos())
            && wait > 0
        {
            clock::pause(Duration::from_nanos(wait)).await;
        }
        let value = format!("{:0<1$}", clock::nanos(), sizes.size);
        send(&producer, &topic, n, &value)?;
    }
    producer.flush(Duration::from_secs(10))?;
    let seen = until_seen(&endpoint, u64::from(warm + count)).await?;
    let [p50, p99, all] = seen.ages;
    println!(
        "| record sent to request received at {}/s: p50, p99, longest | {p50:.2} ms, {p99:.2} ms, {all:.2} ms | p99 below 5 ms |",
        sizes.rate
    );
    Ok(())
}

fn send(
    producer: &ThreadedProducer<DefaultProducerContext>,
    topic: &str,
    number: u32,
    value: &str,
) -> Outcome<()> {
    let key = format!("key-{}", number % 1_000);
    producer.send(BaseRecord::to(topic).key(&key).payload(value)).map_err(|(error, _)| error)?;
    Ok(())
}
