//! Which topics a subscription uses besides its source, and what each must have.

use std::time::Duration;

use redrive_config::Subscription;
use redrive_core::duration;
use redrive_core::route::Strategy;
use redrive_core::{Class, Topic};
use redrive_kafka::TopicState;

/// What our headers may add to a record: texts are cut and histories bounded to stay well below it.
pub const HEADER_ROOM: i64 = 64 * 1024;
/// What a retry topic keeps beyond the longest wait, for a group that stands still over a holiday.
const STANDSTILL: Duration = Duration::from_secs(7 * 24 * 3_600);
/// The size of the files of a partition. What is cut off a log leaves the disk by whole files.
pub(super) const SEGMENT: &str = "segment.bytes";
/// What that is for a new shelf, unless a record may be larger.
const SMALL_SEGMENT: i64 = 8 << 20;
/// What Kafka assumes where its own answer cannot be read as a number.
const USUAL_MAX_MESSAGE_BYTES: i64 = 1_048_588;

/// What a topic is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Dead letters.
    Letters,
    /// Records that wait, for any time.
    Shelf,
    /// Records that wait for one delay.
    Rung(Duration),
    /// Records that wait to be sent back.
    Retry,
    /// Where the delay service sends them back to.
    Return,
    /// Records of any subscription that wait for one delay.
    Bucket(Duration),
}

/// A topic that a subscription uses besides its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Its name.
    pub topic: Topic,
    /// What for.
    pub role: Role,
}

/// Every topic that a subscription uses besides its source.
#[must_use]
pub fn uses(subscription: &Subscription) -> Vec<Use> {
    let one = |topic: &Topic, role| Use { topic: topic.clone(), role };
    let mut uses = vec![one(&subscription.letters, Role::Letters)];
    match &subscription.rules.strategy {
        Strategy::Shelf => uses.push(one(&subscription.shelf, Role::Shelf)),
        Strategy::Postgres => {}
        Strategy::Ladder(rungs) => {
            uses.extend(rungs.iter().map(|(delay, rung)| one(rung, Role::Rung(*delay))));
        }
        Strategy::Return(topic) => uses.push(one(topic, Role::Retry)),
        Strategy::Service { buckets, back } => {
            uses.push(one(back, Role::Return));
            uses.extend(buckets.iter().map(|(delay, bucket)| one(bucket, Role::Bucket(*delay))));
        }
    }
    uses
}

/// What a topic must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) topic: Topic,
    pub(super) role: Role,
    pub(super) source: Topic,
    pub(super) group: String,
    pub(super) partitions: i32,
    pub(super) replication: i16,
    pub(super) settings: Vec<Want>,
}

/// A setting of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) setting: &'static str,
    pub(super) must: Must,
    /// What a new topic is given.
    pub(super) given: String,
    pub(super) why: String,
}

/// What is accepted of a topic that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Must {
    /// This value alone.
    Be(&'static str),
    /// So much or more.
    Reach(Amount),
    /// The same, where the cluster has such a setting.
    ReachIfTold(Amount),
    /// No more than the replicas there are, or nothing could be written.
    ReachWithinReplication(i64),
    /// Anything: it is the operator's choice, and less than this is told.
    Rather(Amount),
    /// Anything.
    BeAsItIs,
}

/// A number of Kafka's, whose -1 is more than all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Amount {
    Of(i64),
    Unlimited,
}

impl Amount {
    pub(super) fn read(text: &str) -> Option<Self> {
        let number = text.trim().parse().ok()?;
        Some(if number < 0 { Self::Unlimited } else { Self::Of(number) })
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Of(number) => number.to_string(),
            Self::Unlimited => "-1".to_owned(),
        }
    }
}

impl Wanted {
    /// What a topic must have, given the source as it is.
    pub(super) fn of(used: &Use, subscription: &Subscription, source: &TopicState) -> Self {
        let mut settings = vec![largest_record(source), fewest_in_sync(source)];
        settings.extend(match used.role {
            Role::Letters => letters(),
            Role::Shelf => shelf(source),
            Role::Rung(_) | Role::Retry | Role::Return | Role::Bucket(_) => retries(subscription),
        });
        Self {
            topic: used.topic.clone(),
            role: used.role,
            source: subscription.topic.clone(),
            group: subscription.group.clone(),
            partitions: source.partitions,
            replication: source.replication,
            settings,
        }
    }

    /// What two subscriptions want of a topic that they share.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.partitions = self.partitions.max(other.partitions);
        self.replication = self.replication.max(other.replication);
        for (want, theirs) in self.settings.iter_mut().zip(&other.settings) {
            if theirs.must.is_more_than(&want.must) {
                *want = theirs.clone();
            }
        }
        self
    }

    /// Why there has to be such a topic.
    pub(super) fn purpose(&self) -> String {
        let group = &self.group;
        match self.role {
            Role::Letters => format!("dead letters of {group} go there"),
            Role::Shelf => format!("records of {group} wait there"),
            Role::Rung(delay) | Role::Bucket(delay) => {
                format!("records of {group} wait there for {}", duration::print(delay))
            }
            Role::Retry => format!("records of {group} wait there before they are sent back"),
            Role::Return => format!("records of {group} come back there"),
        }
    }
}

