//! A letter topic that is deleted and made anew: what was said of its letters is not said of those that come after.

use redrive::{Clock, Cluster};
use redrive_letters::feed::{Feed, Which};
use redrive_letters::jobs::{Followed, Kind, Options, Whereto};
use redrive_letters::replay::{self, Ended, Wanted};
use redrive_letters::{Index, Query, Standing, State, cleanup};

use crate::ground::{all, begin, candidates, letter, put, run, text, wanted};

const LETTERS: &str = "orders.billing.dlq";

async fn stage() -> Cluster {
    let cluster = Cluster::open("embedded").await.unwrap();
    for name in ["orders", LETTERS, "others.billing.dlq"] {
        cluster.create_topic(name, 1).await.unwrap();
    }
    cluster
}

/// Letters of these origins.
async fn letters(cluster: &Cluster, topic: &str, origins: std::ops::Range<i64>) {
    put(cluster, origins.map(|n| letter("orders", topic, 0, n, &format!("k{n}"))).collect()).await;
}

async fn delete(cluster: &Cluster, topic: &str) {
    let kafka =
        redrive_testkit::Cluster { brokers: cluster.settings().brokers.clone(), properties: Vec::new() };
    redrive_testkit::delete_topic(&kafka, topic).await;
}

async fn make_anew(cluster: &Cluster) {
    delete(cluster, LETTERS).await;
    cluster.create_topic(LETTERS, 1).await.unwrap();
}

/// The index in a folder, as a command finds it.
async fn index(cluster: &Cluster, folder: &std::path::Path, names: &[&str]) -> Index {
    let names = names.iter().map(|name| name.parse().unwrap()).collect();
    let which = Which::new(names, &[]).unwrap();
    let (mut index, _) = Feed::new(cluster.settings(), folder, which).catch_up(|_| {}).await.unwrap();
    Followed::read(cluster.settings()).await.unwrap().state.hand_over(&mut index).unwrap();
    index
}

/// The states of all letters, in order.
fn states(index: &mut Index) -> Vec<State> {
    let query = Query { sort: redrive_letters::Sort::Oldest, ..Query::default() };
    index.page(&query, 100, None).unwrap().letters.iter().map(|letter| letter.state).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_a_topic_that_was_made_anew_are_open_and_can_be_sent_whatever_was_said_of_the_former_ones()
{
    let cluster = stage().await;
    let (folder, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    letters(&cluster, LETTERS, 0..6).await;
    let wanted = wanted(Whereto::Origin, Options::default());
    let former = candidates(&cluster, LETTERS, 1).await;
    let (job, _) = begin(&cluster, &wanted, &former[..3]).await;
    assert_eq!(run(&cluster, job.unwrap(), &wanted.to).await, Ended::Finished);
    let resolve = Wanted { kind: Kind::Resolve, ..wanted.clone() };
    let rest: Vec<_> = former[3..].iter().map(|letter| letter.at.clone()).collect();
    cleanup::carry_out(cluster.settings(), &Clock::system(), &resolve, &rest).await.unwrap().unwrap();
    let expected = [[State::Replayed; 3], [State::Resolved; 3]].concat();
    assert_eq!(states(&mut index(&cluster, folder.path(), &[LETTERS]).await), expected);

    make_anew(&cluster).await;
    letters(&cluster, LETTERS, 10..16).await;
    for folder in [folder.path(), fresh.path()] {
        let mut index = index(&cluster, folder, &[LETTERS]).await;
        assert_eq!(states(&mut index), [State::Open; 6]);
        let groups = index.groups(&Query::default(), Clock::system().now().wall).unwrap();
        assert!(groups.iter().all(|group| group.open == 6 && group.standing != Standing::Resolved));
    }
    let (job, plan) = begin(&cluster, &wanted, &candidates(&cluster, LETTERS, 1).await).await;
    assert_eq!((plan.letters.len(), plan.left_out.len()), (6, 0), "{:?}", plan.left_out);
    assert_eq!(run(&cluster, job.unwrap(), &wanted.to).await, Ended::Finished);
    assert_eq!(all(&cluster, "orders", 1).await.len(), 9);
    for folder in [folder.path(), fresh.path()] {
        assert_eq!(states(&mut index(&cluster, folder, &[LETTERS]).await), [State::Replayed; 6]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_became_of_letters_is_known_also_of_a_topic_that_is_read_later_than_others() {
    let (cluster, folder) = (stage().await, tempfile::tempdir().unwrap());
    letters(&cluster, LETTERS, 0..2).await;
    letters(&cluster, "others.billing.dlq", 2..4).await;
    let wanted = wanted(Whereto::Origin, Options::default());
    let (job, _) = begin(&cluster, &wanted, &candidates(&cluster, LETTERS, 1).await).await;
    assert_eq!(run(&cluster, job.unwrap(), &wanted.to).await, Ended::Finished);
    let mut others = index(&cluster, folder.path(), &["others.billing.dlq"]).await;
    assert_eq!(states(&mut others), [State::Open; 2]);
    drop(others);
    assert_eq!(states(&mut index(&cluster, folder.path(), &[LETTERS]).await), [State::Replayed; 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_goes_on_after_its_letter_topic_was_made_anew_or_deleted_sends_nothing_and_says_why() {
    for is_anew in [true, false] {
        let cluster = stage().await;
        letters(&cluster, LETTERS, 0..4).await;
        letters(&cluster, "others.billing.dlq", 20..22).await;
        let mut chosen = candidates(&cluster, LETTERS, 1).await;
        chosen.extend(candidates(&cluster, "others.billing.dlq", 1).await);
        let wanted = wanted(Whereto::Origin, Options::default());
        let (job, _) = begin(&cluster, &wanted, &chosen).await;
        let id = job.as_ref().unwrap().id().clone();
        drop(job);
        let expected = if is_anew {
            make_anew(&cluster).await;
            letters(&cluster, LETTERS, 10..14).await;
            "made anew"
        } else {
            delete(&cluster, LETTERS).await;
            "was deleted"
        };
        let job = replay::take_over(cluster.settings(), &Clock::system(), &id, None, false).await.unwrap();
        assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
        let sent: Vec<_> =
            all(&cluster, "orders", 1).await.iter().map(|record| text(record.value.as_ref())).collect();
        assert_eq!(sent, ["0/20", "0/21"], "nothing that nobody selected");
        let state = Followed::read(cluster.settings()).await.unwrap().state;
        let job = state.job(&id).unwrap();
        assert_eq!((job.counts().sent, job.counts().skipped), (2, 4));
        let whys = job.whys();
        assert!(whys.len() == 1 && whys.keys().all(|why| why.contains(expected)), "{whys:?}");
    }
}
