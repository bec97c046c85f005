//! Compares what the subscriptions want with what was found: steps, each with its reason.

use std::collections::BTreeMap;
use std::fmt;

use redrive_config::Subscription;
use redrive_core::Topic;
use redrive_kafka::TopicState;

use super::found::{Found, is_compacted};
use super::left_behind::left_behind;
use super::pointers;
use super::wanted::{Amount, Must, Want, Wanted, uses};

/// What is to be done, and what is worth knowing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// What is not as it must be, in the order in which it is mended.
    pub steps: Vec<Step>,
    /// What may stay as it is.
    pub notes: Vec<Note>,
}

/// A topic that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Which.
    pub topic: Topic,
    /// What mends it.
    pub change: Change,
    /// Why it must be so.
    pub why: String,
}

/// What mends a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is made.
    Create {
        /// With so many partitions.
        partitions: i32,
        /// With so many replicas of each.
        replication: i16,
        /// With these settings of its own.
        settings: BTreeMap<String, String>,
    },
    /// It gets more partitions.
    AddPartitions {
        /// As many as it has.
        from: i32,
        /// As many as it gets.
        to: i32,
    },
    /// One of its settings is changed, and no other.
    Alter {
        /// Which.
        setting: String,
        /// The value that holds; `None` if the cluster told none.
        from: Option<String>,
        /// The value that it gets.
        to: String,
    },
    /// Only the operator can mend it.
    Cannot {
        /// How.
        remedy: String,
    },
}

/// Something that may stay as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Letters are deleted after a time, or above a size: the operator's choice.
    LettersAreDeleted {
        /// Which topic.
        topic: Topic,
        /// By which setting.
        setting: String,
        /// Its value.
        value: String,
    },
    /// Letters are filed under their origins, since their topic is compacted.
    LettersAreCompacted {
        /// Which topic.
        topic: Topic,
        /// Its policy.
        policy: String,
    },
    /// A topic has partitions that are not used.
    MorePartitions {
        /// Which topic.
        topic: Topic,
        /// How many it has.
        partitions: i32,
        /// Its source.
        source: Topic,
        /// How many that has.
        of_source: i32,
    },
    /// A topic looks like one of ours, and no subscription uses it.
    LeftBehind {
        /// Which topic.
        topic: Topic,
        /// The group in its name.
        group: String,
        /// Whether the configuration knows the group.
        group_is_known: bool,
        /// How many records it holds, where it was cheap to know.
        records: Option<u64>,
    },
}

impl Plan {
    /// Whether everything is as it must be.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.steps.is_empty()
    }

    /// The steps that we can take.
    pub fn doable(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_doable())
    }
}

impl Step {
    /// Whether we can take it.
    #[must_use]
    pub fn is_doable(&self) -> bool {
        match self.change {
            Change::Create { .. } | Change::AddPartitions { .. } | Change::Alter { .. } => true,
            Change::Cannot { .. } => false,
        }
    }
}

/// What it takes for the topics of the subscriptions to be as they must be. Pure: what was found is
/// an argument, and carrying out the steps and planning again leaves none that we can take.
#[must_use]
pub fn plan(subscriptions: &[Subscription], found: &Found) -> Plan {
    let mut plan = Plan::default();
    let mut wanted: Vec<Wanted> = Vec::new();
    for subscription in subscriptions {
        let Some(source) = found.topics.get(&subscription.topic) else {
            plan.missing_source(subscription);
            continue;
        };
        plan.steps.extend(pointers::steps(subscription, source));
        for used in uses(subscription) {
            let next = Wanted::of(&used, subscription, source);
            match wanted.iter().position(|other| other.topic == next.topic) {
                Some(shared) => wanted[shared] = wanted[shared].clone().and(&next),
                None => wanted.push(next),
            }
        }
    }
    for wanted in &wanted {
        match found.topics.get(&wanted.topic) {
            None => plan.steps.push(create(wanted)),
            Some(topic) => plan.compare(wanted, topic),
        }
    }
    plan.shared_letters(subscriptions, found);
    plan.left_behind(subscriptions, found);
    plan
}

