//! What the system asks of the process.

use std::io;

use tokio::signal::unix::{Signal as Listened, SignalKind, signal};

/// What is asked.
pub(super) enum Signal {
    /// SIGHUP.
    Reload,
    /// SIGINT (Ctrl-C) or SIGTERM.
    Stop,
}

/// The signals that are listened for.
pub(super) struct Signals {
    hangup: Listened,
    interrupt: Listened,
    terminate: Listened,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.terminate.recv() => Signal::Stop,
        }
    }

    /// Waits until it is to stop.
    pub(super) async fn stop(&mut self) {
        while let Signal::Reload = self.next().await {}
    }
}
