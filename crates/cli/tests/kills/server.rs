//! The broker as a process: started, killed, started again on the same address and data.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;

pub(crate) struct Server {
    pub(crate) address: String,
    data: PathBuf,
    child: Child,
}

impl Server {
    pub(crate) fn start(data: &Path) -> Server {
        let (child, address) = spawn("127.0.0.1:0", data);
        Server { address, data: data.to_owned(), child }
    }

    /// SIGKILL: the process has no say in it.
    pub(crate) fn kill_and_start(&mut self) {
        self.child.kill().expect("a process to kill");
        self.child.wait().expect("its end");
        (self.child, _) = spawn(&self.address, &self.data);
    }

    pub(crate) fn configure(&self, topic: &str, name: &str, value: &str) {
        let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set(name, value);
        let done = wait(self.admin().alter_configs([&change], &options())).expect("an answer");
        assert!(done.iter().all(Result::is_ok), "{done:?}");
    }

    pub(crate) fn setting(&self, topic: &str, name: &str) -> Option<String> {
        let described = wait(self.admin().describe_configs([&ResourceSpecifier::Topic(topic)], &options()));
        let described = described.expect("an answer").remove(0).expect("a topic");
        described.get(name).and_then(|entry| entry.value.clone())
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        ClientConfig::new().set("bootstrap.servers", &self.address).create().expect("an admin client")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(listen: &str, data: &Path) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .args(["broker", "--no-auto-create", "--topic", "plain:3", "--topic", "committed:3"])
        .args(["--listen", listen, "--data"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a broker");
    let mut address = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut address).expect("its address");
    assert!(!address.is_empty(), "the broker did not start on {listen}");
    (child, address.trim().to_owned())
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(Duration::from_secs(10)))
}

fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(answer)
}
