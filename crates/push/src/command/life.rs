//! One run of a program, from its start to its end.

use std::collections::HashMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redrive::Clock;
use redrive_config::Command;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{info, warn};

use super::lines::Lines;
use crate::leaving::Leaving;
use crate::outcome::{Outcome, cut};

/// How many bytes of an answer are read, and of a line for the log.
const ANSWER: usize = 1 << 20;
const LOGGED: usize = 4 << 10;

/// A program that answers nothing while calls have no more time, so often one after the other, hangs: it is
/// ended, and started again.
const HUNG: u32 = 3;

/// A program that runs, or did.
pub(super) struct Life {
    pid: Option<u32>,
    calls: AtomicU64,
    waiting: Mutex<Waiting>,
    answered: AtomicBool,
    requests: mpsc::Sender<(u64, Value)>,
    stop: watch::Sender<bool>,
}

/// Who waits for an answer, by call; and why nobody does any more.
#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, oneshot::Sender<Outcome>>,
    ended: Option<String>,
    /// How often calls had no more time since the last answer; those that were made together count once.
    in_vain: u32,
    /// The last call that was made when this was counted.
    counted: u64,
}

impl Life {
    /// Starts the program.
    pub(super) fn begin(name: &str, command: &Command) -> io::Result<Arc<Self>> {
        let mut program = tokio::process::Command::new(&command.program);
        program.args(&command.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        program.envs(command.env.iter().map(|variable| (&variable.name, &variable.value)));
        if let Some(folder) = &command.directory {
            program.current_dir(folder);
        }
        let mut child = program.kill_on_drop(true).spawn()?;
        let (requests, taken) = mpsc::channel(1);
        let (stop, stopped) = watch::channel(false);
        let life = Arc::new(Self {
            pid: child.id(),
            calls: AtomicU64::new(1),
            waiting: Mutex::default(),
            answered: AtomicBool::new(false),
            requests,
            stop,
        });
        if let Some(stdin) = child.stdin.take() {
            tokio::spawn(write(life.clone(), stdin, taken, stopped.clone()));
        }
        let said =
            child.stdout.take().map(|stdout| tokio::spawn(read(life.clone(), name.to_owned(), stdout)));
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(log(name.to_owned(), stderr));
        }
        let silent = async {
            if let Some(said) = said {
                let _ = said.await;
            }
        };
        let patience = command.stop_timeout;
        let (counted, attended) = (Leaving::new(), attend(life.clone(), child, silent, stopped, patience));
        tokio::spawn(async move {
            attended.await;
            drop(counted);
        });
        Ok(life)
    }

    /// Its number among processes, as long as it runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Why it ended, if it did.
    pub(super) fn ended(&self) -> Option<String> {
        self.waiting().ended.clone()
    }

    /// Whether it has ever answered a call.
    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Asks it to stop.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Gives it a record and waits for the outcome; none if it ends before.
    pub(super) async fn call(&self, mut record: Value) -> Option<Outcome> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        record["call"] = json!(number);
        let (answer, answered) = oneshot::channel();
        let _forgotten = {
            let mut waiting = self.waiting();
            if waiting.ended.is_some() {
                return None;
            }
            waiting.calls.insert(number, answer);
            Forget { life: self, number }
        };
        self.requests.send((number, record)).await.ok()?;
        answered.await.ok()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, why: String) {
        let mut waiting = self.waiting();
        waiting.ended.get_or_insert(why);
        waiting.calls.clear();
    }
}

/// A call that nobody waits for any more, however that came to be.
struct Forget<'a> {
    life: &'a Life,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        let mut waiting = self.life.waiting();
        if waiting.calls.remove(&self.number).is_none() || self.number <= waiting.counted {
            return;
        }
        waiting.in_vain += 1;
        waiting.counted = self.life.calls.load(Ordering::Relaxed) - 1;
        if waiting.in_vain == HUNG {
            drop(waiting);
            self.life.end(format!("it has not answered {HUNG} calls, one after the other"));
            self.life.stop();
        }
    }
}

/// Writes what is asked until the program ends or is to stop; then its input ends.
async fn write(
    life: Arc<Life>,
    mut stdin: ChildStdin,
    mut requests: mpsc::Receiver<(u64, Value)>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let (number, record) = tokio::select! {
            request = requests.recv() => match request {
                Some(request) => request,
                None => return,
            },
            () = told(&mut stopped) => return,
        };
        // Whoever asked may have had no more time.
        if !life.waiting().calls.contains_key(&number) {
            continue;
        }
        let line = format!("{record}\n");
        let written = tokio::select! {
            written = async { stdin.write_all(line.as_bytes()).await.and(stdin.flush().await) } => written,
            () = told(&mut stopped) => return,
        };
        if written.is_err() {
            return life.end("it does not read its input".to_owned());
        }
    }
}

/// Gives answers to whoever waits for them. What is none is told and harmless.
async fn read(life: Arc<Life>, name: String, stdout: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(stdout, ANSWER);
    while let Some(line) = lines.next().await {
        if line.trim().is_empty() {
            continue;
        }
        let answer = serde_json::from_str::<Value>(&line).ok();
        let Some((number, answer)) = answer.and_then(|answer| Some((answer.get("call")?.as_u64()?, answer)))
        else {
            warn!(
                handler = name,
                line = cut(&line, 200),
                "a line that is no answer: JSON with a `call` is expected"
            );
            continue;
        };
        life.answered.store(true, Ordering::Relaxed);
        let caller = {
            let mut waiting = life.waiting();
            waiting.in_vain = 0;
            waiting.calls.remove(&number)
        };
        let Some(caller) = caller else {
            warn!(handler = name, call = number, "an answer that nobody waits for, or not any more");
            continue;
        };
        let _ = caller.send(Outcome::from_json(&answer));
    }
}

/// What it writes to its standard error belongs in the log.
async fn log(name: String, stderr: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(stderr, LOGGED);
    while let Some(line) = lines.next().await {
        info!(handler = name, "{}", cut(&line, LOGGED));
    }
}

/// Sees the program to its end, and asks for it when it is time: first SIGTERM, then SIGKILL.
async fn attend(
    life: Arc<Life>,
    mut child: Child,
    silent: impl Future<Output = ()>,
    mut stopped: watch::Receiver<bool>,
    patience: Duration,
) {
    let clock = Clock::system();
    let why = tokio::select! {
        ended = child.wait() => in_words(ended),
        () = silent => match soon(&clock, child.wait()).await {
            Some(ended) => in_words(ended),
            None => "it ended its output".to_owned(),
        },
        () = told(&mut stopped) => "it was asked to stop".to_owned(),
    };
    life.end(why);
    end(&clock, &mut child, patience).await;
}

/// Waits until it is to stop.
async fn told(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

fn in_words(ended: io::Result<ExitStatus>) -> String {
    match ended {
        Ok(status) => format!("it ended with {status}"),
        Err(error) => format!("it is lost: {error}"),
    }
}

/// What comes within a moment: whoever ends closes its output first.
async fn soon<T>(clock: &Clock, what: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        what = what => Some(what),
        () = clock.sleep(Duration::from_millis(500)) => None,
    }
}

/// Ends a program, unless it has ended.
async fn end(clock: &Clock, child: &mut Child, patience: Duration) {
    // Its number is its own as long as nobody has waited for its end.
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let Some(pid) = pid else { return };
    let _ = kill_process(pid, Signal::TERM);
    tokio::select! {
        _ = child.wait() => {}
        () = clock.sleep(patience) => {
            let _ = child.kill().await;
        }
    }
}
