//! Processes: the endpoint, the load client, and `redrive run` with a configuration.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redrive::Cluster;

use crate::{Outcome, clock, wire};

/// A process that is killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    /// Where it listens.
    pub(crate) address: String,
}

impl Program {
    pub(crate) fn endpoint() -> Outcome<Self> {
        let mut child =
            Command::new(std::env::current_exe()?).arg("endpoint").stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().ok_or("its output")?).read_line(&mut address)?;
        Ok(Self { child, address: address.trim().to_owned() })
    }

    /// `redrive run` from beside this program.
    pub(crate) fn redrive(folder: &Path, cluster: &Cluster, subscriptions: &str) -> Outcome<Self> {
        let program = std::env::current_exe()?.with_file_name("redrive");
        let file = folder.join("redrive.toml");
        let brokers = &cluster.settings().brokers;
        let head = format!("[kafka]\nbrokers = \"{brokers}\"\n[server]\nlisten = \"127.0.0.1:0\"\n");
        fs::write(&file, format!("{head}{subscriptions}"))?;
        let mut child = Command::new(&program)
            .args(["run", "-c"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}; build --bin redrive, too", program.display()))?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("its errors")?).lines();
        let mut address = None;
        while address.is_none() {
            let line = lines.next().ok_or("it ended")??;
            let at = line.split("metrics at http://").nth(1).and_then(|at| at.split('/').next());
            address = at.map(ToOwned::to_owned);
        }
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| told(&line)));
        Ok(Self { child, address: address.unwrap_or_default() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

/// What went wrong is worth a line.
fn told(line: &str) {
    if line.contains("WARN") || line.contains("ERROR") {
        eprintln!("  {line}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The load client, to its end.
pub(crate) fn load(address: &str, requests: u64, concurrency: usize, size: usize) -> Outcome<()> {
    let numbers = [requests.to_string(), concurrency.to_string(), size.to_string()];
    let ended = Command::new(std::env::current_exe()?).args(["load", address]).args(numbers).status()?;
    if ended.success() { Ok(()) } else { Err("the load client failed".into()) }
}

/// Waits until the endpoint has seen so many.
pub(crate) async fn until_seen(endpoint: &Program, count: u64) -> Outcome<wire::Seen> {
    loop {
        let seen = wire::seen(&endpoint.address).await?;
        if seen.count >= count {
            return Ok(seen);
        }
        clock::pause(Duration::from_millis(200)).await;
    }
}

/// A subscription of a configuration.
pub(crate) fn subscription(topic: &str, group: &str, url: &str, concurrency: usize) -> String {
    format!(
        "[[subscription]]\ntopic = \"{topic}\"\ngroup = \"{group}\"\nhandler.http.url = \"{url}\"\n\
         auto-create = true\nconcurrency = {concurrency}\n"
    )
}
