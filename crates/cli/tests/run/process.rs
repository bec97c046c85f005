//! The program as a child process, and what it tells.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use redrive::Clock;
use serde_json::Value;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_redrive");

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// `redrive run`, at work; killed with SIGKILL when it is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: String,
    pub(crate) file: PathBuf,
    said: Arc<Mutex<String>>,
}

impl Process {
    /// Runs this configuration, in which `[server]` has a free port, and waits until it says where it listens.
    pub(crate) async fn start(folder: &Path, config: &str) -> Self {
        let file = folder.join("redrive.toml");
        fs::write(&file, config).unwrap();
        Self::start_file(&file).await
    }

    pub(crate) async fn start_file(file: &Path) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["run", "-c"])
            .arg(file)
            // The index of letters is beside the file.
            .env("XDG_STATE_HOME", file.parent().unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = Arc::<Mutex<String>>::default();
        let (lines, into) = (BufReader::new(child.stderr.take().unwrap()).lines(), said.clone());
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut said = into.lock().unwrap();
                said.push_str(&line);
                said.push('\n');
            }
        });
        let mut process = Self { child, address: String::new(), file: file.to_owned(), said };
        process.said("metrics at http://").await;
        let said = process.log();
        let at = said.split("metrics at http://").nth(1).unwrap();
        process.address = at.split('/').next().unwrap().to_owned();
        process
    }

    /// Everything it has written to stderr.
    pub(crate) fn log(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until it has written this.
    pub(crate) async fn said(&self, what: &str) {
        until(what, || self.log().contains(what)).await;
    }

    /// The status and the body of an answer.
    pub(crate) fn get(&self, path: &str, headers: &str) -> (u16, String) {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// The status, the head and the body of an answer, as bytes.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, Vec<u8>) {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head, answer.split_off(end + 4))
    }

    /// Changes something, as a program does.
    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, head, body) =
            self.ask("POST", path, "content-type: application/json\r\n", &body.to_string());
        let text = String::from_utf8_lossy(&body).into_owned();
        let is_json = head.contains("application/json") || head.contains("application/problem+json");
        assert!(is_json, "{head}");
        (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
    }

    pub(crate) fn json(&self, path: &str) -> (u16, Value) {
        let (status, body) = self.get(path, "");
        (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
    }

    /// The value of a metric with these labels; no number where there is none.
    pub(crate) fn metric(&self, name: &str, label: &str) -> f64 {
        let (_, page) = self.get("/metrics", "");
        let line =
            page.lines().find(|line| line.split(['{', ' ']).next() == Some(name) && line.contains(label));
        line.map_or(f64::NAN, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
    }

    /// The state of a subscription.
    pub(crate) fn subscription(&self, topic: &str) -> Value {
        let (status, body) = self.json("/api/v1/subscriptions");
        assert_eq!(status, 200);
        let all = body["subscriptions"].as_array().unwrap();
        all.iter().find(|one| one["topic"] == topic).unwrap().clone()
    }

    pub(crate) async fn until_ready(&self) {
        until("ready", || self.json("/readyz").0 == 200).await;
    }

    /// Waits until the subscription has partitions of its own.
    pub(crate) async fn until_assigned(&self, topic: &str) {
        until("assigned", || !self.subscription(topic)["partitions"].as_array().unwrap().is_empty()).await;
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Waits until it has ended, and how.
    pub(crate) async fn ended(mut self) -> i32 {
        let mut code = None;
        until("ended", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        })
        .await;
        code.and_then(|status| status.code()).unwrap_or(-1)
    }

    /// Stops it as the system does, and expects that to go well.
    pub(crate) async fn stop(self) {
        self.signal("TERM");
        let log = self.said.clone();
        assert_eq!(self.ended().await, 0, "{}", log.lock().unwrap());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- what the process said\n{}", self.log());
        }
    }
}

/// Another command, to its end.
pub(crate) fn redrive(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The same, which has to go well; what it wrote to stdout.
pub(crate) fn done(arguments: &[&str]) -> String {
    let output = redrive(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::system();
    let deadline = clock.now().steady + PATIENCE;
    while !is_so() {
        assert!(clock.now().steady < deadline, "not in time: {what}");
        clock.sleep(Duration::from_millis(20)).await;
    }
}
