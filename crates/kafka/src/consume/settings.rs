//! How a consumer is set up: what Redrive promises, then what its user wants, then defaults.

use std::time::Duration;

use rdkafka::ClientConfig;
use redrive_core::Topic;

use crate::Settings;
use crate::settings::fetch_at_most;

/// Properties that a user cannot set: another value would break a promise.
///
/// Offsets are committed by us and only for what is done; a position is never reset behind our back; and
/// partitions come and go one by one, which only cooperative assignors do.
pub const RESERVED: &[&str] = &[
    "auto.offset.reset",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "group.id",
    "partition.assignment.strategy",
];

/// What a consumer is made of.
#[derive(Debug, Clone)]
pub struct ConsumerSettings {
    /// Where the cluster is.
    pub settings: Settings,
    /// What to consume.
    pub topic: Topic,
    /// As whom.
    pub group: String,
    /// The most records that are handed over at once.
    pub batch: usize,
    /// How many such handfuls may wait for the receiver; the rest waits in librdkafka, then at the broker.
    pub queue_batches: usize,
    /// How many bytes of keys and values may wait there before no more is handed over.
    pub queue_bytes: usize,
    /// How many partitions the topic has, as far as it is known.
    pub partitions: i32,
}

impl ConsumerSettings {
    /// The usual sizes.
    #[must_use]
    pub fn of(settings: Settings, topic: Topic, group: impl Into<String>) -> Self {
        let group = group.into();
        Self { settings, topic, group, batch: 1_000, queue_batches: 16, queue_bytes: 8 << 20, partitions: 0 }
    }

    pub(crate) fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (name, value) in DEFAULTS {
            config.set(*name, *value);
        }
        // While nothing comes this is how often the broker is asked. What comes ends it at once, but a partition
        // that begins or goes on has to wait for the fetch of the others; a single one has no others, and waits only
        // for its own where it begins again further back.
        config.set("fetch.wait.max.ms", if self.partitions == 1 { "2000" } else { "500" });
        self.settings.set_on(&mut config);
        fetch_at_most(&mut config, FETCH);
        config.set("enable.auto.commit", "false").set("enable.auto.offset.store", "false");
        config.set("auto.offset.reset", "error").set("group.id", &self.group);
        // With KIP-848 the broker assigns, and librdkafka refuses to be told how.
        match config.get("group.protocol") {
            Some("consumer") => config.remove("partition.assignment.strategy"),
            _ => config.set("partition.assignment.strategy", "cooperative-sticky"),
        };
        config
    }
}

/// How often a member polls while nothing comes: well within what the group allows, and seldom enough that many
/// members who rest cost nothing.
pub(crate) fn heartbeat(config: &ClientConfig) -> Duration {
    let allowed = config.get("max.poll.interval.ms").and_then(|millis| millis.parse().ok());
    allowed.map_or(HEARTBEAT, |allowed| HEARTBEAT.min(Duration::from_millis(allowed) / 4))
}

const HEARTBEAT: Duration = Duration::from_secs(3);

/// How many bytes are asked for at once: as in [`DEFAULTS`], no more than a cache holds.
const FETCH: usize = 4 << 20;

const DEFAULTS: &[(&str, &str)] = &[
    ("isolation.level", "read_committed"),
    ("allow.auto.create.topics", "false"),
    // So soon is it known that the topic has got more partitions.
    ("topic.metadata.refresh.interval.ms", "10000"),
    // For all partitions together, as they share one queue. It is overshot by what is being fetched. No more
    // than a processor's cache holds: what is fetched is soon copied, and to copy what has left the cache
    // costs as much as all the rest. Over a long way, where an answer takes its time, more of both is better.
    ("queued.max.messages.kbytes", "8192"),
    // When the queue was full, a partition is left alone for this long. The default of a second is
    // longer than it takes to empty the queue.
    ("fetch.queue.backoff.ms", "1"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn config(properties: &[(&str, &str)]) -> ClientConfig {
        let mut settings = Settings::of("b");
        settings.properties = properties.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        ConsumerSettings::of(settings, "orders".parse().unwrap(), "payments").config()
    }

    #[test]
    fn a_user_may_set_anything_but_what_breaks_a_promise() {
        let users: Vec<_> = RESERVED.iter().map(|name| (*name, "theirs")).collect();
        let config = config(&[users, vec![("isolation.level", "read_uncommitted")]].concat());
        assert_eq!(config.get("isolation.level"), Some("read_uncommitted"));
        assert!(RESERVED.iter().all(|name| config.get(name) != Some("theirs")));
    }

    #[test]
    fn what_is_asked_for_at_once_holds_the_largest_record() {
        let asked =
            |properties: &[(&str, &str)]| config(properties).get("fetch.max.bytes").map(str::to_owned);
        assert_eq!(asked(&[]).as_deref(), Some("4194304"));
        assert_eq!(asked(&[("message.max.bytes", "9000000")]).as_deref(), Some("9000000"));
        let both = [("message.max.bytes", "9000000"), ("fetch.max.bytes", "20000000")];
        assert_eq!(asked(&both).as_deref(), Some("20000000"));
    }

    #[test]
    fn a_secret_reaches_librdkafka_as_it_is() {
        assert_eq!(config(&[("sasl.password", "hunter2")]).get("sasl.password"), Some("hunter2"));
    }

    #[test]
    fn a_member_polls_well_within_what_the_group_allows() {
        assert_eq!(heartbeat(&config(&[])), HEARTBEAT);
        assert_eq!(heartbeat(&config(&[("max.poll.interval.ms", "6000")])), Duration::from_millis(1_500));
    }

    #[test]
    fn the_new_protocol_is_not_told_how_to_assign() {
        assert_eq!(config(&[]).get("partition.assignment.strategy"), Some("cooperative-sticky"));
        let new = config(&[("group.protocol", "consumer"), ("partition.assignment.strategy", "range")]);
        assert_eq!(new.get("partition.assignment.strategy"), None);
    }
}
