//! Looks at a cluster's topics and changes them: what there is, what is made, what is altered.
//!
//! Every call waits for the broker on a thread that may wait, never on the runtime, and gives up in
//! time. Asking for a topic never makes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ConfigSource, OwnedResourceSpecifier, ResourceSpecifier};
use rdkafka::client::{Client, DefaultClientContext};
use rdkafka::groups::GroupMemberInfo;
use rdkafka::{Offset, TopicPartitionList};
use redrive_core::{Origin, Topic};
use tokio::runtime::Handle;

use crate::group::{GroupState, Member, assignment};
use crate::native::admin as native;
use crate::refusal::Refused;
use crate::topic_id::TopicId;
use crate::{Error, Settings};

/// How long a broker may take to answer; a cluster that cannot be reached is told after it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a change is looked for that takes its time.
const TURN: Duration = Duration::from_millis(50);

/// A topic as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicState {
    /// Its name.
    pub name: Topic,
    /// Its id; brokers before 2.8 have none.
    pub id: Option<TopicId>,
    /// How many partitions it has.
    pub partitions: i32,
    /// How many replicas each partition has; where they differ, the least.
    pub replication: i16,
    /// The settings that hold, those of the cluster included.
    pub settings: BTreeMap<String, Setting>,
}

/// The value of a setting that holds for a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The value.
    pub value: String,
    /// Who set it.
    pub set_for: SetFor,
}

/// Whom a setting was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetFor {
    /// This topic.
    Topic,
    /// All topics: by the cluster's own settings, or by nobody.
    All,
}

/// A cluster as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterState {
    /// Its id; very old brokers have none.
    pub id: Option<String>,
    /// How many brokers are up.
    pub brokers: usize,
}

/// Looks at topics and changes them.
pub struct Admin {
    // Taken when dropped.
    client: Option<Arc<AdminClient<DefaultClientContext>>>,
    brokers: String,
}

