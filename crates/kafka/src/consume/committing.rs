//! Commits under way. librdkafka takes one at once and answers it while it is polled, however long the coordinator is
//! away; a membership that ends meanwhile never answers. So nobody's thread waits for it: a runtime that is dropped would
//! wait for that thread, without end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use tokio::sync::{OwnedMutexGuard, oneshot};

/// One commit at a time: while one is under way librdkafka begins no partition, and an answer is that commit's.
#[derive(Default)]
pub(crate) struct Committing {
    turns: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    #[default]
    Free,
    UnderWay(UnderWay),
    /// The membership has ended.
    Over,
}

/// Whoever waits for it may be gone: the turn ends with the answer, not with them.
struct UnderWay {
    answer: oneshot::Sender<Result<(), KafkaError>>,
    _turn: OwnedMutexGuard<()>,
}

impl Committing {
    /// Waits for those before, has `send` send it, and waits for its answer.
    pub(crate) async fn run(&self, send: impl FnOnce() -> Result<(), KafkaError>) -> Result<(), KafkaError> {
        let turn = self.turns.clone().lock_owned().await;
        let (answer, answered) = oneshot::channel();
        self.begin(UnderWay { answer, _turn: turn })?;
        if let Err(refused) = send() {
            self.answered(Err(refused));
        }
        answered.await.unwrap_or_else(|_| Err(never_answered()))
    }

    fn begin(&self, commit: UnderWay) -> Result<(), KafkaError> {
        let mut state = self.state();
        if let State::Over = &*state {
            return Err(never_answered());
        }
        *state = State::UnderWay(commit);
        Ok(())
    }

    /// The one that is under way is answered.
    pub(crate) fn answered(&self, result: Result<(), KafkaError>) {
        let mut state = self.state();
        match std::mem::take(&mut *state) {
            State::UnderWay(commit) => drop(commit.answer.send(result)),
            State::Free => {}
            State::Over => *state = State::Over,
        }
    }

    /// Nothing is answered any more.
    pub(crate) fn over(&self) {
        *self.state() = State::Over;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn never_answered() -> KafkaError {
    KafkaError::ConsumerCommit(Code::BrokerDestroy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_next_waits_for_the_answer_although_nobody_waits_for_it_any_more() {
        let committing = Committing::default();
        tokio::select! {
            biased;
            _ = committing.run(|| Ok(())) => unreachable!("nobody answered"),
            () = std::future::ready(()) => {}
        }
        let mut next = Box::pin(committing.run(|| Ok(())));
        tokio::select! {
            biased;
            _ = &mut next => unreachable!("it is not its turn"),
            () = tokio::task::yield_now() => {}
        }
        // That of the first.
        committing.answered(Err(never_answered()));
        tokio::select! {
            biased;
            _ = &mut next => unreachable!("it is not answered"),
            () = tokio::task::yield_now() => {}
        }
        committing.answered(Ok(()));
        assert_eq!(next.await, Ok(()));
    }

    #[tokio::test]
    async fn a_membership_that_ends_answers_what_is_under_way_and_what_comes_then() {
        let committing = Committing::default();
        let under_way = committing.run(|| {
            committing.over();
            Ok(())
        });
        assert_eq!(under_way.await, Err(never_answered()));
        assert_eq!(committing.run(|| unreachable!("nobody would hear it")).await, Err(never_answered()));
    }

    #[tokio::test]
    async fn one_that_is_refused_at_once_leaves_room_for_the_next() {
        let committing = Committing::default();
        let refused = KafkaError::ConsumerCommit(Code::UnknownGroup);
        assert_eq!(committing.run(|| Err(refused.clone())).await, Err(refused));
        let sent = committing.run(|| {
            committing.answered(Ok(()));
            Ok(())
        });
        assert_eq!(sent.await, Ok(()));
    }
}
