//! InitProducerId: an id of one's own for an idempotent producer; for a transactional one the next
//! epoch of its id, by which whoever held it before is shut out.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};
use tracing::warn;

use super::book::Book;
use super::transaction::{Identity, Initialised, Transaction};
use super::{Ending, Transactions};
use crate::clock;

/// What InitProducerId comes to.
#[derive(Debug)]
pub(crate) enum Init {
    /// To be sent.
    Reply(InitProducerIdResponse),
    /// To be carried out and completed; then the same request is to be asked again.
    EndFirst(Ending),
}

enum Step {
    Granted(Identity),
    EndFirst(Ending),
}

impl Transactions {
    /// Gives the producer its id and epoch, once no transaction of its predecessor is open.
    pub(crate) fn init_producer_id(&self, req: &InitProducerIdRequest, version: i16) -> Init {
        match self.initialise(req, clock::now_ms()) {
            Ok(Step::EndFirst(ending)) => Init::EndFirst(ending),
            Ok(Step::Granted(identity)) => Init::Reply(
                InitProducerIdResponse::default()
                    .with_producer_id(ProducerId(identity.producer_id))
                    .with_producer_epoch(identity.epoch),
            ),
            Err(error) => {
                let error = match error {
                    // What older clients know it by.
                    ResponseError::ProducerFenced if version < 4 => ResponseError::InvalidProducerEpoch,
                    other => other,
                };
                Init::Reply(
                    InitProducerIdResponse::default()
                        .with_error_code(error.code())
                        .with_producer_id(ProducerId(-1))
                        .with_producer_epoch(-1),
                )
            }
        }
    }

    fn initialise(&self, req: &InitProducerIdRequest, now: i64) -> Result<Step, ResponseError> {
        let mut book = self.book();
        let Some(id) = &req.transactional_id else {
            return Ok(Step::Granted(Identity {
                producer_id: fresh(&mut book)?,
                epoch: 0,
            }));
        };
        let timeout_ms = req.transaction_timeout_ms;
        if id.is_empty() {
            return Err(ResponseError::InvalidRequest);
        }
        if timeout_ms <= 0 || timeout_ms > self.0.config.max_timeout_ms {
            return Err(ResponseError::InvalidTransactionTimeout);
        }
        let claimed = claimed(req)?;
        let Some(known) = book.transactions.get(id.as_str()).cloned() else {
            let first = Transaction::first(id, fresh(&mut book)?, timeout_ms, now);
            return grant(&mut book, first, now);
        };
        match known.init(claimed, timeout_ms, now)? {
            Initialised::Ready(next) => grant(&mut book, next, now),
            Initialised::NeedsProducerId => {
                let next = known.rotate(fresh(&mut book)?, claimed, timeout_ms, now);
                grant(&mut book, next, now)
            }
            Initialised::Fenced(next, ending) => {
                put(&mut book, next, now)?;
                Ok(Step::EndFirst(ending))
            }
        }
    }
}

fn grant(book: &mut Book, next: Transaction, now: i64) -> Result<Step, ResponseError> {
    let identity = Identity {
        producer_id: next.producer_id,
        epoch: next.epoch,
    };
    put(book, next, now)?;
    Ok(Step::Granted(identity))
}

fn fresh(book: &mut Book) -> Result<i64, ResponseError> {
    book.fresh_producer_id().map_err(|error| {
        warn!(%error, "cannot write down a block of producer ids");
        ResponseError::CoordinatorNotAvailable
    })
}

/// Written down, or the request is to be tried again.
pub(super) fn put(book: &mut Book, next: Transaction, now: i64) -> Result<(), ResponseError> {
    let id = next.id.clone();
    book.write(next, now).map_err(|error| {
        warn!(transactional_id = id, %error, "cannot write down the transaction");
        ResponseError::CoordinatorNotAvailable
    })
}

/// Both or neither.
fn claimed(req: &InitProducerIdRequest) -> Result<Option<Identity>, ResponseError> {
    match (req.producer_id.0, req.producer_epoch) {
        (-1, -1) => Ok(None),
        (-1, _) | (_, -1) => Err(ResponseError::InvalidRequest),
        (producer_id, epoch) => Ok(Some(Identity { producer_id, epoch })),
    }
}
