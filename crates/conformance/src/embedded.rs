//! The embedded brokers of this process: one in memory and one on disk, started when first asked for
//! and shared by all tests. They run on threads of their own, so that tests may block.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use redrive_broker::{Broker, BrokerConfig, Data};
use redrive_testkit::Cluster;
use tokio::runtime::Runtime;

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    runtime().block_on(work)
}

pub(crate) fn in_memory() -> Cluster {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    cluster(BROKER.get_or_init(|| start(Data::Memory)))
}

pub(crate) fn on_disk() -> Cluster {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    cluster(BROKER.get_or_init(|| start(Data::Dir(own_directory()))))
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("a runtime"))
}

fn cluster(broker: &Broker) -> Cluster {
    Cluster { brokers: broker.address().to_string(), properties: Vec::new() }
}

/// A broker set up as `tools/kafka` sets up Apache Kafka.
fn start(data: Data) -> Broker {
    let config = BrokerConfig {
        data,
        auto_create_topics: false,
        retention_interval: Duration::from_secs(1),
        compaction_interval: Duration::from_secs(1),
        group_initial_rebalance_delay: Duration::ZERO,
        ..BrokerConfig::default()
    };
    block_on(Broker::start(config)).expect("an embedded broker")
}

/// A directory of this process, beside which those of dead ones are removed: nothing runs at the end
/// of a test process that could remove its own.
fn own_directory() -> PathBuf {
    let all = std::env::temp_dir().join("redrive-conformance");
    for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
        if !Path::new("/proc").join(entry.file_name()).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let own = all.join(std::process::id().to_string());
    fs::create_dir_all(&own).expect("a directory for the broker");
    own
}
