//! The server: a listener, and a task for each connection. Connections come in, requests go to the
//! APIs; nothing that one client does may stop another's.

mod connection;
mod frame;
pub(crate) mod guard;
pub(crate) mod reply;
pub(crate) mod versions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::warn;

use crate::clock;
use crate::node::Node;
use crate::sync::set;

/// How long requests in hand may take when the broker stops.
const GRACE: Duration = Duration::from_secs(2);

/// Accepts connections until told to stop, then lets the requests in hand finish.
pub(crate) async fn run(
    listener: TcpListener,
    node: Arc<Node>,
    mut stop: watch::Receiver<bool>,
    mut cut: watch::Receiver<u64>,
) {
    let mut connections = JoinSet::new();
    let theirs = stop.clone();
    loop {
        tokio::select! {
            () = set(&mut stop) => break,
            _ = cut.changed() => connections.abort_all(),
            accepted = listener.accept() => accept(accepted, &node, &theirs, &mut connections).await,
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, drained).await.is_err() {
        connections.shutdown().await;
    }
}

async fn accept(
    accepted: std::io::Result<(tokio::net::TcpStream, SocketAddr)>,
    node: &Arc<Node>,
    stop: &watch::Receiver<bool>,
    connections: &mut JoinSet<()>,
) {
    match accepted {
        Ok((stream, peer)) => {
            drop(connections.spawn(connection::serve(stream, peer, node.clone(), stop.clone())));
        }
        Err(cause) => {
            // Too many open files, most likely: let some close before the next try.
            warn!(%cause, "cannot accept a connection");
            clock::sleep(Duration::from_millis(100)).await;
        }
    }
}
