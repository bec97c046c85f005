//! An HTTP endpoint that answers as a test says, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request, as far as tests look at it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) body: String,
    pub(crate) attempt: u32,
    pub(crate) offset: i64,
}

type Answer = dyn Fn(&Asked) -> u16 + Send + Sync;

/// It answers until the test ends.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Endpoint {
    /// Answers with the status that this gives; it may take as long as it wants to.
    pub(crate) fn new(answer: impl Fn(&Asked) -> u16 + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/records", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (answer, all): (Arc<Answer>, _) = (Arc::new(answer), asked.clone());
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (answer, all) = (answer.clone(), all.clone());
                // A peer that hangs up is none of our business.
                thread::spawn(move || connection.is_ok_and(|one| speak(one, &*answer, &all).is_some()));
            }
        });
        Self { url, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn speak(connection: TcpStream, answer: &Answer, all: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut writing = connection.try_clone().ok()?;
    let mut reading = BufReader::new(connection);
    loop {
        let asked = read(&mut reading)?;
        all.lock().unwrap().push(asked.clone());
        let status = answer(&asked);
        writing.write_all(format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n").as_bytes()).ok()?;
    }
}

fn read(reading: &mut BufReader<TcpStream>) -> Option<Asked> {
    let (mut length, mut attempt, mut offset) = (0, 0, 0);
    loop {
        let mut line = String::new();
        reading.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_lowercase();
        let Some((name, value)) = line.split_once(": ") else {
            if line.is_empty() {
                break;
            }
            continue;
        };
        match name {
            "content-length" => length = value.parse().ok()?,
            "redrive-attempt" => attempt = value.parse().ok()?,
            "redrive-offset" => offset = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reading.read_exact(&mut body).ok()?;
    Some(Asked { body: String::from_utf8_lossy(&body).into_owned(), attempt, offset })
}
