//! A collector of spans: a socket that speaks OTLP over HTTP, and keeps what comes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use super::raw::Raw;

pub struct Collector {
    server: Raw,
    heads: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    pub fn new() -> Self {
        Self::answering(|_| "200 OK")
    }

    /// Answers the requests, which are numbered from 0, with these statuses; those with 200 are kept.
    pub fn answering(status: impl Fn(usize) -> &'static str + Send + Sync + 'static) -> Self {
        let (heads, requests) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let (seen, kept) = (heads.clone(), requests.clone());
        let server = Raw::new(move |_, mut stream| {
            while let Some((head, body)) = request(&mut stream) {
                let mut seen = seen.lock().unwrap();
                let status = status(seen.len());
                seen.push(head);
                drop(seen);
                if status.starts_with("200") {
                    kept.lock().unwrap().push(ExportTraceServiceRequest::decode(&body[..]).unwrap());
                }
                let _ =
                    stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes());
            }
        });
        Self { server, heads, requests }
    }

    /// The keys of a configuration that send spans here.
    pub fn keys(&self) -> String {
        format!("endpoint = \"http://127.0.0.1:{}\"", self.server.port)
    }

    /// What stood before the bodies.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// The spans that came, in the order in which they began.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().unwrap();
        let scopes = requests.iter().flat_map(|one| &one.resource_spans).flat_map(|one| &one.scope_spans);
        let mut spans: Vec<_> = scopes.flat_map(|one| one.spans.clone()).collect();
        spans.sort_by_key(|span| span.start_time_unix_nano);
        spans
    }

    /// What the process says of itself.
    pub fn resource(&self, key: &str) -> Option<String> {
        let requests = self.requests.lock().unwrap();
        let resource = requests.first()?.resource_spans.first()?.resource.clone()?;
        attribute(&resource.attributes, key)
    }
}

fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The value of an attribute, as text.
pub fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|one| one.key == key)?;
    match found.value.clone()? {
        AnyValue { value: Some(Value::StringValue(text)) } => Some(text),
        AnyValue { value: Some(Value::IntValue(number)) } => Some(number.to_string()),
        other => panic!("{key}: {other:?}"),
    }
}

pub fn of(span: &Span, key: &str) -> String {
    attribute(&span.attributes, key).unwrap_or_default()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
