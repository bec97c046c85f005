//! One transactional id as plain data: who holds it, and where its transaction stands.
//!
//! Every decision takes the state as it is and the time, and returns the state to come. The caller
//! writes that down and only then takes it for the truth: a state that was not written never was.

use std::collections::BTreeSet;

use kafka_protocol::error::ResponseError;

use super::Ending;

/// The last epoch a producer may get: one more must be left to fence it with.
const LAST_EPOCH: i16 = i16::MAX - 1;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) partitions: BTreeSet<(String, i32)>,
    pub(super) groups: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// The producer was initialised and has not begun.
    Empty,
    Ongoing {
        since_ms: i64,
        touched: Touched,
    },
    /// Decided and written down; the markers are on their way.
    Prepared {
        commit: bool,
        touched: Touched,
    },
    Complete {
        commit: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transaction {
    pub(super) id: String,
    pub(super) producer_id: i64,
    pub(super) epoch: i16,
    /// What the producer had before its last bump, by which a repeated request is known; -1 if
    /// another producer took the id over.
    pub(super) last_producer_id: i64,
    pub(super) last_epoch: i16,
    pub(super) timeout_ms: i32,
    pub(super) updated_ms: i64,
    pub(super) phase: Phase,
}

/// The producer id and epoch a producer believes to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) producer_id: i64,
    pub(super) epoch: i16,
}

/// The next state after InitProducerId.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Initialised {
    Ready(Transaction),
    /// The open transaction is aborted first, under an epoch that shuts its producer out.
    Fenced(Transaction, Ending),
    /// All epochs of this producer id are used: it takes a new id.
    NeedsProducerId,
}

impl Transaction {
    pub(super) fn first(id: &str, producer_id: i64, timeout_ms: i32, now: i64) -> Self {
        Self {
            id: id.to_owned(),
            producer_id,
            epoch: 0,
            last_producer_id: -1,
            last_epoch: -1,
            timeout_ms,
            updated_ms: now,
            phase: Phase::Empty,
        }
    }

    /// `claimed` is what a producer gives that recovers from an error and wants to keep its id.
    pub(super) fn init(
        &self,
        claimed: Option<Identity>,
        timeout_ms: i32,
        now: i64,
    ) -> Result<Initialised, ResponseError> {
        if claimed.is_some_and(|claimed| !self.may_claim(claimed)) {
            return Err(ResponseError::ProducerFenced);
        }
        match &self.phase {
            Phase::Prepared { .. } => Err(ResponseError::ConcurrentTransactions),
            // Stricter than Kafka, which lets any earlier holder of the producer id abort.
            Phase::Ongoing { .. } if claimed.is_some_and(|claimed| claimed.epoch != self.epoch) => {
                Err(ResponseError::ProducerFenced)
            }
            Phase::Ongoing { touched, .. } => {
                let (next, ending) = self.fence(touched, now);
                Ok(Initialised::Fenced(next, ending))
            }
            Phase::Empty | Phase::Complete { .. } => self.bump(claimed, timeout_ms, now),
        }
    }

    fn may_claim(&self, claimed: Identity) -> bool {
        // The last: the id was exhausted and replaced, and the answer that said so was lost.
        claimed.producer_id == self.producer_id
            || (claimed.producer_id == self.last_producer_id && claimed.epoch >= LAST_EPOCH)
    }

    fn bump(
        &self,
        claimed: Option<Identity>,
        timeout_ms: i32,
        now: i64,
    ) -> Result<Initialised, ResponseError> {
        let next = Self {
            timeout_ms,
            updated_ms: now,
            phase: Phase::Empty,
            ..self.clone()
        };
        let claims_last = claimed.is_some_and(|claimed| claimed.epoch == self.last_epoch);
        let claims_this = claimed.is_none_or(|claimed| claimed.epoch == self.epoch);
        if claims_this && self.epoch >= LAST_EPOCH {
            return Ok(Initialised::NeedsProducerId);
        }
        if claims_this {
            let last_epoch = if claimed.is_some() { self.epoch } else { -1 };
            let last_producer_id = self.producer_id;
            return Ok(Initialised::Ready(Self {
                epoch: self.epoch + 1,
                last_epoch,
                last_producer_id,
                ..next
            }));
        }
        // The same request again: the epoch it already got.
        if claims_last {
            Ok(Initialised::Ready(next))
        } else {
            Err(ResponseError::ProducerFenced)
        }
    }

    /// The same transactional id under a fresh producer id.
    pub(super) fn rotate(
        &self,
        producer_id: i64,
        claimed: Option<Identity>,
        timeout_ms: i32,
        now: i64,
    ) -> Self {
        Self {
            last_producer_id: self.producer_id,
            last_epoch: if claimed.is_some() { self.epoch } else { -1 },
            ..Self::first(&self.id, producer_id, timeout_ms, now)
        }
    }

    /// Aborts under a later epoch: the producer is shut out should it come back.
    fn fence(&self, touched: &Touched, now: i64) -> (Self, Ending) {
        let fenced = Self {
            epoch: self.epoch.saturating_add(1),
            last_epoch: -1,
            ..self.clone()
        };
        fenced.prepare(false, touched, now)
    }

    fn prepare(&self, commit: bool, touched: &Touched, now: i64) -> (Self, Ending) {
        let phase = Phase::Prepared {
            commit,
            touched: touched.clone(),
        };
        (
            Self {
                updated_ms: now,
                phase,
                ..self.clone()
            },
            self.ending_of(commit, touched),
        )
    }

