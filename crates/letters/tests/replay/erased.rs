//! Letters that are erased where others lie before them: those are written again, and nothing of them is lost.

use std::collections::BTreeMap;
use std::path::Path;

use redrive::{Clock, Cluster, Origin, Outgoing, Timestamp};
use redrive_broker::faults::{ApiKey, Effect, Fault, ResponseError};
use redrive_broker::{Broker, BrokerConfig};
use redrive_core::Record;
use redrive_letters::cleanup::{self, Erased, Erasure};
use redrive_letters::feed::{Feed, Which};
use redrive_letters::jobs::{Followed, Kind, Options, Whereto};
use redrive_letters::replay::{Ended, Error, Wanted, control};
use redrive_letters::{Index, Query, Sort, State};

use crate::ground::{all, begin, candidates, letter, put, run, text, wanted};

const LETTERS: &str = "orders.billing.dlq";
const SELECTION: &str = "key-sha256=0123";

/// Letters of two partitions; every fifth is of the key `eve`.
async fn stage(cluster: &Cluster) {
    for name in ["orders", LETTERS] {
        cluster.create_topic(name, 2).await.unwrap();
    }
    let one = |n: i64| {
        let key = if n % 5 == 3 { "eve".to_owned() } else { format!("k{n}") };
        let letter = letter("orders", LETTERS, i32::try_from(n % 2).unwrap(), n, &key);
        // As they are found: without a value, and a header without one.
        let mut letter =
            Outgoing { timestamp: Some(Timestamp::from_millis(1_700_000_000_000 + n)), ..letter };
        if n == 4 {
            letter.value = None;
        }
        letter.headers.push("empty", None);
        letter
    };
    put(cluster, (0..20).map(one).collect()).await;
}

fn is_eves(record: &Record) -> bool {
    record.key.as_deref() == Some(b"eve")
}

async fn index(cluster: &Cluster, folder: &Path) -> Index {
    let which = Which::new(vec![LETTERS.parse().unwrap()], &[]).unwrap();
    let (mut index, _) = Feed::new(cluster.settings(), folder, which).catch_up(|_| {}).await.unwrap();
    Followed::read(cluster.settings()).await.unwrap().state.hand_over(&mut index).unwrap();
    index
}

/// By the offset of its origin: what is known of each letter.
async fn known(cluster: &Cluster, folder: &Path) -> BTreeMap<i64, State> {
    let mut index = index(cluster, folder).await;
    let query = Query { sort: Sort::Oldest, ..Query::default() };
    let letters = index.page(&query, 100, None).unwrap().letters;
    let known: BTreeMap<i64, State> =
        letters.iter().map(|letter| (letter.offset.unwrap(), letter.state)).collect();
    assert_eq!(known.len(), letters.len(), "each once");
    known
}

fn erasing() -> Wanted {
    Wanted { kind: Kind::Erase, query: SELECTION.to_owned(), ..wanted(Whereto::Usual, Options::default()) }
}

/// What erasing the key comes to, and the letters that are kept.
async fn plan(cluster: &Cluster, rewrites: bool) -> (Erasure, Vec<Origin>) {
    let records = all(cluster, LETTERS, 2).await;
    let places = |is_eves_too: bool| {
        let those = records.iter().filter(|record| is_eves(record) == is_eves_too);
        those.map(|record| record.at.clone()).collect::<Vec<_>>()
    };
    let (eves, kept) = (places(true), places(false));
    let all: Vec<Origin> = records.iter().map(|record| record.at.clone()).collect();
    (Erasure::plan(cluster.settings(), &eves, &all, rewrites).await.unwrap(), kept)
}

async fn erase(cluster: &Cluster) -> Result<Option<Erased>, Error> {
    let (erasure, kept) = plan(cluster, true).await;
    cleanup::erase(cluster.settings(), &Clock::system(), &erasing(), &erasure, &kept).await
}

