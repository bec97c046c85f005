//! Why a broker cannot start or go on. Clients are told by codes; these are for whoever runs it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An error of the broker itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address can be reached by others, and that was not allowed.
    #[error(
        "cannot listen on {address}: others could reach it and there is no authentication; allow it with allow_remote"
    )]
    Remote {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Another broker uses the directory.
    #[error("cannot use {path}: another broker holds it", path = path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// What is kept cannot be read.
    #[error("cannot open the broker's data in {path}", path = path.display())]
    Open {
        /// The data directory; empty in memory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A topic cannot be made.
    #[error("cannot make the topic {topic}: {reason}")]
    Topic {
        /// Its name.
        topic: String,
        /// Why not.
        reason: String,
    },
}
