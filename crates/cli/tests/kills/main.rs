//! `redrive broker` killed with SIGKILL again and again while clients use it: an idempotent producer, a
//! transactional one and a member of a group. Nothing that was acknowledged may be lost or come twice.

mod clock;
mod records;
mod server;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redrive_conformance::topic_ids;

use server::Server;
use work::{committing, producing, reading};

const ROUNDS: u64 = 5;

#[test]
fn nothing_acknowledged_is_lost_or_doubled_when_the_process_is_killed() {
    let data = tempfile::tempdir().expect("a folder");
    let mut server = Server::start(data.path());
    server.configure("plain", "retention.ms", "123456789");
    let (ids, address) = (topic_ids(&server.address), server.address.clone());
    let over = AtomicBool::new(false);
    let seed = clock::seed();
    eprintln!("seed {seed}");
    let (sent, transactions, read) = thread::scope(|scope| {
        let sent = scope.spawn(|| producing::until(&over, &address));
        let transactions = scope.spawn(|| committing::until(&over, &address));
        let read = scope.spawn(|| reading::until(&over, &address));
        for round in 0..ROUNDS {
            clock::let_work(seed, round);
            server.kill_and_start();
            assert_eq!(topic_ids(&server.address), ids, "round {round}");
            assert_eq!(
                server.setting("plain", "retention.ms").as_deref(),
                Some("123456789"),
                "round {round}"
            );
        }
        clock::let_work(seed, ROUNDS);
        over.store(true, Ordering::SeqCst);
        let done = (sent.join(), transactions.join(), read.join());
        (done.0.expect("a producer"), done.1.expect("a transactional producer"), done.2.expect("a reader"))
    });
    check_plain(&address, &sent, &read);
    check_committed(&address, &transactions);
    assert!(sent.len() > 100 && transactions.committed.len() > 3, "too little happened to mean anything");
}

/// What was acknowledged is there, once; the group has read all up to its last commit, in order.
fn check_plain(address: &str, sent: &BTreeSet<u64>, read: &reading::Read) {
    let mut times = BTreeMap::new();
    for record in records::all(address, "plain", "read_uncommitted") {
        *times.entry(record.value).or_insert(0) += 1;
    }
    let lost: Vec<_> = sent.iter().filter(|number| !times.contains_key(*number)).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let doubled: Vec<_> = sent.iter().filter(|number| times[*number] > 1).collect();
    assert!(doubled.is_empty(), "acknowledged and there twice: {doubled:?}");
    let committed = records::committed(address, "readers", "plain");
    for (partition, offset) in &read.committed {
        assert!(committed[partition] >= *offset, "the group's commit in partition {partition} went back");
    }
}

/// Whole transactions only: all that were committed, none that were aborted.
fn check_committed(address: &str, transactions: &committing::Transactions) {
    let mut times: BTreeMap<u64, usize> = BTreeMap::new();
    for record in records::all(address, "committed", "read_committed") {
        *times.entry(record.value).or_default() += 1;
    }
    for (number, count) in &times {
        assert_eq!(*count, committing::RECORDS, "a part of transaction {number}");
        assert!(!transactions.aborted.contains(number), "transaction {number} was aborted");
    }
    let lost: Vec<_> = transactions.committed.iter().filter(|number| !times.contains_key(*number)).collect();
    assert!(lost.is_empty(), "committed and lost: {lost:?}");
    let last = transactions.committed.last().copied().unwrap_or_default();
    let offset = records::committed(address, committing::GROUP, "plain")[&0];
    assert!(u64::try_from(offset).is_ok_and(|offset| offset >= last), "{offset} was committed before {last}");
}
