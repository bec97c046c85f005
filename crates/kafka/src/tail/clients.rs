//! The clients of tails. Each has threads and connections and asks its brokers again and again, so a client for
//! each of a hundred subscriptions would cost more than all of their work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rdkafka::consumer::BaseConsumer;
use redrive_core::Topic;

use crate::settings::fetch_at_most;
use crate::{Error, Settings};

/// How often a client's errors are heard, and whether anybody needs it still.
const LOOK: Duration = Duration::from_millis(500);

/// About how many partitions a client follows at most. Each question to a broker names all of them, so more
/// would make every answer dearer.
const FULL: usize = 64;

/// How many bytes are asked for at once.
const FETCH: usize = 2 << 20;

/// Tails of one cluster, on few clients.
#[derive(Clone)]
pub struct Tails {
    settings: Settings,
    clients: Arc<Mutex<Vec<Arc<Client>>>>,
}

struct Client {
    /// What is followed, with about how many partitions each has.
    seats: Mutex<Vec<(Topic, usize)>>,
    consumer: BaseConsumer,
}

/// A tail's place on a client.
pub(super) struct Seat {
    topic: Topic,
    client: Arc<Client>,
}

impl Tails {
    /// No client yet: each is made when it is needed, and ends when it no longer is.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), clients: Arc::default() }
    }

    /// A place on a client that has room. Never two for one topic on the same: one tail's end would be the
    /// other's.
    pub(super) fn seat(&self, topic: &Topic, partitions: i32) -> Result<Seat, Error> {
        let partitions = usize::try_from(partitions).unwrap_or(1).max(1);
        let mut clients = lock(&self.clients);
        let client = match clients.iter().find(|client| client.has_room(topic, partitions)) {
            Some(client) => client.clone(),
            None => {
                let client = Arc::new(Client { seats: Mutex::default(), consumer: self.consumer()? });
                clients.push(client.clone());
                self.keep(client.clone());
                client
            }
        };
        lock(&client.seats).push((topic.clone(), partitions));
        Ok(Seat { topic: topic.clone(), client })
    }

    fn consumer(&self) -> Result<BaseConsumer, Error> {
        let mut config = self.settings.client();
        // librdkafka wants a group even where none is joined.
        config.set("group.id", "redrive-reader").set("enable.auto.commit", "false");
        config.set("auto.offset.reset", "error").set("isolation.level", "read_committed");
        // Small: what is fetched is soon copied, and a large log is taken over a piece at a time. librdkafka takes as much
        // again for each record, and its memory is kept once it was used.
        config.set("queued.max.messages.kbytes", "4096").set("fetch.queue.backoff.ms", "1");
        fetch_at_most(&mut config, FETCH);
        config.set("fetch.error.backoff.ms", "100");
        // A partition that is added waits for the fetch of the others that is under way, so this should be short;
        // but each costs the broker and us something while nothing happens, so not very short. What is
        // written ends it at once.
        config.set("fetch.wait.max.ms", "250");
        config.create().map_err(|source| Error::Client { brokers: self.settings.brokers.clone(), source })
    }

    /// Hears the client's errors until nobody else needs it, and ends it: here, as that waits for its threads.
    fn keep(&self, client: Arc<Client>) {
        let clients = self.clients.clone();
        let keeping = move || {
            loop {
                // Errors of the whole client: they are told partition by partition, or pass.
                while client.consumer.poll(Duration::ZERO).is_some() {}
                let mut clients = lock(&clients);
                // It is given out under this lock only: nobody but the list and this thread has it.
                if Arc::strong_count(&client) == 2 {
                    clients.retain(|one| !Arc::ptr_eq(one, &client));
                    return;
                }
                drop(clients);
                sleep(LOOK);
            }
        };
        thread::Builder::new().name("tails".to_owned()).spawn(keeping).expect("a thread can be started");
    }
}

impl Client {
    fn has_room(&self, topic: &Topic, partitions: usize) -> bool {
        let seats = lock(&self.seats);
        let taken: usize = seats.iter().map(|(_, partitions)| partitions).sum();
        taken + partitions <= FULL && seats.iter().all(|(other, _)| other != topic)
    }
}

impl Seat {
    pub(super) fn consumer(&self) -> &BaseConsumer {
        &self.client.consumer
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.client.seats).retain(|(topic, _)| *topic != self.topic);
    }
}

#[allow(clippy::disallowed_methods, reason = "nobody waits for it")]
fn sleep(time: Duration) {
    thread::sleep(time);
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
