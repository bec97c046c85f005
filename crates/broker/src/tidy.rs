//! Tidying in the background: retention and compaction over all partitions, from time to time or on
//! demand. A partition that fails is reported and tried again the next time.

use std::sync::Arc;

use tracing::{info, warn};

use crate::clock;
use crate::log::Settings;
use crate::node::Node;
use crate::sync::lock;
use crate::topics::partition::Partition;

/// How much is needed before a log is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    /// As the topic's settings say.
    WhenDirty,
    /// Anything, the active segment included.
    Now,
}

pub(crate) async fn retain_from_time_to_time(node: Arc<Node>) {
    loop {
        clock::sleep(node.config.retention_interval).await;
        let node = node.clone();
        let _ = tokio::task::spawn_blocking(move || retain(&node, clock::now_ms())).await;
    }
}

pub(crate) async fn compact_from_time_to_time(node: Arc<Node>) {
    loop {
        clock::sleep(node.config.compaction_interval).await;
        let node = node.clone();
        let _ = tokio::task::spawn_blocking(move || compact(&node, clock::now_ms(), Demand::WhenDirty)).await;
    }
}

/// Removes old segments everywhere.
pub(crate) fn retain(node: &Node, now: i64) {
    each(node, |partition, settings| {
        let _alone = lock(&partition.tidying);
        let Ok(mut log) = partition.log() else {
            return Ok(());
        };
        let removed = log.retain(settings, now)?;
        if removed > 0 {
            info!(
                partition = partition.index,
                segments = removed,
                start = log.start(),
                "removed old segments"
            );
        }
        Ok(())
    });
}

/// Compacts where there is something to gain.
pub(crate) fn compact(node: &Node, now: i64, demand: Demand) {
    each(node, |partition, settings| {
        if !settings.cleanup.compacts() {
            return Ok(());
        }
        let _alone = lock(&partition.tidying);
        let plan = {
            let Ok(mut log) = partition.log() else {
                return Ok(());
            };
            if demand == Demand::Now {
                log.roll()?;
            }
            log.plan_compaction(settings, now, demand == Demand::Now)?
        };
        let Some(plan) = plan else { return Ok(()) };
        // The log is free while the new segments are written.
        let compacted = plan.carry_out(now)?;
        let saved = partition.swap(compacted)?;
        info!(partition = partition.index, saved, "compacted");
        Ok(())
    });
}

fn each(node: &Node, work: impl Fn(&Partition, &Settings) -> std::io::Result<()>) {
    for topic in node.topics.all() {
        let config = topic.config();
        for partition in topic.partitions().iter() {
            if let Err(cause) = work(partition, config.settings()) {
                warn!(topic = topic.name, partition = partition.index, %cause, "cannot tidy a partition");
            }
        }
    }
}
