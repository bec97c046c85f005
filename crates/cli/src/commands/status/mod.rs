//! `redrive status`: what is wrong now and what mends it, on one screen. Kafka itself is asked, whether or not
//! somebody consumes, and the process that runs the file if it answers.

mod flows;
mod letters;
mod look;
mod process;
mod replays;
mod shelves;
mod shown;
mod topics;
mod trouble;

use std::io;
use std::time::Duration;

use clap::Args;
use redrive::{Clock, pauses::Pauses};
use redrive_kafka::Admin;
use redrive_letters::jobs::Followed;

use crate::cluster;
use crate::commands::dlq::place::Place;
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;
use crate::when::length;
use look::{Flow, Look};
use shown::Seen;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive status
  redrive status --check -o json           for scripts: exit code 1 if something is wrong
  redrive status --brokers localhost:9092  without a file: every shelf and letter topic there is

Looked at are the topics, who consumes them and how far, what is paused, what waits on shelves, which lanes letters
closed, failure groups that grow, letters that a retention deletes, and replays that did not go well; beside that, what the
process at [server] of the file says, if it answers. Nothing is changed.
Exit codes: 0 it could look, 1 it could not, or something is wrong and --check was said.")]
pub(crate) struct StatusCommand {
    #[command(flatten)]
    place: Place,
    /// End with 1 if something is wrong
    #[arg(long)]
    check: bool,
    /// So long without progress is wrong: of a record that is not handled, of a replay that is not over
    #[arg(long, value_name = "DURATION", value_parser = length, default_value = "5m")]
    patience: Duration,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl StatusCommand {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let ran = runtime.block_on(async {
            match self.look().await {
                Ok(seen) => {
                    seen.show(self.output)?;
                    let is_wrong = self.check && !seen.wrong.is_empty();
                    Ok(if is_wrong { Exit::Failed } else { Exit::Ok })
                }
                Err(exit) => Ok(exit),
            }
        });
        // A thread may still wait for the broker: nobody waits for the thread.
        runtime.shutdown_background();
        ran
    }

    async fn look(&self) -> Result<Seen, Exit> {
        let reached = self.place.reach()?;
        let failed = |error: redrive_kafka::Error| cluster::failed(&error, &self.place.file.name());
        // Whatever comes later, it is first known whether anybody is there.
        let admin = Admin::new(&reached.settings).map_err(failed)?;
        let names = admin.topics().await.map_err(failed)?;
        let (mut index, fed) = reached.catch_up().await?;
        let followed = Followed::read(&reached.settings).await.map_err(failed)?;
        let pauses = Pauses::read(&reached.settings, &admin).await.map_err(failed)?;
        let config = reached.config.as_ref();
        let mut look = Look {
            settings: &reached.settings,
            admin: &admin,
            config,
            flags: self.place.flags(config),
            file: self.place.file.name(),
            now: Clock::system().now().wall,
            patience: self.patience,
            wrong: Vec::new(),
        };
        let process = match config {
            Some(config) => process::ask(&config.server).await,
            None => None,
        };
        let has_topics = config.is_some_and(|config| !self.place.is_embedded(config));
        if has_topics {
            topics::look(&mut look, &names).await?;
        }
        if let (Some(process), Some(config)) = (&process, config) {
            process.look(&mut look, config);
        }
        let views = shelves::read(&mut look, &names).await?;
        let mut flows = Flow::of(config, &views, &pauses);
        flows.retain(|flow| names.contains(&flow.topic));
        for flow in &flows {
            let is_run = process.as_ref().is_some_and(|process| process.runs(flow));
            let view = views.iter().find(|view| flow.shelf.as_ref() == Some(view.shelf()));
            flows::look(&mut look, flow, view, pauses.of(&flow.topic, &flow.group), is_run).await?;
        }
        for view in &views {
            shelves::closed(&mut look, view, &mut index).map_err(|error| reached.failed(&error))?;
        }
        let letters = letters::look(&mut look, &mut index, &fed.topics).await;
        let letters = letters.map_err(|error| reached.failed(&error))?;
        replays::look(&mut look, &followed.state);
        let asked = config.map(|config| (config.server.listen, process.is_some()));
        screen::progress("");
        Ok(Seen { wrong: look.wrong, subscriptions: flows.len(), letters, asked, at: look.now })
    }
}
