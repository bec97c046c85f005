//! Processes: the embedded broker as a child, and what the kernel says of anyone's time and memory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

/// The embedded broker in a process of its own. It ends when this is dropped.
pub(crate) struct Embedded {
    child: Child,
    input: Option<ChildStdin>,
    pub(crate) address: String,
}

impl Embedded {
    pub(crate) fn start(data: &Path) -> Embedded {
        let own = std::env::current_exe().expect("this program");
        let command =
            Command::new(own).arg("serve").arg(data).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = command.expect("the embedded broker");
        let output = child.stdout.take().expect("its output");
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address).expect("its address");
        Embedded { input: child.stdin.take(), address: address.trim().to_owned(), child }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Resident memory in MB.
pub(crate) fn resident(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process that lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident memory");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().expect("a number") * 1024.0 / 1e6
}

/// Processor time so far.
pub(crate) fn processor_time(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("a process that lives");
    // After the name, which may have spaces: the 14th and 15th fields of all, in ticks of 10 ms.
    let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<u64>().expect("ticks");
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

/// The process that listens on a port of this machine.
pub(crate) fn listening_on(port: u16) -> Option<u32> {
    let wanted = format!(":{port:04X}");
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let listens = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let right = fields.get(1)?.ends_with(&wanted) && *fields.get(3)? == "0A";
        right.then(|| format!("socket:[{}]", fields[9]))
    };
    let socket = tables.iter().flat_map(|table| table.lines()).find_map(listens)?;
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut holders = numbers.filter(|process| holds(*process, &socket));
    holders.next()
}

fn holds(process: u32, socket: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|to| to.to_str() == Some(socket)))
}
