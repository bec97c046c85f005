//! Where letters are: the cluster, the topics, and the index of them on this machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use redrive::{Clock, Settings, Timestamp};
use redrive_config::{Config, Link};
use redrive_core::Topic;
use redrive_letters::feed::{Fed, Feed, Progress, Which};
use redrive_letters::jobs::Followed;
use redrive_letters::{Error, Index, Query, Rebuilt};

use crate::cluster::{self, ClusterArgs};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::{letters, screen};

/// How long one waits before one is told how far it is.
const QUIET: Duration = Duration::from_secs(1);
/// How often one is told.
const TELL: Duration = Duration::from_millis(200);

#[derive(Args)]
pub(crate) struct Place {
    #[command(flatten)]
    pub(crate) file: ConfigFile,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The folder of the index, which may be deleted at any time
    #[arg(
        long,
        value_name = "FOLDER",
        long_help = "The folder of the index, which may be deleted at any time [default: `state` in [letters], then $XDG_STATE_HOME/redrive, then ~/.local/state/redrive]"
    )]
    state_folder: Option<PathBuf>,
    /// Only these letter topics, in place of those of the file
    #[arg(long, value_name = "TOPIC")]
    letters: Vec<Topic>,
    /// Only letter topics whose whole names match, in place of those that end in .dlq
    #[arg(long, value_name = "PATTERN")]
    letters_like: Vec<String>,
}

/// How to reach the cluster, and what is known of it beforehand.
pub(crate) struct Reached {
    pub(crate) settings: Settings,
    pub(crate) links: Vec<Link>,
    pub(crate) feed: Feed,
    pub(crate) config: Option<Config>,
    file: String,
}

/// Letters, up to date.
pub(crate) struct Opened {
    pub(crate) reached: Reached,
    pub(crate) index: Index,
    /// The letter topics that are meant and are there.
    pub(crate) topics: Vec<Topic>,
    pub(crate) now: Timestamp,
}

impl Place {
    /// What a command says to work with the same cluster.
    pub(crate) fn flags(&self, config: Option<&Config>) -> String {
        self.cluster.flags(config.map(|_| self.file.name()))
    }

    /// Whether the cluster is the broker inside a process that runs the file.
    pub(crate) fn is_embedded(&self, config: &Config) -> bool {
        self.cluster.settings(config).is_none()
    }

    /// How to reach the cluster; nothing is read yet.
    pub(crate) fn reach(&self) -> Result<Reached, Exit> {
        let (settings, config) = self.cluster.reach(&self.file)?;
        let folder = self.folder(config.as_ref())?;
        let which = self.which(config.as_ref()).map_err(|error| {
            screen::say(&format!("error: {}", screen::told(&error)));
            Exit::Usage
        })?;
        let feed = Feed::new(&settings, &folder, which);
        let links = config.as_ref().map(|config| config.letters.links.clone()).unwrap_or_default();
        Ok(Reached { settings, links, feed, config, file: self.file.name() })
    }

    /// What is asked for in words, with the letter topics of which it is asked where those are named.
    pub(crate) fn worded(&self, query: &Query) -> String {
        let named = self.letters.iter().map(|topic| format!("letters={topic}"));
        let like = self.letters_like.iter().map(|pattern| format!("letters-like={pattern}"));
        named.chain(like).chain([query.to_string()]).collect::<Vec<_>>().join(" ")
    }

    /// The index, after what is new in Kafka came in and what is gone left.
    pub(crate) async fn open(&self) -> Result<Opened, Exit> {
        let reached = self.reach()?;
        let (index, fed) = reached.catch_up().await?;
        if let Some(missing) = self.letters.iter().find(|topic| !fed.topics.contains(topic)) {
            screen::say(&format!(
                "error: there is no topic {missing}\nhelp: name letter topics that there are with --letters; without it, those of the file and those that end in .dlq are read"
            ));
            return Err(Exit::Failed);
        }
        if fed.topics.is_empty() {
            screen::say(
                "note: there are no letter topics here; name them with --letters TOPIC or --letters-like PATTERN",
            );
        }
        Ok(Opened { reached, index, topics: fed.topics, now: Clock::system().now().wall })
    }

    fn folder(&self, config: Option<&Config>) -> Result<PathBuf, Exit> {
        let found = letters::folder(self.state_folder.clone(), config);
        found.ok_or_else(|| {
            screen::say(
                "error: there is no home folder to keep the index in\nhelp: name a folder with --state-folder",
            );
            Exit::Usage
        })
    }

    fn which(&self, config: Option<&Config>) -> Result<Which, Error> {
        if !self.letters.is_empty() || !self.letters_like.is_empty() {
            return Which::new(self.letters.clone(), &self.letters_like);
        }
        letters::which(config)
    }
}

impl Reached {
    /// Brings the index up to date, and says what is worth saying.
    pub(crate) async fn catch_up(&self) -> Result<(Index, Fed), Exit> {
        let clock = Clock::system();
        let begun = clock.now().steady;
        let mut told = begun + QUIET - TELL;
        let caught = self.feed.catch_up(move |progress| {
            let now = clock.now().steady;
            if now.saturating_sub(told) >= TELL && now.saturating_sub(begun) >= QUIET {
                told = now;
                screen::progress(&far(progress));
            }
        });
        let caught = caught.await;
        screen::progress("");
        let (mut index, fed) = caught.map_err(|error| self.failed(&error))?;
        let followed = Followed::read(&self.settings).await.map_err(|error| self.failed(&error.into()))?;
        followed.state.hand_over(&mut index).map_err(|error| self.failed(&error))?;
        match &fed.rebuilt {
            Some(Rebuilt::Damaged(aside)) => screen::say(&format!(
                "note: the index of letters was damaged; it is now {} and was built anew from Kafka",
                aside.display()
            )),
            Some(Rebuilt::OtherVersion) => {
                screen::say(
                    "note: the index of letters was of another version and was built anew from Kafka",
                );
            }
            Some(Rebuilt::New) | None => {}
        }
        if fed.is_busy {
            screen::say(
                "note: another process reads the letters at the moment; what it has not read is missing here",
            );
        }
        Ok((index, fed))
    }

    /// The configuration file, as it is called.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Says what went wrong.
    pub(crate) fn failed(&self, error: &Error) -> Exit {
        match error {
            Error::Kafka(error) => cluster::failed(error, &self.file),
            Error::TooBroad(_) | Error::Pattern { .. } | Error::BadCursor(_) => {
                screen::say(&format!("error: {}", screen::told(error)));
                Exit::Usage
            }
            Error::NoLetter(_) => {
                screen::say(&format!(
                    "error: {}\nhelp: redrive dlq list shows those that are there",
                    screen::told(error)
                ));
                Exit::NothingMatched
            }
            error => {
                screen::say(&format!("error: {}", screen::told(error)));
                Exit::Failed
            }
        }
    }
}

fn far(progress: Progress) -> String {
    let Progress { read, of } = progress;
    let share = (read * 100).checked_div(of).unwrap_or(100);
    format!("reading letters: {read} of {of}, {share}%")
}
