//! Connections to an endpoint: over TCP, with TLS or without, or to a Unix socket.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use redrive::Clock;
use redrive_core::settings::Place;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long an address may take before the next one of the host is tried, too.
const START: Duration = Duration::from_millis(250);

/// Opens connections to one place, whatever address it is asked for.
#[derive(Clone)]
pub(crate) struct Connect(Arc<Way>);

enum Way {
    Tcp { name: String, port: u16 },
    Tls { name: String, port: u16, server: ServerName<'static>, tls: TlsConnector },
    Socket(PathBuf),
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoConnection {
    #[error("the name {name} is not known")]
    Name { name: String, source: io::Error },
    #[error("{0}")]
    Connect(#[source] io::Error),
    #[error("no TLS: {0}")]
    Tls(#[source] io::Error),
}

impl Connect {
    /// Connections to this place. With TLS, `tls` is what is trusted and shown.
    pub(crate) fn new(place: &Place, tls: Option<Arc<rustls::ClientConfig>>) -> Result<Self, String> {
        Ok(Self(Arc::new(match (place, tls) {
            (Place::Socket(path), _) => Way::Socket(path.into()),
            (Place::Host { name, port, .. }, None) => Way::Tcp { name: name.clone(), port: *port },
            (Place::Host { name, port, .. }, Some(config)) => Way::Tls {
                name: name.clone(),
                port: *port,
                server: ServerName::try_from(name.clone())
                    .map_err(|error| format!("{name} is not a name that a certificate can have: {error}"))?,
                tls: config.into(),
            },
        })))
    }

    pub(super) async fn connect(self) -> Result<Io, NoConnection> {
        match &*self.0 {
            Way::Socket(path) => {
                let stream = UnixStream::connect(path).await.map_err(NoConnection::Connect)?;
                Ok(Io::Socket(TokioIo::new(stream)))
            }
            Way::Tcp { name, port } => Ok(Io::Tcp(TokioIo::new(dial(name, *port).await?))),
            Way::Tls { name, port, server, tls } => {
                let stream = dial(name, *port).await?;
                let stream = tls.connect(server.clone(), stream).await.map_err(NoConnection::Tls)?;
                Ok(Io::Tls(Box::new(TokioIo::new(stream))))
            }
        }
    }
}

/// The first of the host's addresses that answers. Each has a start on the next: one that leads nowhere, as
/// those of IPv6 sometimes do, must not keep the others from being tried.
async fn dial(name: &str, port: u16) -> Result<TcpStream, NoConnection> {
    let unknown = |source| NoConnection::Name { name: name.to_owned(), source };
    let mut addresses: VecDeque<_> = lookup_host((name, port)).await.map_err(unknown)?.collect();
    let clock = Clock::system();
    let mut tries = FuturesUnordered::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        match addresses.pop_front() {
            Some(address) => tries.push(TcpStream::connect(address)),
            None if tries.is_empty() => return Err(NoConnection::Connect(last)),
            None => {}
        }
        let tried = tokio::select! {
            Some(tried) = tries.next() => tried,
            () = clock.sleep(START), if !addresses.is_empty() => continue,
        };
        match tried {
            Ok(stream) => {
                // Requests are written whole; to wait for more would only delay them.
                stream.set_nodelay(true).map_err(NoConnection::Connect)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
}

impl tower_service::Service<Uri> for Connect {
    type Response = Io;
    type Error = NoConnection;
    type Future = Pin<Box<dyn Future<Output = Result<Io, NoConnection>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoConnection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

/// A connection.
pub(crate) enum Io {
    Tcp(TokioIo<TcpStream>),
    Tls(Box<TokioIo<TlsStream<TcpStream>>>),
    Socket(TokioIo<UnixStream>),
}

impl Connection for Io {
    fn connected(&self) -> Connected {
        match self {
            Self::Tls(stream) if stream.inner().get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            Self::Tls(_) | Self::Tcp(_) | Self::Socket(_) => Connected::new(),
        }
    }
}

/// Passes a call on to whatever stream it is.
macro_rules! stream {
    ($io:expr, $call:ident $(, $argument:expr)*) => {
        match $io.get_mut() {
            Io::Tcp(stream) => Pin::new(stream).$call($($argument),*),
            Io::Tls(stream) => Pin::new(stream.as_mut()).$call($($argument),*),
            Io::Socket(stream) => Pin::new(stream).$call($($argument),*),
        }
    };
}

impl Read for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        stream!(self, poll_read, context, buffer)
    }
}

impl Write for Io {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        stream!(self, poll_write, context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        stream!(self, poll_flush, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        stream!(self, poll_shutdown, context)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Socket(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        stream!(self, poll_write_vectored, context, bytes)
    }
}
