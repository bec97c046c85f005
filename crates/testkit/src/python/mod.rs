//! An endpoint in Python, standard library only, that answers by script and tells what came and what it answered.

mod call;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::Value;

pub use call::Call;

/// What the endpoint tells, in the order in which it happens.
#[derive(Debug, Clone)]
pub enum Told {
    /// A request came.
    Asked(Call),
    /// It is about to be answered.
    Answered {
        /// The request's `ce-id`; empty for a batch.
        id: String,
        /// The status of the answer.
        status: u64,
    },
}

/// The endpoint's process; it ends with this.
#[derive(Debug)]
pub struct Python {
    child: Child,
    /// Where it listens; 0 if that is a socket.
    pub port: u16,
    told: Arc<Mutex<Vec<Told>>>,
    hearing: Option<JoinHandle<()>>,
}

/// Whether there is a Python to run; says so if there is none.
///
/// # Panics
/// If there must be one.
#[must_use]
pub fn is_there() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(found || !crate::is_required("python"), "python is required, and there is no python3");
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIPPED a test: no python3");
    }
    found
}

impl Python {
    /// An endpoint at a port of its own, which answers by this script.
    #[must_use]
    pub fn new(script: &Value) -> Self {
        Self::at("0", script)
    }

    /// An endpoint at a port, or at the path of a socket.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn at(place: &str, script: &Value) -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/src/python/endpoint.py");
        let mut child = Command::new("python3")
            .args([program, place, &script.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let first = lines.next().expect("its port").expect("its port");
        let first: Value = serde_json::from_str(&first).expect("its port");
        let port = first["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        let told = Arc::<Mutex<Vec<Told>>>::default();
        let heard = told.clone();
        let hearing = thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // A line without an end was cut off, as the endpoint was killed.
                let Ok(line) = serde_json::from_str(&line) else { break };
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(read(&line));
            }
        });
        Self { child, port, told, hearing: Some(hearing) }
    }

    /// Where it is asked.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/records", self.port)
    }

    /// Everything that it has told so far.
    #[must_use]
    pub fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Kills it; all that it has told.
    ///
    /// # Panics
    /// If that cannot be heard to its end.
    #[must_use]
    pub fn ended(mut self) -> Vec<Told> {
        let _ = self.child.kill();
        if let Some(hearing) = self.hearing.take() {
            hearing.join().expect("all of it is heard");
        }
        self.told()
    }

    /// The requests so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        let call = |told| match told {
            Told::Asked(call) => Some(call),
            Told::Answered { .. } => None,
        };
        self.told().into_iter().filter_map(call).collect()
    }

    /// The requests with this body.
    #[must_use]
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

fn read(line: &Value) -> Told {
    match line["answered"].as_str() {
        Some(id) => Told::Answered { id: id.to_owned(), status: line["status"].as_u64().unwrap_or(0) },
        None => Told::Asked(Call::read(line)),
    }
}
