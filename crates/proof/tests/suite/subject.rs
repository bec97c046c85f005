//! Workers as child processes: started, stopped, frozen and killed, and never left behind.

use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use redrive::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::place::Place;

/// What the clients of a worker are called.
pub(crate) const SUBJECT: &str = "subject";

/// A worker to be started.
pub(crate) struct Command<'a> {
    place: &'a Place,
    command: std::process::Command,
}

/// A worker that runs. It is killed when it is dropped.
pub(crate) struct Subject(Child);

impl<'a> Command<'a> {
    pub(crate) fn new(place: &'a Place) -> Self {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_subject"));
        command.args(["--brokers", &place.cluster.brokers, "--topic", &place.topic, "--group", &place.group]);
        command.arg("--log").arg(place.file("log")).stdin(Stdio::null());
        let command = Self { place, command };
        // By its name faults tell it from the test's own clients.
        let command = command.property("client.id", SUBJECT);
        // The shortest session that brokers allow: what dies is missed soon.
        command.property("session.timeout.ms", "6000").property("heartbeat.interval.ms", "500")
    }

    pub(crate) fn with(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(name).arg(value);
        self
    }

    pub(crate) fn flag(mut self, name: &str) -> Self {
        self.command.arg(name);
        self
    }

    pub(crate) fn property(self, name: &str, value: &str) -> Self {
        self.with("--property", format!("{name}={value}"))
    }

    pub(crate) fn start(mut self) -> Subject {
        for (name, value) in &self.place.cluster.properties {
            self.command.arg("--property").arg(format!("{name}={value}"));
        }
        Subject(self.command.spawn().expect("a worker starts"))
    }
}

impl Subject {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// As `kill -9` does, and it is gone.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it is killed");
        self.0.wait().expect("it is gone");
    }

    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to stop, and says how it ended and how long that took.
    pub(crate) async fn stop(mut self) -> (ExitStatus, Duration) {
        self.signal(Signal::TERM);
        let clock = Clock::system();
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return (status, clock.now().steady);
            }
            assert!(clock.now().steady < Duration::from_secs(30), "it does not stop");
            clock.sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks it to stop and expects that it ends well.
    pub(crate) async fn stop_well(self) {
        let (status, _) = self.stop().await;
        assert!(status.success(), "it ended with {status}");
    }

    fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.0);
        kill_process(id, signal).expect("a child can be signalled");
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
