use std::path::Path;

use super::*;

fn opened(dir: &Path) -> Transactions {
    Transactions::open(Some(dir), TransactionsConfig::default()).unwrap()
}

#[test]
fn producer_ids_are_never_given_twice() {
    let dir = tempfile::tempdir().unwrap();
    let mut before = -1;
    for _ in 0..3 {
        let transactions = opened(dir.path());
        for _ in 0..1_500 {
            let identity = granted(&answer(&transactions, &init_request(None)));
            assert!(identity.producer_id > before);
            before = identity.producer_id;
        }
    }
}

#[test]
fn an_open_transaction_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let identity = open_transaction(&opened(dir.path()));
    let transactions = opened(dir.path());
    assert_eq!(transactions.unfinished(), []);
    assert_eq!(add_partition(&transactions, identity, 1), 0);
    assert_eq!(end(&transactions, identity, true).unwrap().partitions.len(), 2);
}

#[test]
fn an_open_transaction_still_expires_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    open_transaction(&opened(dir.path()));
    assert_eq!(opened(dir.path()).expire(MUCH_LATER).len(), 1);
}

#[test]
fn what_was_decided_is_carried_out_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let identity = open_transaction(&opened(dir.path()));
    let ending = end(&opened(dir.path()), identity, true).unwrap();
    let transactions = opened(dir.path());
    assert_eq!(transactions.unfinished(), std::slice::from_ref(&ending));
    transactions.complete(&ending).unwrap();
    let transactions = opened(dir.path());
    assert_eq!(transactions.unfinished(), []);
    assert_eq!(
        end(&transactions, identity, true),
        Err(0),
        "the retried commit is answered"
    );
}

#[test]
fn fencing_survives() {
    let dir = tempfile::tempdir().unwrap();
    let first = producer(&opened(dir.path()));
    let second = producer(&opened(dir.path()));
    let transactions = opened(dir.path());
    assert_ne!(add_partition(&transactions, first, 0), 0);
    assert_eq!(add_partition(&transactions, second, 0), 0);
}

#[test]
fn the_journal_stays_small_and_forgets_ids_that_are_idle() {
    let dir = tempfile::tempdir().unwrap();
    let config = TransactionsConfig {
        compact_above_bytes: 4_096,
        ..TransactionsConfig::default()
    };
    let transactions = Transactions::open(Some(dir.path()), config.clone()).unwrap();
    let identity = producer(&transactions);
    for _ in 0..1_000 {
        add_partition(&transactions, identity, 0);
        let ending = end(&transactions, identity, true).unwrap();
        transactions.complete(&ending).unwrap();
    }
    let size = std::fs::metadata(dir.path().join("transactions.journal"))
        .unwrap()
        .len();
    assert!(size < 3 * 4_096, "{size} bytes");
    let transactions = Transactions::open(Some(dir.path()), config.clone()).unwrap();
    assert_eq!(add_partition(&transactions, identity, 0), 0);
    let ending = end(&transactions, identity, true).unwrap();
    transactions.complete(&ending).unwrap();
    let forgetful = TransactionsConfig {
        id_expiration_ms: 0,
        ..config
    };
    let transactions = Transactions::open(Some(dir.path()), forgetful).unwrap();
    assert_ne!(add_partition(&transactions, identity, 0), 0);
}

#[test]
fn a_journal_cut_at_any_byte_never_shows_an_earlier_epoch_with_a_later_decision() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("transactions.journal");
    let identity = open_transaction(&opened(dir.path()));
    let ending = end(&opened(dir.path()), identity, true).unwrap();
    opened(dir.path()).complete(&ending).unwrap();
    let content = std::fs::read(&path).unwrap();
    for cut in 0..=content.len() {
        std::fs::write(&path, &content[..cut]).unwrap();
        let transactions = opened(dir.path());
        let unfinished = transactions.unfinished();
        assert!(
            unfinished.is_empty() || unfinished == [ending.clone()],
            "cut at {cut}"
        );
        let fresh = granted(&answer(&transactions, &init_request(None)));
        assert!(
            cut < 17 || fresh.producer_id > identity.producer_id,
            "cut at {cut}"
        );
    }
}
