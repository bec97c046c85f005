//! An endpoint of bytes: for each connection a function gets the request and the stream, and does what it likes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server that is gone when it is dropped.
pub struct Raw {
    pub port: u16,
    connections: Arc<AtomicUsize>,
    stop: Arc<std::sync::atomic::AtomicBool>,
}

impl Raw {
    /// Serves with `answer`, which gets each connection with the number it has.
    pub fn new(answer: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
    }

    pub fn on(listener: TcpListener, answer: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Self {
        let port = listener.local_addr().unwrap().port();
        let (connections, stop) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let (count, answer) = (connections.clone(), Arc::new(answer));
        let stopped: Arc<std::sync::atomic::AtomicBool> = Arc::clone(&stop);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let number = count.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                std::thread::spawn(move || answer(number, stream.unwrap()));
            }
        });
        Self { port, connections, stop }
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/records", self.port)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the loop, so that it sees that and lets go of the port.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Reads a request with its body; none at the end of the connection.
pub fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).unwrap();
    Some(head + &String::from_utf8_lossy(&body))
}

/// Writes an answer; whether there was anybody to read it is not ours to say.
pub fn write(stream: &mut TcpStream, text: &str) {
    let _ = stream.write_all(text.as_bytes());
}