/// What a record is, but for its place.
fn content(record: &Record) -> impl PartialEq + std::fmt::Debug + use<> {
    (record.at.partition, record.timestamp, record.key.clone(), record.value.clone(), record.headers.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_before_those_of_a_key_are_written_again_unchanged_and_what_became_of_them_is_known_as_before()
 {
    let cluster = Cluster::open("embedded").await.unwrap();
    stage(&cluster).await;
    let (folder, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let letters = candidates(&cluster, LETTERS, 2).await;
    let of = |origins: &[i64]| {
        let is_of = |at: &Option<Origin>| at.as_ref().is_some_and(|at| origins.contains(&at.offset));
        letters.iter().filter(|letter| is_of(&letter.origin)).cloned().collect::<Vec<_>>()
    };
    let to_origin = wanted(Whereto::Origin, Options::default());
    let (job, _) = begin(&cluster, &to_origin, &of(&[0, 1, 3])).await;
    assert_eq!(run(&cluster, job.unwrap(), &to_origin.to).await, Ended::Finished);
    let resolve = Wanted { kind: Kind::Resolve, ..to_origin.clone() };
    let places: Vec<Origin> = of(&[2, 5, 19]).iter().map(|letter| letter.at.clone()).collect();
    cleanup::carry_out(cluster.settings(), &Clock::system(), &resolve, &places).await.unwrap().unwrap();
    let mut expected = known(&cluster, folder.path()).await;
    assert_eq!(expected.values().filter(|state| **state == State::Open).count(), 14);
    expected.retain(|origin, _| origin % 5 != 3);

    let before = all(&cluster, LETTERS, 2).await;
    let (erasure, _) = plan(&cluster, true).await;
    let moved: Vec<_> =
        erasure.rewrites.iter().map(|one| (one.below.to_string(), one.erased.len(), one.moved)).collect();
    // Of partition 0 8 and 18 are eve's, which lie at 4 and 9; of partition 1 3 and 13, at 1 and 6.
    assert_eq!(moved, [(format!("{LETTERS}/0/10"), 2, 8), (format!("{LETTERS}/1/7"), 2, 5)]);
    assert!(erasure.stay.is_empty() && erasure.purge.cuts.is_empty());
    let done = erase(&cluster).await.unwrap().unwrap();
    assert_eq!((done.moved, done.left.len()), (13, 0));

    let now = all(&cluster, LETTERS, 2).await;
    let kept = |partition: i32, moved: usize| {
        let of = before.iter().filter(|record| record.at.partition == partition && !is_eves(record));
        let mut kept: Vec<_> = of.map(content).collect();
        // Those before the last that was erased are behind the others now.
        kept.rotate_left(moved);
        kept
    };
    let found = |partition: i32| {
        now.iter().filter(|record| record.at.partition == partition).map(content).collect::<Vec<_>>()
    };
    assert_eq!((found(0), found(1)), (kept(0, 8), kept(1, 5)), "unchanged, in their order");
    let state = Followed::read(cluster.settings()).await.unwrap().state;
    assert!(cleanup::unfinished(&state).is_empty());
    for folder in [folder.path(), fresh.path()] {
        assert_eq!(known(&cluster, folder).await, expected);
    }
    let (job, plan) = begin(&cluster, &to_origin, &candidates(&cluster, LETTERS, 2).await).await;
    assert_eq!(plan.left_out.values().sum::<u64>(), 2, "sent before: {:?}", plan.left_out);
    assert_eq!(run(&cluster, job.unwrap(), &to_origin.to).await, Ended::Finished);
    // And once more: what was moved twice is known as well.
    put(&cluster, vec![letter("orders", LETTERS, 0, 23, "eve")]).await;
    expected = known(&cluster, folder.path()).await;
    assert_eq!(expected.remove(&23), Some(State::Open));
    let done = erase(&cluster).await.unwrap().unwrap();
    assert_eq!(done.moved, 8);
    std::fs::remove_dir_all(fresh.path()).unwrap();
    for folder in [folder.path(), fresh.path()] {
        assert_eq!(known(&cluster, folder).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_is_cut_off_anywhere_loses_nothing_shows_each_letter_once_and_can_be_finished() {
    let gone = Effect::Fail(ResponseError::InvalidProducerEpoch);
    // The job is one transaction, what is said of its letters another, and then each partition one; the last ends it.
    let at_commit = |nth| Fault::next(ApiKey::EndTxn, gone).nth(nth);
    let refused = Effect::Fail(ResponseError::TopicAuthorizationFailed);
    let at_delete = |nth| Fault::next(ApiKey::DeleteRecords, refused).nth(nth);
    let cuts = [at_commit(2), at_commit(3), at_commit(4), at_commit(5), at_delete(1), at_delete(2)];
    for (turn, cut) in cuts.into_iter().enumerate() {
        let broker = Broker::start(BrokerConfig::default()).await.unwrap();
        let cluster = Cluster::open(&broker.address().to_string()).await.unwrap();
        stage(&cluster).await;
        let folder = tempfile::tempdir().unwrap();
        let mut expected = known(&cluster, folder.path()).await;
        let before: Vec<_> = all(&cluster, LETTERS, 2).await.iter().map(content).collect();
        broker.faults().order(cut);
        erase(&cluster).await.unwrap_err();
        assert_eq!(broker.faults().waiting(), 0, "{turn}: it was struck");
        let now: Vec<_> = all(&cluster, LETTERS, 2).await.iter().map(content).collect();
        assert!(before.iter().filter(|one| !now.contains(one)).count() <= 4, "{turn}: only eve's");
        if turn > 0 {
            expected.retain(|origin, _| origin % 5 != 3);
        }
        assert_eq!(known(&cluster, folder.path()).await, expected, "{turn}");

        let state = Followed::read(cluster.settings()).await.unwrap().state;
        let id = cleanup::unfinished(&state)[0].id.clone();
        let mut index = index(&cluster, folder.path()).await;
        let kept = index.select(&Query::default()).unwrap();
        drop(index);
        cleanup::finish(cluster.settings(), &Clock::system(), &id, "bob@there", &kept).await.unwrap();
        expected.retain(|origin, _| origin % 5 != 3);
        assert_eq!(known(&cluster, folder.path()).await, expected, "{turn}");
        let now = all(&cluster, LETTERS, 2).await;
        assert_eq!((now.len(), now.iter().filter(|record| is_eves(record)).count()), (16, 0), "{turn}");
        let state = Followed::read(cluster.settings()).await.unwrap().state;
        assert!(cleanup::unfinished(&state).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_moved_that_a_replay_is_about_to_send_and_one_that_begins_later_finds_what_was_moved() {
    let cluster = Cluster::open("embedded").await.unwrap();
    stage(&cluster).await;
    let letters = candidates(&cluster, LETTERS, 2).await;
    let to_origin = wanted(Whereto::Origin, Options::default());
    // The first two of partition 0.
    let (job, _) = begin(&cluster, &to_origin, &letters[..2]).await;
    let done = erase(&cluster).await.unwrap().unwrap();
    let id = job.unwrap().id().clone();
    let below = format!("{LETTERS}/0/10").parse().unwrap();
    assert_eq!((done.left, done.moved), (vec![(below, id.clone())], 5));
    let clock = Clock::system();
    control::cancel(cluster.settings(), &clock, &id, "ann@here", "changed my mind").await.unwrap();
    let kept: Vec<Origin> = Vec::new();
    let done = cleanup::finish(cluster.settings(), &clock, &done.job, "ann@here", &kept).await.unwrap();
    assert_eq!((done.left.len(), done.moved), (0, 8));

    // Whoever looked before they were moved means the same letters.
    let (job, plan) = begin(&cluster, &to_origin, &letters[..2]).await;
    assert_eq!(plan.letters.len(), 2);
    assert_eq!(run(&cluster, job.unwrap(), &to_origin.to).await, Ended::Finished);
    let sent = all(&cluster, "orders", 2).await;
    let sent: Vec<_> = sent.iter().map(|record| text(record.value.as_ref())).collect();
    assert_eq!(sent, ["0/0", "0/2"]);
    let (job, plan) = begin(&cluster, &to_origin, &letters[..2]).await;
    assert!(job.is_none() && plan.left_out.values().sum::<u64>() == 2, "{:?}", plan.left_out);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rewrite_what_kafka_keeps_is_not_shown_and_is_found_again_by_who_asks_for_the_same() {
    let cluster = Cluster::open("embedded").await.unwrap();
    stage(&cluster).await;
    let (folder, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut expected = known(&cluster, folder.path()).await;
    expected.retain(|origin, _| origin % 5 != 3);
    let (erasure, kept) = plan(&cluster, false).await;
    assert_eq!((erasure.stay.len(), erasure.rewrites.len()), (4, 0));
    let settings = cluster.settings();
    cleanup::erase(settings, &Clock::system(), &erasing(), &erasure, &kept).await.unwrap().unwrap();
    assert_eq!(all(&cluster, LETTERS, 2).await.len(), 20, "nothing was moved or deleted");
    for folder in [folder.path(), fresh.path()] {
        assert_eq!(known(&cluster, folder).await, expected);
        let index = index(&cluster, folder).await;
        assert!(erasure.stay.iter().all(|(letter, _)| index.may_show(letter).is_err()));
    }
    let there = cleanup::still_there(settings, SELECTION).await.unwrap();
    assert_eq!(there, erasure.stay.iter().map(|(letter, _)| letter.clone()).collect::<Vec<_>>());
    erase(&cluster).await.unwrap().unwrap();
    assert!(cleanup::still_there(settings, SELECTION).await.unwrap().is_empty());
    assert_eq!(known(&cluster, folder.path()).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_erasures_of_one_partition_take_turns_and_no_letter_is_written_again_twice() {
    let broker = Broker::start(BrokerConfig::default()).await.unwrap();
    let cluster = Cluster::open(&broker.address().to_string()).await.unwrap();
    stage(&cluster).await;
    let (settings, clock) = (cluster.settings(), Clock::system());
    // The first stops when it has moved what lies in partition 0.
    let refused = Effect::Fail(ResponseError::TopicAuthorizationFailed);
    broker.faults().order(Fault::next(ApiKey::DeleteRecords, refused));
    erase(&cluster).await.unwrap_err();
    let folder = tempfile::tempdir().unwrap();
    let mut index = index(&cluster, folder.path()).await;
    let letters = index.select(&Query::default()).unwrap();
    let (asked, kept): (Vec<Origin>, Vec<Origin>) =
        letters.iter().cloned().partition(|letter| letter.partition == 0 && letter.offset == 13);
    let erasure = Erasure::plan(settings, &asked, &letters, true).await.unwrap();
    assert_eq!(erasure.rewrites.len(), 1);
    let wanted = Wanted { query: "key-sha256=4567".to_owned(), ..erasing() };
    let second = cleanup::erase(settings, &clock, &wanted, &erasure, &kept).await.unwrap().unwrap();
    let state = Followed::read(settings).await.unwrap().state;
    let unfinished: Vec<_> = cleanup::unfinished(&state).iter().map(|job| job.id.clone()).collect();
    assert_eq!((second.left[0].1.clone(), second.moved), (unfinished[0].clone(), 0));
    drop(index);
    for id in unfinished {
        let done = cleanup::finish(settings, &clock, &id, "ann@here", &kept).await.unwrap();
        assert!(done.left.is_empty());
    }
    assert_eq!((known(&cluster, folder.path()).await.len(), all(&cluster, LETTERS, 2).await.len()), (15, 15));
}
