//! What the process that runs the file says of itself, if it answers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use redrive_config::{Config, Server};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::look::{Flow, Look};

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// No answer is longer.
const MOST: u64 = 16 << 20;

/// What a process said.
pub(super) struct Process {
    address: SocketAddr,
    reasons: Vec<Value>,
    /// None if it did not tell: without its token, whoever asks learns only whether it is ready.
    subscriptions: Option<Vec<Value>>,
}

/// Asks the process at this address.
pub(super) async fn ask(server: &Server) -> Option<Process> {
    if server.listen.port() == 0 {
        return None;
    }
    let address = near(server.listen);
    let token = server.token.as_ref().map(|token| token.0.as_str());
    let ready = get(address, "/readyz", token).await?;
    ready["ready"].as_bool()?;
    let subscriptions = get(address, "/api/v1/subscriptions", token).await;
    let list = |value: &Value| value.as_array().cloned();
    Some(Process {
        address,
        reasons: list(&ready["reasons"]).unwrap_or_default(),
        subscriptions: subscriptions.and_then(|all| list(&all["subscriptions"])),
    })
}

impl Process {
    /// Tells of what the process finds wrong, as far as the file has it.
    pub(super) fn look(&self, look: &mut Look<'_>, config: &Config) {
        let is_ours = |one: &Value| {
            let mut all = config.subscriptions.iter();
            all.any(|mine| one["topic"] == *mine.topic.as_str() && one["group"] == *mine.group)
        };
        let topics_are_told = look.wrong.iter().any(|one| one.kind == "topics");
        for reason in self.reasons.iter().filter(|reason| is_ours(reason)) {
            let text = |name: &str| reason[name].as_str().unwrap_or_default().to_owned();
            if text("kind") == "topics" && topics_are_told {
                continue;
            }
            let partition = reason["partition"].as_i64().map(|number| format!(" partition {number}"));
            let place = format!("{}/{}{}", text("topic"), text("group"), partition.unwrap_or_default());
            look.add(&text("kind"), &place, text("what"), text("remedy"));
        }
        let Some(subscriptions) = self.subscriptions.as_ref().filter(|all| all.iter().any(is_ours)) else {
            return;
        };
        for mine in &config.subscriptions {
            let is_it = |one: &Value| one["topic"] == *mine.topic.as_str() && one["group"] == *mine.group;
            if !subscriptions.iter().any(is_it) {
                let what = format!("the process at {} was started without it: restart it", self.address);
                let place = format!("{}/{}", mine.topic, mine.group);
                look.add("not-run", &place, what, format!("redrive run -c {}", look.file));
            }
        }
    }

    /// Whether it runs this.
    pub(super) fn runs(&self, flow: &Flow) -> bool {
        let is_it = |one: &Value| {
            one["topic"] == *flow.topic.as_str() && one["group"] == *flow.group && one["state"] == "running"
        };
        self.subscriptions.iter().flatten().any(is_it)
    }
}

/// One that listens to all addresses is asked at this machine's own.
fn near(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn get(address: SocketAddr, path: &str, token: Option<&str>) -> Option<Value> {
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{token}connection: close\r\n\r\n");
    let asked = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        stream.take(MOST).read_to_end(&mut answer).await.ok()?;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
        serde_json::from_slice(&answer[end + 4..]).ok()
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}