fn create(wanted: &Wanted) -> Step {
    let given = |want: &Want| match want.must {
        Must::ReachWithinReplication(least) => least.min(wanted.replication.into()).to_string(),
        Must::Be(_) | Must::Reach(_) | Must::ReachIfTold(_) | Must::Rather(_) | Must::BeAsItIs => {
            want.given.clone()
        }
    };
    let settings = wanted.settings.iter().map(|want| (want.setting.to_owned(), given(want)));
    Step {
        topic: wanted.topic.clone(),
        change: Change::Create {
            partitions: wanted.partitions,
            replication: wanted.replication,
            settings: settings.collect(),
        },
        why: wanted.purpose(),
    }
}

impl Plan {
    fn missing_source(&mut self, subscription: &Subscription) {
        let topic = subscription.topic.clone();
        if self.steps.iter().any(|step| step.topic == topic) {
            return;
        }
        let remedy = format!(
            "correct `topic`, or make it: kafka-topics.sh --bootstrap-server ADDRESS --create --topic {topic} --partitions NUMBER"
        );
        let why = format!("{} consumes it, and it does not exist", subscription.group);
        self.steps.push(Step { topic, change: Change::Cannot { remedy }, why });
    }

    fn compare(&mut self, wanted: &Wanted, topic: &TopicState) {
        let step = |change, why| Step { topic: wanted.topic.clone(), change, why };
        if topic.replication < wanted.replication {
            self.steps.push(step(more_replicas(wanted), less_safe(wanted, topic)));
        }
        let (from, to) = (topic.partitions, wanted.partitions);
        if from < to {
            let why = format!("{} has {to}, and a record keeps its partition", wanted.source);
            self.steps.push(step(Change::AddPartitions { from, to }, why));
        }
        if from > to {
            self.notes.push(Note::MorePartitions {
                topic: wanted.topic.clone(),
                partitions: from,
                source: wanted.source.clone(),
                of_source: to,
            });
        }
        for want in &wanted.settings {
            self.compare_setting(wanted, want, topic);
        }
    }

    fn compare_setting(&mut self, wanted: &Wanted, want: &Want, topic: &TopicState) {
        let holds = topic.settings.get(want.setting).map(|setting| setting.value.clone());
        let amount = holds.as_deref().and_then(Amount::read);
        let reaches = |least: Amount| amount.is_some_and(|amount| amount >= least);
        let to = match &want.must {
            Must::Be(value) => (holds.as_deref() != Some(value)).then(|| (*value).to_owned()),
            Must::Reach(least) => (!reaches(*least)).then(|| want.given.clone()),
            Must::ReachIfTold(least) => {
                amount.is_some_and(|amount| amount < *least).then(|| want.given.clone())
            }
            Must::ReachWithinReplication(least) => {
                let least = Amount::Of((*least).min(topic.replication.into()));
                (!reaches(least)).then(|| least.text())
            }
            Must::Rather(least) => {
                // Where a topic is only compacted, its retention deletes nothing.
                let value = holds.clone().filter(|_| !reaches(*least) && deletes(topic));
                self.notes.extend(value.map(|value| Note::LettersAreDeleted {
                    topic: wanted.topic.clone(),
                    setting: want.setting.to_owned(),
                    value,
                }));
                None
            }
            Must::BeAsItIs => {
                let policy = holds.clone().filter(|_| is_compacted(topic));
                self.notes.extend(
                    policy.map(|policy| Note::LettersAreCompacted { topic: wanted.topic.clone(), policy }),
                );
                None
            }
        };
        let Some(to) = to else { return };
        let change = Change::Alter { setting: want.setting.to_owned(), from: holds, to };
        self.steps.push(Step { topic: wanted.topic.clone(), change, why: want.why.clone() });
    }

