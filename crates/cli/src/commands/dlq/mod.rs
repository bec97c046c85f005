//! `redrive dlq`: dead letters, whoever wrote them. They are found in Kafka and asked about in an index on this machine,
//! which each command brings up to date first.

mod asking;
mod choice;
mod damaged;
mod deletable;
mod erase;
mod export;
mod filter;
mod groups;
mod import;
mod list;
pub(crate) mod place;
mod purge;
mod replay;
mod resolve;
mod shelved;
mod show;
mod spark;
mod stats;
mod words;

use std::io;

use clap::{Args, Subcommand};

use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct DlqCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List letters, the newest first
    List(list::List),
    /// Show everything about one letter, and what belongs to it
    Show(show::Show),
    /// List failures by their cause
    Groups(groups::Groups),
    /// Count letters over time, by error, topic or group
    Stats(stats::StatsCommand),
    /// Write letters as lines of JSON, whole or as they come
    Export(export::Export),
    /// Write letters back that were exported
    Import(import::Import),
    /// Send letters back, as a job that can be paused, resumed and watched
    Replay(replay::Replay),
    /// Say that letters need nothing more, and open the lanes that they closed
    Resolve(resolve::Resolve),
    /// Delete letters, as far as Kafka deletes
    Purge(purge::PurgeCommand),
    /// Remove what is kept under a key, and say what Kafka still keeps until when
    Erase(erase::Erase),
    /// Print the offsets of the records that became letters, for whoever reads a topic from the start
    Damaged(damaged::DamagedCommand),
}

impl DlqCommand {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let ran = runtime.block_on(async {
            let is_endless = matches!(&self.command, Command::Export(export) if export.is_endless());
            let run = match self.command {
                // A job ends what is on its way first, and says so itself.
                Command::Replay(replay) => return replay.run().await,
                other => other.run(),
            };
            tokio::select! {
                // First, so that it is listened for before anything is written.
                biased;
                () = redrive::stop_signal() => {
                    screen::progress("");
                    if is_endless {
                        return Ok(Exit::Ok);
                    }
                    screen::say("stopped; what was read of the letters stays in the index");
                    Ok(Exit::Failed)
                }
                ran = run => ran,
            }
        });
        // A thread may still wait for the broker: nobody waits for the thread.
        runtime.shutdown_background();
        ran
    }
}

impl Command {
    async fn run(self) -> io::Result<Exit> {
        match self {
            Self::List(list) => list.run().await,
            Self::Show(show) => show.run().await,
            Self::Groups(groups) => groups.run().await,
            Self::Stats(stats) => stats.run().await,
            Self::Export(export) => export.run().await,
            Self::Import(import) => import.run().await,
            Self::Replay(replay) => replay.run().await,
            Self::Resolve(resolve) => resolve.run().await,
            Self::Purge(purge) => purge.run().await,
            Self::Erase(erase) => erase.run().await,
            Self::Damaged(damaged) => damaged.run().await,
        }
    }
}
