//! Records written to a program that runs all the time: a line of JSON each, and a line for each outcome.
//!
//! The program is started with the first record and again whenever it ends, with longer and longer pauses.
//! What it had in hand then was not handled: an outage, never a letter.

mod life;
mod lines;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redrive::{Cause, Class, Clock, Failure, Handler, Received, Subscription};
use redrive_config::Command;
use tracing::{info, warn};

use crate::http::event;
use crate::line;
use crate::traces::{Carried, Carry, Traced, Tracer};
use crate::{Wrong, duration};
use life::Life;

/// The longest pause before the program is started again.
const LONGEST: Duration = Duration::from_secs(30);

/// Gives the subscription its program.
pub(crate) fn handled(
    configured: Subscription,
    command: &Command,
    group: &str,
    tracer: Option<Tracer>,
) -> Result<Subscription, Wrong> {
    verify(command)?;
    let name = Path::new(&command.program).file_name().map(|name| name.to_string_lossy().into_owned());
    let name = format!("command {}", name.unwrap_or_else(|| command.program.clone()));
    let state = Mutex::new(State::Down(Down { tries: 0, until: Duration::ZERO, why: String::new() }));
    let program = Program {
        name: name.clone(),
        command: command.clone(),
        group: group.to_owned(),
        clock: Clock::system(),
        state,
    };
    let configured = configured.handler_name(name);
    Ok(match tracer {
        None => configured.handler(program),
        Some(tracer) => configured.handler(Traced { handler: program, tracer }),
    })
}

/// The handler.
struct Program {
    name: String,
    command: Command,
    group: String,
    clock: Clock,
    state: Mutex<State>,
}

enum State {
    Up(Up),
    Down(Down),
}

/// It runs.
struct Up {
    life: Arc<Life>,
    began: Duration,
    /// How often it was started in vain before.
    tries: u32,
}

/// It does not run, and is not started before `until`.
struct Down {
    tries: u32,
    until: Duration,
    why: String,
}

impl Program {
    /// The program that runs, started if it is time for that.
    fn life(&self) -> Result<Arc<Life>, Failure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now().steady;
        if let State::Up(up) = &*state {
            let Some(why) = up.life.ended() else { return Ok(up.life.clone()) };
            let tries = if up.life.has_answered() || now - up.began > LONGEST { 0 } else { up.tries };
            *state = State::Down(self.down(tries, now, why));
        }
        let State::Down(down) = &*state else { return Err(outage("down", "it does not run".to_owned())) };
        if down.until > now {
            return Err(self.is_down(down, now));
        }
        let tries = down.tries;
        match Life::begin(&self.name, &self.command) {
            Ok(life) => {
                info!(handler = self.name, pid = life.pid(), "started");
                *state = State::Up(Up { life: life.clone(), began: now, tries: tries + 1 });
                Ok(life)
            }
            Err(error) => {
                let down = self.down(tries + 1, now, format!("it cannot be started: {error}"));
                let failure = self.is_down(&down, now);
                *state = State::Down(down);
                Err(failure)
            }
        }
    }

    fn down(&self, tries: u32, now: Duration, why: String) -> Down {
        let pause = Duration::from_secs(1 << tries.saturating_sub(1).min(5)).min(LONGEST);
        warn!(handler = self.name, why, pause = duration(pause), "ended; it is started again after a pause");
        Down { tries, until: now + pause, why }
    }

    fn is_down(&self, down: &Down, now: Duration) -> Failure {
        let mut failure = outage("down", format!("{}: {}", self.name, down.why));
        failure.retry_after = Some(down.until.saturating_sub(now));
        failure
    }
}

impl Handler for Program {
    async fn handle(&self, received: Received) -> Result<(), Failure> {
        self.carry(received, None).await
    }
}

impl Carry for Program {
    async fn carry(&self, received: Received, trace: Option<&Carried>) -> Result<(), Failure> {
        let life = self.life()?;
        let record = line::record(&received, &event::origin(&received, &self.group), trace);
        match life.call(record).await {
            Some(outcome) => outcome.result("command"),
            None => {
                let why = life.ended().unwrap_or_else(|| "it does not answer".to_owned());
                Err(outage("ended", format!("{}: {why}", self.name)))
            }
        }
    }
}

/// It stops with the worker.
impl Drop for Program {
    fn drop(&mut self) {
        if let State::Up(up) = &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            up.life.stop();
        }
    }
}

fn outage(code: &str, message: String) -> Failure {
    let cause = Cause { code: Some(code.to_owned()), ..Cause::new(format!("command.{code}"), message) };
    Failure::new(cause).presumably(Class::Outage)
}

/// What can be known to be wrong before it is started.
fn verify(command: &Command) -> Result<(), Wrong> {
    if let Some(folder) = command.directory.as_ref().filter(|folder| !folder.is_dir()) {
        let what = format!("directory: there is no folder {}", folder.display());
        return Err((what, "name one that is there as handler.command.directory".to_owned()));
    }
    let is_there = |path: PathBuf| path.is_file();
    let program = Path::new(&command.program);
    let found = if command.program.contains('/') {
        // Where it is looked for if the folder is another one.
        let folder = command.directory.as_deref().unwrap_or(Path::new("."));
        is_there(folder.join(program)) || is_there(program.to_owned())
    } else {
        let path =
            command.env.iter().find(|variable| variable.name == "PATH").map(|found| (&found.value).into());
        let path = path.or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        std::env::split_paths(&path).any(|folder| is_there(folder.join(program)))
    };
    if !found {
        let what = format!("argv: there is no program {}", command.program);
        return Err((what, "name one that is there, by its path if it is not in PATH".to_owned()));
    }
    Ok(())
}
