use kafka_protocol::error::ResponseError as E;

use super::*;

#[test]
fn an_ending_names_all_that_the_transaction_touched() {
    let transactions = transactions();
    let identity = open_transaction(&transactions);
    assert_eq!(add_partition(&transactions, identity, 2), 0);
    assert_eq!(add_group(&transactions, identity), 0);
    let ending = end(&transactions, identity, true).unwrap();
    assert_eq!(
        ending.partitions,
        [("orders".to_owned(), 0), ("orders".to_owned(), 2)]
    );
    assert_eq!((ending.groups, ending.commit), (vec!["g".to_owned()], true));
    assert_eq!(
        (ending.producer_id, ending.epoch),
        (identity.producer_id, identity.epoch)
    );
}

#[test]
fn until_an_ending_is_completed_the_producer_cannot_go_on() {
    let transactions = transactions();
    let identity = open_transaction(&transactions);
    let ending = end(&transactions, identity, true).unwrap();
    let busy = E::ConcurrentTransactions.code();
    assert_eq!(add_partition(&transactions, identity, 0), busy);
    assert_eq!(add_group(&transactions, identity), busy);
    assert_eq!(answer(&transactions, &init_request(Some("t"))).error_code, busy);
    assert_eq!(end(&transactions, identity, true), Err(busy));
    transactions.complete(&ending).unwrap();
    assert_eq!(add_partition(&transactions, identity, 0), 0);
}

#[test]
fn an_end_asked_for_again_is_answered_the_same_and_the_opposite_refused() {
    for commit in [true, false] {
        let transactions = transactions();
        let identity = open_transaction(&transactions);
        let ending = end(&transactions, identity, commit).unwrap();
        assert_eq!(
            end(&transactions, identity, !commit),
            Err(E::InvalidTxnState.code())
        );
        transactions.complete(&ending).unwrap();
        assert_eq!(end(&transactions, identity, commit), Err(0));
        assert_eq!(
            end(&transactions, identity, !commit),
            Err(E::InvalidTxnState.code())
        );
    }
}

#[test]
fn what_never_began_cannot_end() {
    let transactions = transactions();
    let identity = producer(&transactions);
    assert_eq!(end(&transactions, identity, true), Err(E::InvalidTxnState.code()));
}

#[test]
fn completing_again_or_late_changes_nothing() {
    let transactions = transactions();
    let identity = open_transaction(&transactions);
    let ending = end(&transactions, identity, true).unwrap();
    transactions.complete(&ending).unwrap();
    add_partition(&transactions, identity, 0);
    transactions.complete(&ending).unwrap();
    assert!(
        end(&transactions, identity, false).is_ok(),
        "the next transaction is still open"
    );
}

#[test]
fn of_several_partitions_all_are_added_or_none() {
    let transactions = transactions();
    let identity = producer(&transactions);
    let mut req = partitions_request(identity, 0);
    req.v3_and_below_topics[0].partitions = vec![0, 9];
    let response = transactions.add_partitions(&req, 3, |_, partition| partition < 3);
    let results = &response.results_by_topic_v3_and_below[0].results_by_partition;
    let codes: Vec<i16> = results.iter().map(|each| each.partition_error_code).collect();
    assert_eq!(
        codes,
        [E::OperationNotAttempted.code(), E::UnknownTopicOrPartition.code()]
    );
    assert_eq!(
        end(&transactions, identity, true),
        Err(E::InvalidTxnState.code()),
        "nothing was begun"
    );
}

#[test]
fn a_producer_nobody_knows_is_refused() {
    let transactions = transactions();
    let stranger = Identity {
        producer_id: 7,
        epoch: 0,
    };
    let unknown = E::InvalidProducerIdMapping.code();
    assert_eq!(add_partition(&transactions, stranger, 0), unknown);
    open_transaction(&transactions);
    assert_eq!(add_partition(&transactions, stranger, 0), unknown);
    assert_eq!(add_group(&transactions, stranger), unknown);
    assert_eq!(end(&transactions, stranger, true), Err(unknown));
}

#[test]
fn a_write_is_verified_against_what_the_transaction_named() {
    let transactions = transactions();
    let identity = open_transaction(&transactions);
    let verify = |place, version| {
        transactions
            .verify_partition("t", identity.producer_id, identity.epoch, place, version)
            .err()
    };
    assert_eq!(verify(("orders", 0), 11), None);
    assert_eq!(verify(("orders", 1), 11), Some(E::TransactionAbortable));
    assert_eq!(verify(("orders", 1), 10), Some(E::InvalidTxnState));
    let offsets = |version| {
        transactions
            .verify_offsets("t", identity.producer_id, identity.epoch, "g", version)
            .err()
    };
    assert_eq!(
        (offsets(4), offsets(3)),
        (Some(E::TransactionAbortable), Some(E::InvalidTxnState))
    );
    add_group(&transactions, identity);
    assert_eq!(offsets(4), None);
    end(&transactions, identity, true).unwrap();
    assert_eq!(
        verify(("orders", 0), 10),
        Some(E::InvalidTxnState),
        "its markers are on their way"
    );
}
