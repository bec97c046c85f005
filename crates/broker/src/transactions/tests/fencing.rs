use kafka_protocol::error::ResponseError as E;

use super::*;
use crate::transactions::transaction::{Initialised, Transaction};

#[test]
fn an_idempotent_producer_gets_an_id_of_its_own() {
    let transactions = transactions();
    let first = granted(&answer(&transactions, &init_request(None)));
    let second = granted(&answer(&transactions, &init_request(None)));
    assert_ne!(first.producer_id, second.producer_id);
    assert_eq!((first.epoch, second.epoch), (0, 0));
}

#[test]
fn a_second_producer_of_the_same_id_fences_the_first() {
    let transactions = transactions();
    let first = producer(&transactions);
    let second = producer(&transactions);
    assert_eq!(
        (second.producer_id, second.epoch),
        (first.producer_id, first.epoch + 1)
    );
    let fenced = E::ProducerFenced.code();
    assert_eq!(add_partition(&transactions, first, 0), fenced);
    assert_eq!(add_group(&transactions, first), fenced);
    assert_eq!(end(&transactions, first, true), Err(fenced));
    let verified = transactions.verify_partition("t", first.producer_id, first.epoch, ("orders", 0), 11);
    assert_eq!(verified, Err(E::InvalidProducerEpoch));
}

#[test]
fn older_versions_know_a_fenced_producer_by_another_name() {
    let transactions = transactions();
    let first = producer(&transactions);
    producer(&transactions);
    let response = transactions.add_partitions(&partitions_request(first, 0), 1, |_, _| true);
    let old = E::InvalidProducerEpoch.code();
    assert_eq!(
        response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        old
    );
    let End::Reply(response) = transactions.end(&end_request(first, true), 1) else {
        panic!()
    };
    assert_eq!(response.error_code, old);
    let Init::Reply(response) = transactions.init_producer_id(&claiming(first), 3) else {
        panic!()
    };
    assert_eq!(response.error_code, old);
    assert_eq!(
        answer(&transactions, &claiming(first)).error_code,
        E::ProducerFenced.code()
    );
}

