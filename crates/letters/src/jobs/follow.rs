//! Reads `redrive.state`, and follows it.

use std::time::Duration;

use bytes::Bytes;
use redrive::{Clock, pauses};
use redrive_core::Origin;
use redrive_kafka::{Admin, Error, Outgoing, Passage, Reader, Settings, read_through};
use serde::Serialize;

use super::{Key, State, TopicIds, value};

/// What holds for all machines, as it is now and as it changes.
pub struct Followed {
    /// As it is.
    pub state: State,
    settings: Settings,
    next: i64,
    reader: Option<Reader>,
}

#[derive(Default)]
struct Folding {
    state: State,
    next: i64,
}

impl Followed {
    /// Reads all of it. Where there is no such topic nothing was ever written.
    pub async fn read(settings: &Settings) -> Result<Self, Error> {
        let admin = Admin::new(settings)?;
        let topic = pauses::topic();
        let is_there = admin.outline(std::slice::from_ref(&topic)).await?.contains_key(&topic);
        let Folding { mut state, next } = match is_there {
            true => read_through(settings, topic, vec![0], Folding::default(), Folding::pass).await?,
            false => Folding::default(),
        };
        let topics = TopicIds::ask(&admin, &state.topics()).await?;
        state.know(topics);
        Ok(Self { state, settings: settings.clone(), next, reader: None })
    }

    /// Makes the topic unless it is there, and reads all of it.
    pub async fn prepare(settings: &Settings) -> Result<Self, Error> {
        pauses::prepare(&Admin::new(settings)?).await?;
        Self::read(settings).await
    }

    /// Whether anything was ever written; otherwise there may be no topic to follow.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.next > 0
    }

    /// Takes in the next record, waiting for it. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Result<(), Error> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                let from = Origin { topic: pauses::topic(), partition: 0, offset: self.next };
                none.insert(Reader::from(&self.settings, from)?)
            }
        };
        let record = reader.next().await?;
        self.next = record.at.offset + 1;
        self.state.take(&record);
        Ok(())
    }

    /// Takes in records until it is so; whether it came to that in time.
    pub async fn until(
        &mut self,
        clock: &Clock,
        wait: Duration,
        is_so: impl Fn(&State) -> bool,
    ) -> Result<bool, Error> {
        let deadline = clock.now().steady.saturating_add(wait);
        while !is_so(&self.state) {
            tokio::select! {
                biased;
                took = self.next() => took?,
                () = clock.sleep_until(deadline) => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl Folding {
    fn pass(&mut self, passage: Passage) {
        match passage {
            // Only the newest of each key counts, so what was read before does no harm.
            Passage::Begin { from, .. } => self.next = from,
            Passage::Record(record) => {
                self.next = record.at.offset + 1;
                self.state.take(&record);
            }
        }
    }
}

/// A record of the topic with this value.
#[must_use]
pub fn outgoing<T: Serialize>(key: &Key, value: &T) -> Outgoing {
    packed(key, value::write(value))
}

/// The same with bytes.
pub(crate) fn packed(key: &Key, value: Bytes) -> Outgoing {
    Outgoing::to(pauses::topic()).partition(0).key(key.to_string()).value(value)
}