impl Admin {
    /// A client; connections are made when they are needed.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let client = settings.client().create();
        let brokers = settings.brokers.clone();
        match client {
            Ok(client) => Ok(Self { client: Some(Arc::new(client)), brokers }),
            Err(source) => Err(Error::Client { brokers, source }),
        }
    }

    /// The cluster's id and size.
    pub async fn cluster(&self) -> Result<ClusterState, Error> {
        let asked = self.wait(|client| {
            let metadata = client.fetch_metadata(None, PATIENCE)?;
            let id = client.fetch_cluster_id(PATIENCE);
            Ok(ClusterState { id, brokers: metadata.brokers().len() })
        });
        asked.await.map_err(|source| self.failed(source, |source| Error::List { source }))
    }

    /// The names of all topics that may be seen.
    pub async fn topics(&self) -> Result<BTreeSet<Topic>, Error> {
        let asked = self.wait(|client| {
            let metadata = client.fetch_metadata(None, PATIENCE)?;
            // A name that we would not accept is none that we made.
            Ok(metadata.topics().iter().filter_map(|topic| topic.name().parse().ok()).collect())
        });
        asked.await.map_err(|source| self.failed(source, |source| Error::List { source }))
    }

    /// These topics with their settings, by name. What is not in the answer does not exist.
    pub async fn describe(&self, topics: &[Topic]) -> Result<BTreeMap<Topic, TopicState>, Error> {
        let mut found = self.outline(topics).await?;
        let names: Vec<Topic> = found.keys().cloned().collect();
        for (name, settings) in self.settings(&names).await? {
            match (settings, found.get_mut(&name)) {
                (Some(settings), Some(topic)) => topic.settings = settings,
                // Deleted in between.
                (None, _) => drop(found.remove(&name)),
                (Some(_), None) => {}
            }
        }
        Ok(found)
    }

    /// These topics without their settings, by name: one request, cheap enough to repeat. What is not
    /// in the answer does not exist.
    pub async fn outline(&self, topics: &[Topic]) -> Result<BTreeMap<Topic, TopicState>, Error> {
        self.outline_within(topics, PATIENCE).await
    }

    /// The same, for one who would rather know nothing than wait for long. While a broker is away librdkafka may be busy
    /// with nothing but waiting for it.
    pub async fn outline_within(
        &self,
        topics: &[Topic],
        patience: Duration,
    ) -> Result<BTreeMap<Topic, TopicState>, Error> {
        let names: BTreeSet<Topic> = topics.iter().cloned().collect();
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let asked = self.wait(move |client| {
            let names: Vec<&str> = names.iter().map(Topic::as_str).collect();
            native::describe(client, &names, patience)
        });
        let described = asked.await.map_err(|source| {
            self.failed(source, |source| Error::Describe { topics: listed(topics), source })
        })?;
        let mut found = BTreeMap::new();
        for (name, layout) in described {
            let name: Topic = name.parse()?;
            match layout {
                Ok(layout) => drop(found.insert(name.clone(), outlined(name, &layout))),
                Err(refusal) if refusal.is_missing() => {}
                Err(source) => return Err(Error::Describe { topics: name.to_string(), source }),
            }
        }
        Ok(found)
    }

    async fn settings(&self, topics: &[Topic]) -> Result<Vec<(Topic, Option<SettingsOf>)>, Error> {
        if topics.is_empty() {
            return Ok(Vec::new());
        }
        let failed =
            |source, topics: String| self.failed(source, |source| Error::Settings { topics, source });
        let resources: Vec<_> = topics.iter().map(|topic| ResourceSpecifier::Topic(topic.as_str())).collect();
        let answers = self.client().describe_configs(&resources, &options()).await;
        let answers = answers.map_err(|error| failed(error.into(), listed(topics)))?;
        let mut settings = Vec::new();
        // Answers come in the order of the questions; one that is refused no longer has its name.
        for (topic, answer) in topics.iter().zip(answers) {
            let refused = match answer {
                Ok(resource) => {
                    let OwnedResourceSpecifier::Topic(name) = resource.specifier else { continue };
                    settings.push((name.parse()?, Some(entries(resource.entries))));
                    continue;
                }
                Err(code) => Refused::from_code(code),
            };
            if !refused.is_missing() {
                return Err(failed(refused, topic.to_string()));
            }
            settings.push((topic.clone(), None));
        }
        Ok(settings)
    }

    /// Makes a topic, and waits until it can be seen.
    pub async fn create(
        &self,
        topic: &Topic,
        partitions: i32,
        replication: i16,
        settings: &BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let (name, settings) = (topic.clone(), settings.clone());
        let asked = self.wait(move |client| {
            native::create(client, name.as_str(), (partitions, replication), &settings, PATIENCE)
        });
        asked.await.map_err(|source| self.unchanged("create", topic, source))?;
        // It is made, seen or not: whoever looks next finds out.
        let _ = tokio::time::timeout(PATIENCE, self.is_seen(topic)).await;
        Ok(())
    }

    /// Brokers learn of a topic only after its maker has.
    async fn is_seen(&self, topic: &Topic) -> Result<(), Error> {
        let mut turns = tokio::time::interval(TURN);
        loop {
            turns.tick().await;
            if self.outline(std::slice::from_ref(topic)).await?.contains_key(topic) {
                return Ok(());
            }
        }
    }

    /// Gives a topic so many partitions in all; never fewer than it has.
    pub async fn add_partitions(&self, topic: &Topic, total: i32) -> Result<(), Error> {
        let name = topic.clone();
        let asked = self.wait(move |client| native::grow(client, name.as_str(), total, PATIENCE));
        asked.await.map_err(|source| self.unchanged("add partitions to", topic, source))
    }

    /// Sets these settings and leaves all others as they are.
    pub async fn alter(&self, topic: &Topic, settings: &BTreeMap<String, String>) -> Result<(), Error> {
        let (name, settings) = (topic.clone(), settings.clone());
        let asked = self.wait(move |client| native::alter(client, name.as_str(), &settings, PATIENCE));
        asked.await.map_err(|source| self.unchanged("change the settings of", topic, source))
    }

    /// Deletes the records of a partition below an offset; the offset at which it now begins.
    pub async fn delete_records(&self, below: &Origin) -> Result<i64, Error> {
        let failed = |source| self.unchanged("delete records of", &below.topic, source);
        let mut offsets = TopicPartitionList::new();
        let to = if below.offset < 0 { Offset::End } else { Offset::Offset(below.offset) };
        offsets
            .add_partition_offset(below.topic.as_str(), below.partition, to)
            .map_err(|error| failed(error.into()))?;
        let deleted = self.client().delete_records(&offsets, &options()).await;
        let deleted = deleted.map_err(|error| failed(error.into()))?;
        let partition = deleted.find_partition(below.topic.as_str(), below.partition);
        let partition = partition.ok_or_else(|| failed(Refused::of("no answer for the partition")))?;
        partition.error().map_err(|error| failed(error.into()))?;
        match partition.offset() {
            Offset::Offset(begins) => Ok(begins),
            _ => Ok(below.offset),
        }
    }

    /// The first offset and the end of each partition of a topic of so many. A request for each partition.
    pub async fn bounds(&self, topic: &Topic, partitions: i32) -> Result<Vec<(i64, i64)>, Error> {
        let name = topic.clone();
        let asked = self.wait(move |client| {
            let bounds = |partition| Ok(client.fetch_watermarks(name.as_str(), partition, PATIENCE)?);
            (0..partitions).map(bounds).collect()
        });
        asked.await.map_err(|source| self.unchanged("find the ends of", topic, source))
    }

    /// How many offsets a topic of so many partitions spans: its records, unless it is compacted or
    /// transactions wrote their marks. A request for each partition.
    pub async fn span(&self, topic: &Topic, partitions: i32) -> Result<u64, Error> {
        let name = topic.clone();
        let asked = self.wait(move |client| {
            (0..partitions).try_fold(0, |sum, partition| {
                let (begins, ends) = client.fetch_watermarks(name.as_str(), partition, PATIENCE)?;
                Ok(sum + u64::try_from(ends - begins).unwrap_or(0))
            })
        });
        asked.await.map_err(|source| self.unchanged("count the records of", topic, source))
    }

    /// Who is in a group; nobody if there is no such group.
    pub async fn group(&self, group: &str) -> Result<GroupState, Error> {
        let name = group.to_owned();
        let asked = self.wait(move |client| {
            let list = client.fetch_group_list(Some(&name), PATIENCE)?;
            let found = list.groups().iter().find(|one| one.name() == name).map(|one| GroupState {
                state: one.state().to_owned(),
                members: one.members().iter().map(member).collect(),
            });
            Ok(found.unwrap_or_else(|| GroupState { state: "Dead".to_owned(), members: Vec::new() }))
        });
        let group = group.to_owned();
        asked.await.map_err(|source| self.failed(source, |source| Error::Group { group, source }))
    }

    /// The groups with a member that reads this topic, as far as we may know them. Asks every broker.
    pub async fn readers(&self, topic: &Topic) -> Result<BTreeSet<String>, Error> {
        let name = topic.as_str().to_owned();
        let asked = self.wait(move |client| {
            let list = client.fetch_group_list(None, PATIENCE)?;
            let reads = |info: &GroupMemberInfo| {
                member(info).assignment.is_some_and(|assigned| assigned.contains_key(&name))
            };
            let groups = list.groups().iter().filter(|group| group.members().iter().any(reads));
            Ok(groups.map(|group| group.name().to_owned()).collect())
        });
        asked.await.map_err(|source| self.unchanged("find the groups that read", topic, source))
    }

    fn client(&self) -> &Arc<AdminClient<DefaultClientContext>> {
        self.client.as_ref().expect("taken only when dropped")
    }

    /// Does what blocks where it may.
    async fn wait<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Client<DefaultClientContext>) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, Refused> {
        let client = self.client().clone();
        let done = tokio::task::spawn_blocking(move || work(client.inner())).await;
        done.unwrap_or_else(|_| Err(Refused::of("interrupted")))
    }

    fn unchanged(&self, deed: &'static str, topic: &Topic, source: Refused) -> Error {
        let topic = topic.clone();
        self.failed(source, |source| Error::Change { deed, topic, source })
    }

    /// A cluster that cannot be reached is told as such, whatever was asked of it.
    fn failed(&self, source: Refused, otherwise: impl FnOnce(Refused) -> Error) -> Error {
        let complaint = native::last_complaint(self.client().inner());
        if !source.is_out_of_reach() {
            return otherwise(source);
        }
        Error::Unreachable { brokers: self.brokers.clone(), source: source.because(complaint) }
    }
}

