//! What a broker is started with. Plain data; nothing is checked or opened here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where records, topics, groups and transactions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// In memory: gone when the broker stops.
    Memory,
    /// In files below this directory, which is made if need be. One broker at a time.
    Dir(PathBuf),
}

/// The settings of a broker. The defaults suit tests: any free port on the loopback, in memory.
#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// The address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether an address that others can reach is accepted. There is no authentication.
    pub allow_remote: bool,
    /// Where everything is kept.
    pub data: Data,
    /// Whether a topic that a client asks for is made, as Kafka does by default.
    pub auto_create_topics: bool,
    /// The partitions of a topic that names no number.
    pub default_partitions: i32,
    /// The largest request that is read.
    pub max_request_bytes: usize,
    /// How many log files may be open at once.
    pub open_files: usize,
    /// How often retention looks for old segments.
    pub retention_interval: Duration,
    /// How often compaction looks for work.
    pub compaction_interval: Duration,
    /// How long a new group waits for more members before its first rebalance.
    pub group_initial_rebalance_delay: Duration,
    /// Whether members of groups are still members after a restart, until their sessions end, as with
    /// Kafka. Where all clients live in the broker's own process they died with it: false, and a group
    /// need not wait for them.
    pub restore_group_members: bool,
}

impl Default for BrokerConfig {
    fn default() -> BrokerConfig {
        BrokerConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            allow_remote: false,
            data: Data::Memory,
            auto_create_topics: true,
            default_partitions: 1,
            max_request_bytes: 100 << 20,
            open_files: 400,
            retention_interval: Duration::from_secs(300),
            compaction_interval: Duration::from_secs(15),
            group_initial_rebalance_delay: Duration::ZERO,
            restore_group_members: true,
        }
    }
}
