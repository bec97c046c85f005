//! `redrive delayed`: what waits on shelves, and orders about it. Kafka itself is asked, not a worker.

mod change;
mod filter;
mod list;
mod shelves;
mod show;
mod words;

use std::io;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct DelayedCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List what waits, the next that is due first
    List(list::List),
    /// Show everything about one record that waits, payload included
    Show(show::Show),
    /// Make records due now
    Release(change::Release),
    /// Make records due at another time
    Reschedule(change::Reschedule),
    /// Turn records into dead letters with the reason `cancelled`
    Cancel(change::Cancel),
    /// Open lanes that dead letters closed
    Resolve(change::Resolve),
}

impl DelayedCommand {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let ran = runtime.block_on(async {
            let run = async {
                match self.command {
                    Command::List(list) => list.run().await,
                    Command::Show(show) => show.run().await,
                    Command::Release(release) => release.run().await,
                    Command::Reschedule(reschedule) => reschedule.run().await,
                    Command::Cancel(cancel) => cancel.run().await,
                    Command::Resolve(resolve) => resolve.run().await,
                }
            };
            tokio::select! {
                ran = run => ran,
                () = redrive::stop_signal() => {
                    screen::progress("");
                    screen::say("stopped; orders that were given stay in the shelf and are carried out");
                    Ok(Exit::Failed)
                }
            }
        });
        // A thread may still wait for the broker: nobody waits for the thread.
        runtime.shutdown_background();
        ran
    }
}