/// Ending a client waits for its threads, which must not be the runtime's wait.
impl Drop for Admin {
    fn drop(&mut self) {
        let client = self.client.take();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(client));
        }
    }
}

type SettingsOf = BTreeMap<String, Setting>;

fn member(info: &GroupMemberInfo) -> Member {
    Member {
        client_id: info.client_id().to_owned(),
        host: info.client_host().to_owned(),
        assignment: assignment(info.assignment().unwrap_or_default()),
    }
}

fn outlined(name: Topic, layout: &native::Layout) -> TopicState {
    let native::Layout { id, partitions, replication } = *layout;
    TopicState { name, id, partitions, replication, settings: BTreeMap::new() }
}

fn entries(entries: Vec<rdkafka::admin::ConfigEntry>) -> SettingsOf {
    let setting = |entry: rdkafka::admin::ConfigEntry| {
        let set_for = match entry.source {
            ConfigSource::DynamicTopic => SetFor::Topic,
            ConfigSource::Unknown if !entry.is_default => SetFor::Topic,
            ConfigSource::Unknown
            | ConfigSource::DynamicBroker
            | ConfigSource::DynamicDefaultBroker
            | ConfigSource::StaticBroker
            | ConfigSource::Default => SetFor::All,
        };
        Some((entry.name, Setting { value: entry.value?, set_for }))
    };
    entries.into_iter().filter_map(setting).collect()
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(PATIENCE))
}

fn listed(topics: &[Topic]) -> String {
    topics.iter().map(Topic::as_str).collect::<Vec<_>>().join(", ")
}
