//! The log of a test: one line for each beginning and end of a call, and for each event of the worker.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use redrive::{Clock, Received};

pub(crate) struct Log {
    file: File,
    process: u32,
    clock: Clock,
}

impl Log {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file, process: std::process::id(), clock: Clock::system() })
    }

    pub(crate) fn start(&self, received: &Received) {
        self.call("start", received, "-");
    }

    pub(crate) fn end(&self, received: &Received, outcome: &str) {
        self.call("end", received, outcome);
    }

    pub(crate) fn event(&self, text: &str) {
        let text = text.trim_end().replace('\n', "; ");
        self.line(&format!("event {} {text}\n", self.process));
    }

    fn call(&self, word: &str, received: &Received, outcome: &str) {
        let key = String::from_utf8_lossy(received.key.as_deref().unwrap_or(b"-"));
        self.line(&format!(
            "{word} {} {} {} {key} {} {} {outcome}\n",
            self.process,
            received.at.partition,
            received.at.offset,
            received.attempt(),
            self.clock.now().wall,
        ));
    }

    /// One call of the system for a line: lines of several processes do not mix, and none is held back.
    fn line(&self, line: &str) {
        (&self.file).write_all(line.as_bytes()).expect("the log can be written");
    }
}

/// The events of the worker go into the same log.
impl Write for &Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.event(&String::from_utf8_lossy(text));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
