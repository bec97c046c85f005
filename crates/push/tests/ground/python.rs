//! An endpoint in Python, standard library only, that answers by script and tells what came.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A request as the endpoint saw it.
#[derive(Debug, Clone)]
pub struct Call {
    /// When, in seconds since the epoch.
    pub at: f64,
    pub path: String,
    /// In the order in which they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Call {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    pub fn all(&self, name: &str) -> Vec<&str> {
        let is = |other: &str| other.eq_ignore_ascii_case(name);
        self.headers.iter().filter(|(other, _)| is(other)).map(|(_, value)| value.as_str()).collect()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The endpoint's process; it ends with this.
pub struct Python {
    child: Child,
    pub port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// Whether there is a Python to run; says so if there is none, and fails if there must be one.
pub fn is_there() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(found || !redrive_testkit::is_required("python"), "python is required, and there is no python3");
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIPPED a test: no python3");
    }
    found
}

impl Python {
    /// An endpoint at a port of its own, which answers by this script.
    pub fn new(script: &Value) -> Self {
        Self::at("0", script)
    }

    /// An endpoint at a port, or at the path of a socket.
    pub fn at(place: &str, script: &Value) -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ground/endpoint.py");
        let mut child = Command::new("python3")
            .args([program, place, &script.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let port = u16::try_from(first["port"].as_u64().unwrap()).unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let heard = calls.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                heard.lock().unwrap().push(call(&serde_json::from_str(&line).unwrap()));
            }
        });
        Self { child, port, calls }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/records", self.port)
    }

    /// The requests so far.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The requests with this body.
    pub fn of(&self, value: &str) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.body == value.as_bytes()).collect()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn call(told: &Value) -> Call {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let pairs = told["headers"].as_array().unwrap();
    Call {
        at: told["at"].as_f64().unwrap(),
        path: text(&told["path"]),
        headers: pairs.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
        body: STANDARD.decode(text(&told["body"])).unwrap(),
    }
}
