//! The measure: a group consumer of rdkafka that polls and counts, and does nothing else.

use std::time::Duration;

use rdkafka::consumer::{BaseConsumer, Consumer};
use redrive::Cluster;

use crate::load::{Load, config};
use crate::passes::Pass;
use crate::{clock, machine};

pub(crate) fn count(cluster: &Cluster, load: &Load) -> Result<Pass, Box<dyn std::error::Error>> {
    let consumer: BaseConsumer = config(cluster)
        .set("group.id", format!("bare-{}", machine::processor_time().as_millis()))
        .set("auto.offset.reset", "earliest")
        .set("enable.auto.commit", "false")
        .create()?;
    consumer.subscribe(&[&load.topic])?;
    let (mut first, mut counted) = (None, 0);
    let processor = machine::processor_time();
    while counted < load.records {
        if let Some(message) = consumer.poll(Duration::from_millis(100)) {
            message?;
            first.get_or_insert_with(clock::now);
            counted += 1;
        }
    }
    let first = first.ok_or("there are no records")?;
    let pass = Pass {
        records: counted,
        time: first.elapsed(),
        processor: machine::processor_time().saturating_sub(processor),
        memory: Vec::new(),
        letters: 0,
    };
    eprintln!("  bare: {:.0}/s, {:.2} CPU s/M", pass.rate(), pass.processor_per_million());
    Ok(pass)
}