    /// Letters of two groups about one record have the same origin: in a compacted topic one would remove the other.
    fn shared_letters(&mut self, subscriptions: &[Subscription], found: &Found) {
        for (at, one) in subscriptions.iter().enumerate() {
            let others = subscriptions.iter().take(at);
            let mut shared = others.filter(|other| other.letters == one.letters && other.topic == one.topic);
            let is_compacted = found.topics.get(&one.letters).is_some_and(is_compacted);
            let Some(other) = shared.next().filter(|_| is_compacted) else { continue };
            let (topic, remedy) = (
                one.letters.clone(),
                "give each a topic of its own, or set cleanup.policy=delete".to_owned(),
            );
            let why = format!(
                "it is compacted and has letters of {} and {}: those of one record would remove each other",
                other.group, one.group
            );
            self.steps.push(Step { topic, change: Change::Cannot { remedy }, why });
        }
    }

    fn left_behind(&mut self, subscriptions: &[Subscription], found: &Found) {
        for left in left_behind(subscriptions, &found.names) {
            let group_is_known = subscriptions.iter().any(|subscription| subscription.group == left.group);
            let records = found.records.get(&left.topic).copied();
            self.notes.push(Note::LeftBehind {
                topic: left.topic,
                group: left.group,
                group_is_known,
                records,
            });
        }
    }
}

fn deletes(topic: &TopicState) -> bool {
    topic.settings.get("cleanup.policy").is_none_or(|policy| policy.value.contains("delete"))
}

fn less_safe(wanted: &Wanted, topic: &TopicState) -> String {
    let (has, source) = (topic.replication, &wanted.source);
    format!(
        "it has {has} of {source}'s {} replicas, and a copy is no less safe than its original",
        wanted.replication
    )
}

fn more_replicas(wanted: &Wanted) -> Change {
    let (topic, replicas) = (&wanted.topic, wanted.replication);
    let remedy = format!(
        "kafka-reassign-partitions.sh --bootstrap-server ADDRESS --execute --reassignment-json-file FILE, where FILE gives each partition of {topic} {replicas} replicas"
    );
    Change::Cannot { remedy }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, change, why } = self;
        match change {
            Change::Create { .. } => write!(f, "{topic} does not exist: {why}"),
            Change::AddPartitions { from, to } => {
                write!(f, "{topic} has {from} partitions and must have {to}: {why}")
            }
            Change::Alter { setting, from: Some(from), to } => {
                write!(f, "{topic} has {setting}={from} and must have {to}: {why}")
            }
            Change::Alter { setting, from: None, to } => {
                write!(f, "{topic} must have {setting}={to}: {why}")
            }
            Change::Cannot { remedy } => write!(f, "{topic}: {why}; {remedy}"),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LettersAreDeleted { topic, setting, value } => write!(
                f,
                "{topic} has {setting}={value}: dead letters are deleted unseen; {setting}=-1 keeps them"
            ),
            Self::LettersAreCompacted { topic, policy } => write!(
                f,
                "{topic} has cleanup.policy={policy}: letters are filed there under their origins, with the original key in redrive-key; those written before it was so have other keys, and Kafka may remove all but the last of a key"
            ),
            Self::MorePartitions { topic, partitions, source, of_source } => write!(
                f,
                "{topic} has {partitions} partitions and {source} {of_source}: those above are not used"
            ),
            Self::LeftBehind { topic, group, group_is_known, records } => {
                write!(f, "{topic} is used by no subscription here: ")?;
                if *group_is_known {
                    write!(f, "{group} once waited in another way")?;
                } else {
                    write!(f, "left behind by an old group name {group}, or of another file")?;
                }
                match records {
                    Some(records) => write!(f, "; about {records} records"),
                    None => Ok(()),
                }
            }
        }
    }
}
