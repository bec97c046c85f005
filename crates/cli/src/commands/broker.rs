//! `redrive broker`: the embedded broker on its own, until it is told to stop.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use redrive_broker::{Broker, BrokerConfig, Data, TopicOutcome};

use crate::exit::Exit;
use crate::{human, screen};

#[derive(Args)]
#[command(after_help = "Examples:
  redrive broker
  redrive broker --data ./data --topic orders:3
  redrive broker --listen 127.0.0.1:0          # any free port; the address is printed

The address goes to stdout once clients can connect. Ctrl-C or SIGTERM stops it; nothing that was
acknowledged is lost, with kill -9 neither. It is for demos, tests and one machine: there is one
node and no authentication.")]
pub(crate) struct BrokerCommand {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:9092", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The folder that holds everything; without it all is kept in memory and gone at the end
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A topic to make unless it is there, with its number of partitions; one that has fewer is given
    /// more; may be repeated
    #[arg(long = "topic", value_name = "NAME:PARTITIONS", value_parser = new_topic)]
    topics: Vec<(String, i32)>,
    /// Do not make a topic when a client asks for one that is not there
    #[arg(long)]
    no_auto_create: bool,
    /// Accept an address that others can reach, although there is no authentication
    #[arg(long)]
    allow_remote: bool,
}

fn new_topic(text: &str) -> Result<(String, i32), String> {
    let (name, partitions) = text.rsplit_once(':').unwrap_or((text, "1"));
    name.parse::<redrive_core::Topic>().map_err(|error| error.to_string())?;
    let partitions = partitions.parse().ok().filter(|number| (1..=10_000).contains(number));
    let partitions =
        partitions.ok_or("write NAME:PARTITIONS, with 1 to 10000 partitions, such as orders:3")?;
    Ok((name.to_owned(), partitions))
}

impl BrokerCommand {
    pub(crate) fn run(self) -> io::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> io::Result<Exit> {
        // What goes wrong inside is told to whoever runs it.
        tracing_subscriber::fmt()
            .with_writer(io::stderr)
            .with_ansi(screen::is_coloured())
            .with_max_level(tracing::Level::WARN)
            .init();
        let data = self.data.map_or(Data::Memory, Data::Dir);
        let config = BrokerConfig {
            listen: self.listen,
            allow_remote: self.allow_remote,
            data: data.clone(),
            auto_create_topics: !self.no_auto_create,
            ..BrokerConfig::default()
        };
        // Listened for before anyone can connect, so that no stop is missed.
        let stop = stop_signal()?;
        let broker = match Broker::start(config).await {
            Ok(broker) => broker,
            Err(error) => return Ok(refused(&error)),
        };
        for (topic, partitions) in &self.topics {
            match broker.create_topic(topic, *partitions) {
                Ok(TopicOutcome::Made | TopicOutcome::Unchanged) => {}
                Ok(TopicOutcome::Grown { from }) => screen::say(&format!(
                    "{topic} had {from} partitions and now has {partitions}; keys may map to other partitions"
                )),
                Err(error) => {
                    broker.shutdown().await;
                    return Ok(refused(&error));
                }
            }
        }
        match &data {
            Data::Memory => {
                screen::say("everything is kept in memory and gone at the end; --data DIR keeps it");
            }
            Data::Dir(folder) => screen::say(&format!("everything is kept in {}", folder.display())),
        }
        let made = human::count(self.topics.len() as u64, "topic", "topics");
        screen::say(&format!("{made} asked for; clients may connect; Ctrl-C stops"));
        screen::data(&format!("{}\n", broker.address()))?;
        stop.await;
        screen::say("stopping");
        broker.shutdown().await;
        screen::say("stopped");
        Ok(Exit::Ok)
    }
}

fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn refused(error: &redrive_broker::Error) -> Exit {
    let mut text = format!("error: {}", screen::told(error));
    let help = match error {
        redrive_broker::Error::Remote { .. } => Some("listen on 127.0.0.1, or say --allow-remote"),
        redrive_broker::Error::Listen { .. } => {
            Some("is another broker running there? --listen 127.0.0.1:0 takes a free port")
        }
        redrive_broker::Error::InUse { .. } => Some("stop the other one, or name another folder with --data"),
        _ => None,
    };
    if let Some(help) = help {
        text.push_str(&format!("\nhelp: {help}"));
    }
    screen::say(&text);
    Exit::Failed
}
