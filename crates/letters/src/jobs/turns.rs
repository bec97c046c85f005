//! Taking a turn: a process writes that it is about to go on, and once it has read that back it has read all that
//! was written before. Whoever is overtaken meanwhile is fenced off by the broker.

use std::time::Duration;

use redrive::Clock;
use redrive_kafka::{Error as KafkaError, Outgoing, Settings, TransactionFailed, Transactions};

use super::{Followed, State};

/// How long what was written may take to be read back: a process that was killed in a transaction holds up
/// readers until the broker ends it.
pub(crate) const READ_BACK: Duration = Duration::from_secs(60);

/// How long it is read before it is asked whether another was faster: of two turns only the later stays.
const ASK: Duration = Duration::from_secs(1);

/// Why a process did not get its turn.
#[derive(Debug)]
pub(crate) enum NoTurn {
    /// Kafka did not do something.
    Kafka(KafkaError),
    /// It could not be written; fenced, if another took it.
    Write(TransactionFailed),
    /// What was written does not come back.
    Unread(Unread),
}

/// What was written does not come back.
#[derive(Debug, thiserror::Error)]
#[error("what was written to redrive.state cannot be read back: a transaction there is not ended")]
pub struct Unread;

/// Writes a turn, with other records once beside it, and reads up to it.
pub(crate) async fn take_turn(
    settings: &Settings,
    clock: &Clock,
    transactions: &Transactions,
    turn: Outgoing,
    mut beside: Vec<Outgoing>,
    is_ours: impl Fn(&State) -> bool,
) -> Result<Followed, NoTurn> {
    beside.insert(0, turn.clone());
    transactions.publish(beside).await.map_err(NoTurn::Write)?;
    let mut followed = Followed::read(settings).await.map_err(NoTurn::Kafka)?;
    let deadline = clock.now().steady.saturating_add(READ_BACK);
    while !followed.until(clock, ASK, &is_ours).await.map_err(NoTurn::Kafka)? {
        if clock.now().steady >= deadline {
            return Err(NoTurn::Unread(Unread));
        }
        transactions.publish(vec![turn.clone()]).await.map_err(NoTurn::Write)?;
    }
    Ok(followed)
}
