//! `redrive run`: every subscription of a configuration in one process, until it is told to stop.

mod logs;
mod open;
mod reload;
mod signals;
mod told;

use std::io;
use std::time::Duration;

use clap::Args;
use redrive::{Clock, Cluster, Running, Worker};
use redrive_config::{Config, Handler, Subscription};
use redrive_push::Traces;
use redrive_server::{Listener, Serving, Subscription as Seen, Watched};

use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::screen;
use reload::Reloader;
use signals::{Signal, Signals};

/// How much longer than what runs may take a stop may take: to write down what is done, and to leave.
const LEAVE: Duration = Duration::from_secs(10);

#[derive(Args)]
#[command(after_help = "Examples:
  redrive run
  redrive run -c redrive.toml
  kill -HUP PID        reads the file again: policies, rules, limits
  kill -TERM PID       stops: what runs may end, offsets are committed; a second Ctrl-C ends at once

Each subscription is on its own: one that cannot start, or fails, is tried again and holds up no other.
What goes on is told at the address of [server]: /healthz, /readyz, /metrics, and
/api/v1/..., which also deals with letters, replays and waiting records: /api/v1/openapi.json.
With brokers = \"embedded\" the broker is inside this process, at kafka.listen for every other command.")]
pub(crate) struct Run {
    #[command(flatten)]
    file: ConfigFile,
    /// Go on where offsets are gone, rather than stop their partition and say so
    #[arg(long)]
    accept_loss: bool,
}

impl Run {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let config = match self.file.read() {
            Ok(config) => open::settled(config),
            Err(exit) => return Ok(exit),
        };
        let traces = match open::traces(&config, &self.file.name()) {
            Ok(traces) => traces,
            Err(exit) => return Ok(exit),
        };
        let subscriptions = match open::handled(&config, traces.as_ref(), &self.file.name()) {
            Ok(subscriptions) => subscriptions,
            Err(exit) => return Ok(exit),
        };
        logs::start(config.log);
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let exit = runtime.block_on(self.serve(config, subscriptions, traces));
        // Whoever still waits for a broker that is gone is not waited for.
        runtime.shutdown_background();
        exit
    }

    async fn serve(
        &self,
        config: Config,
        subscriptions: Vec<redrive::Subscription>,
        traces: Option<Traces>,
    ) -> io::Result<Exit> {
        // Listened for before anything starts, so that no stop is missed.
        let mut signals = Signals::listen()?;
        let token = config.server.token.as_ref().map(|token| token.0.clone());
        let listener = match Listener::bind(config.server.listen, token).await {
            Ok(listener) => listener,
            Err(error) => return Ok(open::not_listening(&error)),
        };
        let cluster = match open::cluster(&config).await {
            Ok(cluster) => cluster,
            Err(exit) => return Ok(exit),
        };
        if let Some(traces) = &traces {
            traces.start();
        }
        let running = match self.start(&config, &cluster, subscriptions) {
            Ok(running) => running,
            Err(error) => return Ok(open::not_started(&error)),
        };
        told::started(&config, &cluster, &listener);
        let serving = listener.serve(watched(&config, &running), open::letters(&config, &cluster));
        let reloader = Reloader::new(self.file.clone(), config.clone(), running.control(), traces);
        while let Signal::Reload = signals.next().await {
            reloader.reload();
        }
        // Who has no more attempts to come lets the last spans go.
        drop(reloader);
        Ok(stop(&config, running, serving, signals).await)
    }

    fn start(
        &self,
        config: &Config,
        cluster: &Cluster,
        subscriptions: Vec<redrive::Subscription>,
    ) -> Result<Running, redrive::Error> {
        let mut worker =
            Worker::new(cluster).config_file(self.file.name()).accept_loss(self.accept_loss).heed_pauses();
        if let Some(service) = &config.service {
            worker = worker.service(service);
        }
        subscriptions.into_iter().fold(worker, Worker::subscribe).start_each()
    }
}

fn watched(config: &Config, running: &Running) -> Watched {
    let named = config.subscriptions.iter().zip(running.statuses());
    let seen =
        named.map(|(subscription, status)| Seen { name: subscription.name.clone(), status: status.clone() });
    Watched {
        subscriptions: seen.collect(),
        dropped_events: redrive_push::dropped_events,
        dropped_spans: redrive_push::dropped_spans,
    }
}

/// What runs may end; whoever asks a second time does not want to wait for it.
async fn stop(config: &Config, running: Running, serving: Serving, mut signals: Signals) -> Exit {
    screen::say("stopping: nothing new starts, what runs may end; a second Ctrl-C ends at once");
    let longest = config.subscriptions.iter().map(longest_stop).max().unwrap_or_default();
    let clock = Clock::system();
    let stopping = async {
        // Replays first, that what they sent is told of by workers as long as they can.
        serving.stop(LEAVE).await;
        let stopped = running.stop().await;
        redrive_push::stopped().await;
        stopped
    };
    tokio::select! {
        stopped = stopping => match stopped {
            Ok(()) => {
                screen::say("stopped");
                Exit::Ok
            }
            Err(error) => {
                screen::say(&format!("error: {}", screen::told(&error)));
                Exit::Failed
            }
        },
        () = signals.stop() => {
            screen::say("ended at once: what ran is tried again by whoever has its partitions next");
            Exit::Failed
        }
        () = clock.sleep(longest.saturating_add(LEAVE * 2)) => {
            screen::say("error: it did not stop in time; what ran is tried again by whoever has its partitions next");
            Exit::Failed
        }
    }
}

/// How long what runs of a subscription may take to end, its program included.
fn longest_stop(subscription: &Subscription) -> Duration {
    let program = match &subscription.handler {
        Some(Handler::Command(command)) => command.stop_timeout,
        Some(Handler::Http(_)) | None => Duration::ZERO,
    };
    subscription.drain_timeout.saturating_add(program)
}
