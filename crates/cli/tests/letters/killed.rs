//! A replay whose process is killed with SIGKILL again and again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use redrive::{Clock, Cluster};
use redrive_letters::jobs::{Ending, Followed, Standing};

use crate::ground::{all, put_into, run, start, told};

const COUNT: i64 = 4_000;
/// Every second one finds more sent than the one before.
const KILLS: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_killed_again_and_again_sends_each_letter_exactly_once_and_in_order() {
    killed_again_and_again(Cluster::open("embedded").await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_is_killed_again_and_again_sends_each_letter_exactly_once_and_in_order_on_kafka() {
    let Some(kafka) = redrive_testkit::kafka() else { return };
    killed_again_and_again(Cluster::with(&kafka.brokers, kafka.properties).await.unwrap()).await;
}

async fn killed_again_and_again(cluster: Cluster) {
    let (source, folder) = (redrive_testkit::new_name("killed"), tempfile::tempdir().unwrap());
    let letters = format!("{source}.billing.dlq");
    for name in [&source, &letters] {
        cluster.create_topic(name, 2).await.unwrap();
    }
    put_into(&cluster, &source, &letters, COUNT).await;
    // The state of a cluster has the jobs of others, too.
    let jobs = async || {
        let state = Followed::read(cluster.settings()).await.unwrap().state;
        let ours = state.jobs().into_iter().filter(|job| job.begun.query.contains(&source));
        ours.cloned().collect::<Vec<_>>()
    };
    let clock = Clock::system();
    let seed = RandomState::new().build_hasher().finish();
    eprintln!("seed {seed}");
    let chosen = ["dlq", "replay", "--letters", &letters, "--topic", &source, "--all"];
    let how = ["--to", "origin", "--rate", "400/s", "--reason", "fixed", "--yes"];
    let begin = [&chosen[..], &how].concat();
    let (mut job, mut sent) = (None, 0);
    for kill in 0..KILLS {
        let resume = job.as_ref().map(|id: &String| vec!["replay", "resume", id.as_str()]);
        let mut process = start(&cluster, folder.path(), resume.as_deref().unwrap_or(&begin));
        let chance = seed.rotate_left(kill * 7);
        if kill % 2 == 0 {
            // Anywhere between the start of the process and the middle of what it sends.
            clock.sleep(Duration::from_millis(chance % 800)).await;
        } else {
            let deadline = clock.now().steady + PATIENCE;
            while jobs().await.last().is_none_or(|begun| begun.mark.upto <= sent) {
                assert!(clock.now().steady < deadline, "nothing is sent");
                clock.sleep(Duration::from_millis(10)).await;
            }
            clock.sleep(Duration::from_millis(chance % 250)).await;
        }
        process.kill().unwrap();
        process.wait().unwrap();
        if let Some(begun) = jobs().await.last() {
            eprintln!("killed with {} sent", begun.mark.upto);
            (job, sent) = (Some(begun.id.to_string()), begun.mark.upto);
        }
        if sent == COUNT.unsigned_abs() {
            assert!(kill > 3, "too little happened to mean anything");
            break;
        }
    }
    let last = match &job {
        Some(job) => run(&cluster, folder.path(), &["replay", "resume", job]).await,
        None => run(&cluster, folder.path(), &begin).await,
    };
    let jobs = jobs().await;
    assert_eq!(jobs.last().unwrap().standing(), Standing::Ended(Ending::Finished), "{:?}", told(&last));
    assert_eq!(jobs.len(), 1);

    let sent = all(&cluster, &source).await;
    for partition in 0..2 {
        let of = sent.iter().filter(|record| record.at.partition == partition);
        let numbers: Vec<i64> = of
            .map(|record| std::str::from_utf8(record.value.as_deref().unwrap()).unwrap().parse().unwrap())
            .collect();
        let wanted: Vec<i64> = (i64::from(partition)..COUNT).step_by(2).collect();
        assert!(numbers == wanted, "{} of {} in partition {partition}", numbers.len(), wanted.len());
    }
}