impl Must {
    /// Of two demands of one kind.
    fn is_more_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Reach(this), Self::Reach(other))
            | (Self::ReachIfTold(this), Self::ReachIfTold(other))
            | (Self::Rather(this), Self::Rather(other)) => this > other,
            (Self::ReachWithinReplication(this), Self::ReachWithinReplication(other)) => this > other,
            (
                Self::Be(_)
                | Self::Reach(_)
                | Self::ReachIfTold(_)
                | Self::ReachWithinReplication(_)
                | Self::Rather(_)
                | Self::BeAsItIs,
                _,
            ) => false,
        }
    }
}

/// What a source accepts, and what a copy of it with our headers may take.
fn sizes(source: &TopicState) -> (i64, i64) {
    let accepted = number(source, "max.message.bytes").unwrap_or(USUAL_MAX_MESSAGE_BYTES);
    (accepted, accepted.saturating_add(HEADER_ROOM).min(i64::from(i32::MAX)))
}

fn largest_record(source: &TopicState) -> Want {
    let (accepted, least) = sizes(source);
    Want {
        setting: "max.message.bytes",
        must: Must::Reach(Amount::Of(least)),
        given: least.to_string(),
        why: format!("{} accepts {accepted} bytes, and our headers come on top", source.name),
    }
}

fn fewest_in_sync(source: &TopicState) -> Want {
    let least = number(source, "min.insync.replicas").unwrap_or(1);
    Want {
        setting: "min.insync.replicas",
        must: Must::ReachWithinReplication(least),
        given: least.to_string(),
        why: format!("{} has {least}, and a copy is no less safe than its original", source.name),
    }
}

fn letters() -> Vec<Want> {
    let kept = |setting| Want {
        setting,
        must: Must::Rather(Amount::Unlimited),
        given: "-1".to_owned(),
        why: "letters are kept until someone removes them".to_owned(),
    };
    let cleanup = Want {
        setting: "cleanup.policy",
        must: Must::BeAsItIs,
        given: "delete".to_owned(),
        why: "every letter is kept".to_owned(),
    };
    vec![cleanup, kept("retention.ms"), kept("retention.bytes")]
}

fn shelf(source: &TopicState) -> Vec<Want> {
    let (_, largest) = sizes(source);
    let segment = Want {
        setting: SEGMENT,
        must: Must::ReachIfTold(Amount::Of(largest)),
        given: SMALL_SEGMENT.max(largest).to_string(),
        why: "a segment has to hold the largest record".to_owned(),
    };
    let kept = |setting| Want {
        setting,
        must: Must::Reach(Amount::Unlimited),
        given: "-1".to_owned(),
        why: "what waits is removed by its owner alone, when it is done".to_owned(),
    };
    vec![
        be("cleanup.policy", "delete", "compaction would remove records that wait"),
        kept("retention.ms"),
        kept("retention.bytes"),
        be("message.timestamp.type", "LogAppendTime", "due times are measured by the broker's clock"),
        segment,
    ]
}

/// How long a record may wait in all; without end if there is none.
pub(super) fn longest_wait(subscription: &Subscription) -> Option<Duration> {
    let policy = &subscription.rules.policies[Class::NotReady];
    // A wait that a failure asks for may be longer than the policy's own, up to its end.
    policy.total().map(|total| total.max(policy.within().unwrap_or_default()))
}

fn retries(subscription: &Subscription) -> Vec<Want> {
    let longest = longest_wait(subscription);
    let millis = |time: Duration| Amount::Of(i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    let (least, given, why) = match longest {
        Some(longest) => {
            let why = format!("records may wait for {} in all", duration::print(longest));
            (millis(longest), millis(longest.saturating_add(STANDSTILL)), why)
        }
        None => (Amount::Unlimited, Amount::Unlimited, "records may wait without end".to_owned()),
    };
    vec![
        be("cleanup.policy", "delete", "compaction would remove records that wait"),
        Want { setting: "retention.ms", must: Must::Reach(least), given: given.text(), why },
        Want {
            setting: "retention.bytes",
            must: Must::Reach(Amount::Unlimited),
            given: "-1".to_owned(),
            why: "how many records wait must not decide how long".to_owned(),
        },
        be(
            "message.timestamp.type",
            "LogAppendTime",
            "retention counts from when a record began to wait, not from when it was first produced",
        ),
    ]
}

fn be(setting: &'static str, value: &'static str, why: &str) -> Want {
    Want { setting, must: Must::Be(value), given: value.to_owned(), why: why.to_owned() }
}

fn number(topic: &TopicState, setting: &str) -> Option<i64> {
    topic.settings.get(setting)?.value.trim().parse().ok()
}
