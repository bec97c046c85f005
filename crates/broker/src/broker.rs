//! The broker as its owner sees it: started with a configuration, asked for its address, told to stop.
//! It stops when it is dropped, too, but then what is in hand is cut off.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
#[cfg(feature = "faults")]
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tracing::info;

use crate::config::BrokerConfig;
use crate::error::Error;
use crate::node::{self, Node, TopicOutcome};
#[cfg(feature = "faults")]
use crate::{clock, config::Data};
use crate::{server, tidy};

/// A broker that runs.
#[derive(Debug)]
pub struct Broker {
    address: SocketAddr,
    node: Arc<Node>,
    stop: watch::Sender<bool>,
    cut: watch::Sender<u64>,
    server: JoinHandle<()>,
    /// Ends its tasks when it is dropped.
    background: JoinSet<()>,
}

impl Broker {
    /// Opens the data and listens. When this returns, clients can connect.
    pub async fn start(config: BrokerConfig) -> Result<Broker, Error> {
        let address = config.listen;
        if !address.ip().is_loopback() && !config.allow_remote {
            return Err(Error::Remote { address });
        }
        let node = Arc::new(Node::open(config)?);
        Broker::serve(node, address).await
    }

    async fn serve(node: Arc<Node>, address: SocketAddr) -> Result<Broker, Error> {
        let failed = |source| Error::Listen { address, source };
        let listener = listen(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = watch::channel(false);
        let (cut, cuts) = watch::channel(0);
        let mut background = JoinSet::new();
        background.spawn(tidy::retain_from_time_to_time(node.clone()));
        background.spawn(tidy::compact_from_time_to_time(node.clone()));
        background.spawn(node.groups.clone().run());
        background.spawn(node::expire_transactions(node.clone()));
        background.spawn(node::finish_transactions(node.clone()));
        let server = tokio::spawn(server::run(listener, node.clone(), stopped, cuts));
        info!(%address, cluster = node.cluster_id, "the broker listens");
        Ok(Broker { address, node, stop, cut, server, background })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The id of the cluster; with a data directory it stays the same for ever.
    pub fn cluster_id(&self) -> &str {
        &self.node.cluster_id
    }

    /// Makes a topic unless one of that name is there. One with fewer partitions is given more; one with
    /// more is an error, because they cannot be taken away.
    pub fn create_topic(&self, name: &str, partitions: i32) -> Result<TopicOutcome, Error> {
        self.node.create_topic(name, partitions)
    }

    /// Stops: requests in hand are finished, connections closed, everything forced onto the disk,
    /// the data directory released.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        let _ = (&mut self.server).await;
        self.background.shutdown().await;
        self.node.close();
        info!(address = %self.address, "the broker has stopped");
    }

    /// Removes what the topics' retention no longer keeps, as of `now` (milliseconds since 1970).
    pub fn retain(&self, now: i64) {
        tidy::retain(&self.node, now);
    }

    /// Compacts every topic that is to be compacted, as of `now`, whatever the share that is dirty. The
    /// active segments are closed first.
    pub fn compact(&self, now: i64) {
        tidy::compact(&self.node, now, tidy::Demand::Now);
    }

    /// Closes every connection; clients come back by themselves.
    pub fn close_connections(&self) {
        self.cut.send_modify(|count| *count += 1);
    }
}

/// How much of an answer may lie between the broker and a client. The operating system would let it grow to
/// megabytes; a reader then comes to bytes that have left the processor's caches, and reads a third slower.
const SEND_BUFFER: u32 = 128 << 10;

/// Connections have the send buffer of the socket that accepts them.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    /// Connections that wait to be accepted, as many as tokio allows by itself.
    const BACKLOG: u32 = 1024;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(feature = "faults")]
impl Broker {
    /// The faults on order.
    pub fn faults(&self) -> crate::faults::Faults {
        self.node.faults.clone()
    }

    /// Dies and starts again on the same address: connections break, requests in hand are cut off, and
    /// what was not written is gone, as with `kill -9`. In memory the data stays; members of groups do too.
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.server.abort();
        let _ = (&mut self.server).await;
        self.background.shutdown().await;
        let node = match self.node.config.data {
            Data::Memory => self.node.clone(),
            Data::Dir(_) => self.reopened().await?,
        };
        *self = Broker::serve(node, self.address).await?;
        Ok(())
    }

    /// The state as the directory has it. The old one must be let go first, by whoever still holds it.
    async fn reopened(&mut self) -> Result<Arc<Node>, Error> {
        const TURNS: u32 = 500;
        let (config, faults) = (self.node.config.clone(), self.node.faults.clone());
        let empty = BrokerConfig { data: Data::Memory, ..config.clone() };
        self.node = Arc::new(Node::open(empty)?);
        for turn in 0.. {
            match Node::open(config.clone()) {
                Ok(mut node) => {
                    node.faults = faults;
                    return Ok(Arc::new(node));
                }
                Err(Error::InUse { .. }) if turn < TURNS => clock::sleep(Duration::from_millis(10)).await,
                Err(error) => return Err(error),
            }
        }
        unreachable!("left by a return")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.server.abort();
    }
}
