//! What a consumer reports, and the receiver's end of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use redrive_core::Record;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};

use crate::Error;
use crate::wake::Wake;

/// One stretch of reading a partition, from `begin` to the next `begin`, `give_up` or loss. Later ones
/// are greater, whatever the partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn(pub(crate) u64);

/// Records of one partition, in order, none twice in a turn.
#[derive(Debug)]
pub struct Batch {
    /// Whose.
    pub partition: i32,
    /// In which turn they were read.
    pub turn: Turn,
    /// At least one.
    pub records: Vec<Record>,
    /// The sizes of their keys and values, together.
    pub bytes: usize,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// Records came.
    Records(Batch),
    /// These partitions are ours from now on; nothing is fetched before `begin`. With none, the group has
    /// nothing new for us, but we are in it.
    Assigned(Vec<i32>),
    /// The group asks these back and waits until `give_up` names every one. Until then they are ours: go
    /// on, drain, commit. No partition is fetched meanwhile, of those that stay neither.
    Revoked(Vec<i32>),
    /// These are no longer ours, and may be another's already: neither drain nor commit.
    Lost(Vec<i32>),
    /// The offset to read from is not, or no longer, there. The partition stands still until it is begun
    /// again.
    OutOfRange {
        /// Whose.
        partition: i32,
        /// In which turn.
        turn: Turn,
    },
    /// A partition cannot be fetched at the moment. librdkafka goes on trying.
    PartitionFailed {
        /// Which.
        partition: i32,
        /// Why.
        error: Error,
    },
    /// The consumer is of no use any more: leave, and join anew.
    Failed(Error),
    /// Something is wrong with brokers, rights or the topic. librdkafka goes on trying.
    Trouble(Error),
}

impl Event {
    fn bytes(&self) -> usize {
        match self {
            Self::Records(batch) => batch.bytes,
            Self::Assigned(_)
            | Self::Revoked(_)
            | Self::Lost(_)
            | Self::OutOfRange { .. }
            | Self::PartitionFailed { .. }
            | Self::Failed(_)
            | Self::Trouble(_) => 0,
        }
    }
}

/// Where the events come out. What concerns the group overtakes records, however many wait.
pub struct Events {
    pub(crate) control: UnboundedReceiver<Event>,
    pub(crate) data: Receiver<Vec<Event>>,
    pub(crate) ready: VecDeque<Event>,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) wake: Arc<Wake>,
}

/// The bytes of records that are handed over and not taken yet.
pub(crate) struct Waiting {
    bytes: AtomicUsize,
    most: usize,
}

impl Waiting {
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), most }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::SeqCst) >= self.most
    }

    pub(crate) fn add(&self, events: &[Event]) {
        let bytes = events.iter().map(Event::bytes).sum();
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }
}

impl Events {
    /// The next event; one of records only if they are wanted. Cancel-safe.
    pub async fn next_if(&mut self, records: bool) -> Option<Event> {
        if records {
            return self.next().await;
        }
        self.control.recv().await
    }

    /// Whether an event other than records waits to be taken.
    #[must_use]
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// The next event; none when the consumer has left. Nothing is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.try_next() {
                return Some(event);
            }
            tokio::select! {
                biased;
                Some(event) = self.control.recv() => return Some(event),
                more = self.data.recv() => match more {
                    Some(more) => self.ready.extend(more),
                    // Only the polling thread sends records: it has ended.
                    None => return self.control.try_recv().ok(),
                },
            }
        }
    }

    /// The next event, if there is one by now.
    pub fn try_next(&mut self) -> Option<Event> {
        if let Ok(event) = self.control.try_recv() {
            return Some(event);
        }
        if self.ready.is_empty() {
            self.ready.extend(self.data.try_recv().ok()?);
        }
        let event = self.ready.pop_front()?;
        self.waiting.bytes.fetch_sub(event.bytes(), Ordering::SeqCst);
        if !self.waiting.is_full() {
            self.wake.room();
        }
        Some(event)
    }

    /// How many bytes of records wait to be taken.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.bytes.load(Ordering::SeqCst)
    }
}
