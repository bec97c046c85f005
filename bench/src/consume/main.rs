//! How fast records come through `redrive_kafka::join`, beside a bare loop of `BaseConsumer::poll`: the
//! same records of the same broker, each way in turn, with the processor time of the client's threads.

use std::fs;
use std::time::{Duration, Instant};

use clap::Parser;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use redrive_broker::{Broker, BrokerConfig, Data};
use redrive_core::headers::Headers;
use redrive_core::{Timestamp, Topic};
use redrive_kafka::{ConsumerSettings, Event, Outgoing, Publisher, Publishing, Settings, join};

#[derive(Parser)]
struct Options {
    /// How many records.
    #[arg(long, default_value_t = 1_000_000)]
    records: usize,
    /// How large each value is.
    #[arg(long, default_value_t = 1024)]
    bytes: usize,
    #[arg(long, default_value_t = 12)]
    partitions: i32,
    /// How often each way is measured.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Properties of librdkafka for both ways, NAME=VALUE.
    #[arg(long = "property")]
    properties: Vec<String>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let runtime = tokio::runtime::Runtime::new()?;
    let dir = tempfile::tempdir()?;
    let config = BrokerConfig { data: Data::Dir(dir.path().to_owned()), ..BrokerConfig::default() };
    let broker = runtime.block_on(Broker::start(config))?;
    let topic: Topic = "throughput".parse()?;
    broker.create_topic(topic.as_str(), options.partitions)?;
    let mut settings = Settings::of(broker.address().to_string());
    let filled = now();
    runtime.block_on(fill(&options, &settings, &topic))?;
    println!("published in {:.2} s", filled.elapsed().as_secs_f64());
    let properties = options.properties.iter().filter_map(|property| property.split_once('='));
    settings.properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for round in 0..options.rounds {
        bare(&options, &settings, &topic)?;
        runtime.block_on(joined(&options, &settings, &topic, round))?;
    }
    Ok(())
}

async fn fill(options: &Options, settings: &Settings, topic: &Topic) -> Result<(), redrive_kafka::Error> {
    let publisher = Publisher::new(settings, &Publishing::default())?;
    let value = bytes::Bytes::from(vec![b'x'; options.bytes]);
    for number in 0..options.records {
        let published = publisher.publish(Outgoing {
            topic: topic.clone(),
            partition: i32::try_from(number).ok().map(|number| number % options.partitions),
            timestamp: Some(Timestamp::from_millis(1_790_000_000_000)),
            key: Some(number.to_string().into()),
            value: Some(value.clone()),
            headers: Headers::default(),
        });
        if number % 20_000 == 19_999 {
            published.await?;
        }
    }
    publisher.flush().await;
    Ok(())
}

fn bare(options: &Options, settings: &Settings, topic: &Topic) -> Result<(), Box<dyn std::error::Error>> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &settings.brokers).set("group.id", "bare");
    config.set("enable.auto.commit", "false").set("isolation.level", "read_committed");
    for (name, value) in &settings.properties {
        config.set(name, value);
    }
    let consumer: BaseConsumer = config.create()?;
    let mut all = TopicPartitionList::new();
    for partition in 0..options.partitions {
        all.add_partition_offset(topic.as_str(), partition, Offset::Beginning)?;
    }
    let (begun, before) = (now(), cpu());
    let polling = std::thread::Builder::new().name("consume bare".to_owned());
    let records = options.records;
    std::thread::scope(|scope| {
        let counting = polling.spawn_scoped(scope, || {
            consumer.assign(&all).expect("an assignment");
            let mut count = 0;
            while count < records {
                if let Some(Ok(_)) = consumer.poll(Duration::from_millis(100)) {
                    count += 1;
                }
            }
            report("bare", records, begun, before);
        });
        counting.expect("a thread");
    });
    Ok(())
}

async fn joined(
    options: &Options,
    settings: &Settings,
    topic: &Topic,
    round: u32,
) -> Result<(), redrive_kafka::Error> {
    let settings = ConsumerSettings::of(settings.clone(), topic.clone(), format!("joined-{round}"));
    let (consumer, mut events) = join(settings)?;
    let (mut begun, mut before, mut count) = (now(), 0.0, 0);
    while count < options.records {
        match events.next().await {
            Some(Event::Assigned(partitions)) => {
                (begun, before) = (now(), cpu());
                for partition in partitions {
                    consumer.begin(partition, 0)?;
                }
            }
            Some(Event::Records(batch)) => count += batch.records.len(),
            other => println!("{other:?}"),
        }
    }
    report("joined", count, begun, before);
    consumer.leave().await;
    Ok(())
}

fn report(way: &str, records: usize, begun: Instant, before: f64) {
    let seconds = begun.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate to read")]
    let rate = records as f64 / seconds;
    println!("{way:>7}: {rate:>9.0} records/s in {seconds:.2} s, {:.2} s of processor", cpu() - before);
}

#[allow(clippy::disallowed_methods, reason = "it measures time")]
fn now() -> Instant {
    Instant::now()
}

/// Seconds of processor time of the client's own threads: librdkafka's and those that poll.
fn cpu() -> f64 {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ticks =
        tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok()).filter_map(|stat| {
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
            let clients = name.starts_with("rdk:") || name.starts_with("consume");
            let mut fields =
                rest.split_whitespace().skip(11).map(|field| field.parse::<f64>().unwrap_or(0.0));
            clients.then(|| fields.next().unwrap_or(0.0) + fields.next().unwrap_or(0.0))
        });
    // A hundred ticks a second, on every Linux.
    ticks.sum::<f64>() / 100.0
}
