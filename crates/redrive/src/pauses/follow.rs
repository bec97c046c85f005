//! Pauses in force: read when a worker starts, and followed from there on.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::Origin;
use redrive_kafka::{Admin, Error, Reader, Settings};
use tokio::sync::watch;
use tracing::{debug, warn};

use super::{Pauses, Wanted, topic};
use crate::clock::Clock;
use crate::worker::{Control, back_off, chain};

/// How often it is looked for the topic while there is none.
const LOOK: Duration = Duration::from_secs(2);

/// The longest pause before it is read again.
const LONGEST: Duration = Duration::from_secs(10);

/// Whether it is known what is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Known {
    /// Nobody has looked yet.
    NotYet,
    /// It could not be read: nothing may start that somebody may have paused.
    No(String),
    /// Everything is as it is wanted.
    Yes,
}

/// Reads what is wanted and has it so, for ever.
pub(crate) async fn follow(
    settings: Settings,
    admin: Arc<Admin>,
    control: Control,
    known: watch::Sender<Known>,
) {
    let clock = Clock::system();
    let (mut tries, mut told) = (0, String::new());
    loop {
        let wait = match once(&settings, &admin, &control, &known).await {
            Ok(()) => {
                tries = 0;
                told.clear();
                LOOK
            }
            Err(error) => {
                tries += 1;
                let what = chain(&error);
                known.send_if_modified(|known| {
                    // What is known stays in force.
                    let is_news = *known != Known::Yes;
                    if is_news {
                        *known = Known::No(what.clone());
                    }
                    is_news
                });
                if told != what {
                    warn!(error = what, "what is paused cannot be read; it stays as it is");
                    told = what;
                }
                back_off(tries - 1).min(LONGEST)
            }
        };
        clock.sleep(wait).await;
    }
}

/// Returns where there is no topic to follow.
async fn once(
    settings: &Settings,
    admin: &Admin,
    control: &Control,
    known: &watch::Sender<Known>,
) -> Result<(), Error> {
    let mut pauses = Pauses::read(settings, admin).await?;
    for (topic, group) in control.subscriptions() {
        control.pause(&topic, &group, pauses.of(&topic, &group));
    }
    known.send_replace(Known::Yes);
    let mut ends = pauses.ends.iter().map(|(partition, end)| Origin {
        topic: topic(),
        partition: *partition,
        offset: *end,
    });
    let Some(first) = ends.next() else { return Ok(()) };
    let reader = Reader::from_each(settings, first, &ends.collect::<Vec<_>>())?;
    loop {
        let record = reader.next().await?;
        let wanted = Wanted::read(&record);
        let Some(Wanted { topic, group, .. }) = wanted.clone() else {
            debug!(at = %record.at, "not a pause");
            continue;
        };
        pauses.take(wanted);
        control.pause(&topic, &group, pauses.of(&topic, &group));
    }
}