    fn ending_of(&self, commit: bool, touched: &Touched) -> Ending {
        Ending {
            transactional_id: self.id.clone(),
            producer_id: self.producer_id,
            epoch: self.epoch,
            commit,
            partitions: touched.partitions.iter().cloned().collect(),
            groups: touched.groups.iter().cloned().collect(),
        }
    }

    /// That the request comes from the present holder of the id.
    fn check_holder(&self, identity: Identity) -> Result<(), ResponseError> {
        if identity.producer_id != self.producer_id {
            return Err(ResponseError::InvalidProducerIdMapping);
        }
        if identity.epoch != self.epoch {
            return Err(ResponseError::ProducerFenced);
        }
        Ok(())
    }

    /// The transaction touches more, or begins; `None` if nothing is new.
    pub(super) fn add(
        &self,
        identity: Identity,
        more: &Touched,
        now: i64,
    ) -> Result<Option<Self>, ResponseError> {
        self.check_holder(identity)?;
        let (since_ms, before) = match &self.phase {
            Phase::Prepared { .. } => return Err(ResponseError::ConcurrentTransactions),
            Phase::Ongoing { touched, .. } if touched.includes(more) => return Ok(None),
            Phase::Ongoing { since_ms, touched } => (*since_ms, touched.clone()),
            Phase::Empty | Phase::Complete { .. } => (now, Touched::default()),
        };
        let phase = Phase::Ongoing {
            since_ms,
            touched: before.and(more),
        };
        Ok(Some(Self {
            updated_ms: now,
            phase,
            ..self.clone()
        }))
    }

    /// `None` if it already ended so and only the answer was lost.
    pub(super) fn end(
        &self,
        identity: Identity,
        commit: bool,
        now: i64,
    ) -> Result<Option<(Self, Ending)>, ResponseError> {
        self.check_holder(identity)?;
        match &self.phase {
            Phase::Empty => Err(ResponseError::InvalidTxnState),
            Phase::Complete { commit: done } if *done == commit => Ok(None),
            Phase::Prepared { commit: decided, .. } if *decided == commit => {
                Err(ResponseError::ConcurrentTransactions)
            }
            Phase::Complete { .. } | Phase::Prepared { .. } => Err(ResponseError::InvalidTxnState),
            Phase::Ongoing { touched, .. } => Ok(Some(self.prepare(commit, touched, now))),
        }
    }

    /// When the transaction has taken longer than its producer allowed itself.
    pub(super) fn expires_ms(&self) -> Option<i64> {
        match &self.phase {
            Phase::Ongoing { since_ms, .. } => Some(since_ms.saturating_add(i64::from(self.timeout_ms))),
            Phase::Empty | Phase::Prepared { .. } | Phase::Complete { .. } => None,
        }
    }

    /// Ends the transaction if its time is over.
    pub(super) fn expire(&self, now: i64) -> Option<(Self, Ending)> {
        match &self.phase {
            Phase::Ongoing { touched, .. } if self.expires_ms().is_some_and(|at| at <= now) => {
                Some(self.fence(touched, now))
            }
            Phase::Ongoing { .. } | Phase::Empty | Phase::Prepared { .. } | Phase::Complete { .. } => None,
        }
    }

    /// What is left to carry out.
    pub(super) fn ending(&self) -> Option<Ending> {
        match &self.phase {
            Phase::Empty | Phase::Ongoing { .. } | Phase::Complete { .. } => None,
            Phase::Prepared { commit, touched } => Some(self.ending_of(*commit, touched)),
        }
    }

    /// All of `ending` was carried out; `None` if that is not what is under way.
    pub(super) fn complete(&self, ending: &Ending, now: i64) -> Option<Self> {
        match &self.phase {
            Phase::Prepared { commit, .. }
                if *commit == ending.commit
                    && self.producer_id == ending.producer_id
                    && self.epoch == ending.epoch =>
            {
                Some(Self {
                    updated_ms: now,
                    phase: Phase::Complete { commit: *commit },
                    ..self.clone()
                })
            }
            Phase::Prepared { .. } | Phase::Empty | Phase::Ongoing { .. } | Phase::Complete { .. } => None,
        }
    }

    /// That this producer has the transaction open and named what it now writes to.
    pub(super) fn verify(&self, identity: Identity, needs: &Touched) -> Result<(), ResponseError> {
        self.check_holder(identity)?;
        match &self.phase {
            Phase::Ongoing { touched, .. } if touched.includes(needs) => Ok(()),
            Phase::Ongoing { .. } | Phase::Empty | Phase::Prepared { .. } | Phase::Complete { .. } => {
                Err(ResponseError::InvalidTxnState)
            }
        }
    }

    pub(super) fn is_forgettable(&self, idle_ms: i64, now: i64) -> bool {
        match &self.phase {
            Phase::Empty | Phase::Complete { .. } => now - self.updated_ms >= idle_ms,
            Phase::Ongoing { .. } | Phase::Prepared { .. } => false,
        }
    }
}

impl Touched {
    pub(super) fn partition(topic: &str, partition: i32) -> Self {
        Self {
            partitions: BTreeSet::from([(topic.to_owned(), partition)]),
            groups: BTreeSet::new(),
        }
    }

    pub(super) fn group(id: &str) -> Self {
        Self {
            partitions: BTreeSet::new(),
            groups: BTreeSet::from([id.to_owned()]),
        }
    }

    fn includes(&self, other: &Self) -> bool {
        self.partitions.is_superset(&other.partitions) && self.groups.is_superset(&other.groups)
    }

    fn and(mut self, other: &Self) -> Self {
        self.partitions.extend(other.partitions.iter().cloned());
        self.groups.extend(other.groups.iter().cloned());
        self
    }
}