#[test]
fn an_open_transaction_of_the_predecessor_is_aborted_under_a_later_epoch() {
    let transactions = transactions();
    let first = open_transaction(&transactions);
    let Init::EndFirst(ending) = transactions.init_producer_id(&init_request(Some("t")), 5) else {
        panic!()
    };
    assert_eq!((ending.commit, ending.epoch), (false, first.epoch + 1));
    assert_eq!(end(&transactions, first, true), Err(E::ProducerFenced.code()));
    let busy = answer(&transactions, &init_request(Some("t")));
    assert_eq!(
        busy.error_code,
        E::ConcurrentTransactions.code(),
        "another carries it out"
    );
    transactions.complete(&ending).unwrap();
    let second = producer(&transactions);
    assert_eq!(
        (second.producer_id, second.epoch),
        (first.producer_id, first.epoch + 2)
    );
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() {
    let transactions = transactions();
    let identity = open_transaction(&transactions);
    assert_eq!(transactions.expire(0), []);
    let endings = transactions.expire(MUCH_LATER);
    assert_eq!(endings.len(), 1);
    assert_eq!((endings[0].commit, endings[0].epoch), (false, identity.epoch + 1));
    assert_eq!(transactions.expire(MUCH_LATER), []);
    assert_eq!(end(&transactions, identity, true), Err(E::ProducerFenced.code()));
    transactions.complete(&endings[0]).unwrap();
    assert_eq!(end(&transactions, identity, true), Err(E::ProducerFenced.code()));
}

#[test]
fn a_producer_that_recovers_keeps_its_id_and_gets_the_next_epoch_once() {
    let transactions = transactions();
    let identity = producer(&transactions);
    let next = granted(&answer(&transactions, &claiming(identity)));
    assert_eq!(
        (next.producer_id, next.epoch),
        (identity.producer_id, identity.epoch + 1)
    );
    assert_eq!(
        granted(&answer(&transactions, &claiming(identity))),
        next,
        "the first answer was lost"
    );
    producer(&transactions);
    assert_eq!(
        answer(&transactions, &claiming(identity)).error_code,
        E::ProducerFenced.code()
    );
    assert_eq!(
        answer(&transactions, &claiming(next)).error_code,
        E::ProducerFenced.code()
    );
}

#[test]
fn a_zombie_that_recovers_does_not_abort_its_successor() {
    let transactions = transactions();
    let zombie = producer(&transactions);
    let current = open_transaction(&transactions);
    assert_eq!(
        answer(&transactions, &claiming(zombie)).error_code,
        E::ProducerFenced.code()
    );
    assert!(end(&transactions, current, true).is_ok());
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let transactions = transactions();
    let code = |req: InitProducerIdRequest| answer(&transactions, &req).error_code;
    assert_eq!(code(init_request(Some(""))), E::InvalidRequest.code());
    assert_eq!(
        code(init_request(Some("t")).with_producer_epoch(3)),
        E::InvalidRequest.code()
    );
    for timeout in [0, MAX_TIMEOUT_MS + 1] {
        let req = init_request(Some("t")).with_transaction_timeout_ms(timeout);
        assert_eq!(code(req), E::InvalidTransactionTimeout.code());
    }
    assert_eq!(
        code(init_request(Some("t")).with_transaction_timeout_ms(MAX_TIMEOUT_MS)),
        0
    );
}

#[test]
fn when_the_epochs_run_out_the_producer_gets_a_new_id_and_may_ask_again() {
    let exhausted = Transaction {
        epoch: i16::MAX - 1,
        ..Transaction::first("t", 4, 60_000, 0)
    };
    assert_eq!(exhausted.init(None, 60_000, 0), Ok(Initialised::NeedsProducerId));
    let claimed = Identity {
        producer_id: 4,
        epoch: i16::MAX - 1,
    };
    assert_eq!(
        exhausted.init(Some(claimed), 60_000, 0),
        Ok(Initialised::NeedsProducerId)
    );
    let rotated = exhausted.rotate(5, Some(claimed), 60_000, 0);
    assert_eq!((rotated.producer_id, rotated.epoch), (5, 0));
    assert_eq!(
        rotated.init(Some(claimed), 60_000, 0),
        Ok(Initialised::Ready(rotated.clone()))
    );
    let stale = Identity {
        producer_id: 4,
        epoch: 3,
    };
    assert_eq!(rotated.init(Some(stale), 60_000, 0), Err(E::ProducerFenced));
}

#[test]
fn even_the_last_epoch_can_be_fenced() {
    let last = Identity {
        producer_id: 4,
        epoch: i16::MAX - 1,
    };
    let transaction = Transaction {
        epoch: last.epoch,
        ..Transaction::first("t", 4, 60_000, 0)
    };
    let touched = crate::transactions::transaction::Touched::partition("orders", 0);
    let open = transaction.add(last, &touched, 0).unwrap().unwrap();
    let (fenced, ending) = open.expire(MUCH_LATER).unwrap();
    assert_eq!((fenced.epoch, ending.epoch), (i16::MAX, i16::MAX));
    let complete = fenced.complete(&ending, 0).unwrap();
    assert_eq!(complete.init(None, 60_000, 0), Ok(Initialised::NeedsProducerId));
}

#[tokio::test]
async fn the_next_expiry_wakes_whoever_waits_for_it() {
    let transactions = transactions();
    let waiting = {
        let transactions = transactions.clone();
        tokio::spawn(async move { transactions.next_expired().await })
    };
    let req = init_request(Some("t")).with_transaction_timeout_ms(5);
    let identity = granted(&answer(&transactions, &req));
    add_partition(&transactions, identity, 0);
    let endings = waiting.await.unwrap();
    assert_eq!((endings.len(), endings[0].commit), (1, false));
}
