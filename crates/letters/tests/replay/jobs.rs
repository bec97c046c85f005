//! One job: what it sends, where it stops and goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use redrive::{Clock, Cluster};
use redrive_letters::jobs::{
    Ending, Followed, LetterState, Options, REMEMBERED, Standing, Want, Whereto, Wish, forget_old, story,
};
use redrive_letters::replay::{self, Ended, Held, Wanted, control};
use redrive_letters::show::Shown;

use crate::ground::{all, begin, candidates, destinations, letter, process, put, run, text, topic, wanted};

const LETTERS: &str = "orders.billing.dlq";

/// Letters of two partitions that did not become letters in the order of their origins.
async fn stage(count: i64) -> Cluster {
    let cluster = Cluster::open("embedded").await.unwrap();
    for (name, partitions) in [("orders", 2), (LETTERS, 2), ("elsewhere", 1)] {
        cluster.create_topic(name, partitions).await.unwrap();
    }
    // 7 and the number of letters have no common divisor, so each comes once.
    let origins = (0..count).map(|n| n * 7 % count);
    let letters =
        origins.map(|n| letter("orders", LETTERS, i32::try_from(n % 2).unwrap(), n, &format!("k{}", n % 10)));
    put(&cluster, letters.collect()).await;
    cluster
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_go_back_to_their_partitions_in_the_order_of_their_origins_without_their_failures() {
    let cluster = stage(2_001).await;
    let candidates = candidates(&cluster, LETTERS, 2).await;
    let wanted = wanted(Whereto::Origin, Options::default());
    let (job, plan) = begin(&cluster, &wanted, &candidates).await;
    assert_eq!((plan.letters.len(), plan.left_out.len()), (2_001, 0));
    let job = job.unwrap();
    let id = job.id().clone();
    assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);

    let sent = all(&cluster, "orders", 2).await;
    assert_eq!(sent.len(), 2_001);
    let origins = |partition: i32| {
        let of = sent.iter().filter(move |record| record.at.partition == partition);
        of.map(|record| text(record.value.as_ref())).collect::<Vec<_>>()
    };
    assert_eq!(origins(0), (0..2_001).step_by(2).map(|n| format!("0/{n}")).collect::<Vec<_>>());
    assert_eq!(origins(1), (1..2_001).step_by(2).map(|n| format!("1/{n}")).collect::<Vec<_>>());
    let first = &sent[0];
    assert_eq!(text(first.key.as_ref()), "k0");
    let names: Vec<_> = first.headers.iter().map(|header| header.name.as_ref()).collect();
    assert_eq!(names, ["trace", "redrive-replay", "redrive-replays", "redrive-replayed-at", "redrive-group"]);
    assert_eq!(first.headers.text("redrive-replay"), Some(format!("{id}/0").as_str()));
    assert_eq!(first.headers.text("redrive-replays"), Some("1"));

    let state = Followed::read(cluster.settings()).await.unwrap().state;
    assert_eq!(state.job(&id).unwrap().standing(), Standing::Ended(Ending::Finished));
    let letters = state.letters(&plan.letters);
    assert_eq!(letters.len(), 2_001);
    assert!(letters.values().all(|state| *state == LetterState::Replayed(id.clone(), None)));

    let (job, plan) = begin(&cluster, &wanted, &candidates).await;
    assert!(
        job.is_none() && plan.left_out.values().sum::<u64>() == 2_001,
        "sent already: {:?}",
        plan.left_out
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_stopped_goes_on_where_it_was() {
    let cluster = stage(500).await;
    let candidates = candidates(&cluster, LETTERS, 2).await;
    let options = Options { rate: Some("500/s".to_owned()), ..Options::default() };
    let wanted = wanted(Whereto::Topic(topic("elsewhere")), options);
    let (job, _) = begin(&cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let id = job.id().clone();
    let mut process = process(&cluster);
    let sending = replay::run(&process.running, job, || Ok(destinations(&cluster, &wanted.to)));
    let stopping = async {
        process.progress.wait_for(|progress| progress.upto > 0).await.unwrap();
        process.stop.send(true).unwrap();
    };
    let (ended, ()) = tokio::join!(sending, stopping);
    assert_eq!(ended.unwrap(), Ended::Stopped);
    let before = all(&cluster, "elsewhere", 1).await.len();
    assert!(before > 0 && before < 500, "{before}");

    let clock = Clock::system();
    let job = replay::take_over(cluster.settings(), &clock, &id, None, false).await.unwrap();
    assert_eq!(job.job().unwrap().mark.upto, before as u64);
    assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
    let sent = all(&cluster, "elsewhere", 1).await;
    let mut values: Vec<_> = sent.iter().map(|record| text(record.value.as_ref())).collect();
    values.sort();
    values.dedup();
    assert_eq!((sent.len(), values.len()), (500, 500));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_waits_and_ends_when_somebody_elsewhere_wants_it() {
    let cluster = stage(400).await;
    let candidates = candidates(&cluster, LETTERS, 2).await;
    let options = Options { rate: Some("20/s".to_owned()), ..Options::default() };
    let wanted = wanted(Whereto::Origin, options);
    let (job, _) = begin(&cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let (id, clock) = (job.id().clone(), Clock::system());
    let mut process = process(&cluster);
    let sending = replay::run(&process.running, job, || Ok(destinations(&cluster, &wanted.to)));
    let operating = async {
        process.progress.wait_for(|progress| progress.upto > 0).await.unwrap();
        let pause = Wish {
            want: Want::Pause,
            by: "bob@there".to_owned(),
            at: 1,
            why: "lunch".to_owned(),
            canary: false,
        };
        control::wish(cluster.settings(), &id, &pause).await.unwrap();
        let told = process.progress.wait_for(|progress| progress.waits.is_some()).await.unwrap().clone();
        assert_eq!(told.waits.as_deref(), Some("paused by bob@there: lunch"));
        control::cancel(cluster.settings(), &clock, &id, "bob@there", "wrong letters").await.unwrap()
    };
    let (ended, job) = tokio::join!(sending, operating);
    assert_eq!(ended.unwrap(), Ended::Cancelled);
    assert_eq!(job.end.as_ref().unwrap().upto, job.mark.upto);
    assert_eq!(all(&cluster, "orders", 2).await.len() as u64, job.mark.upto);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_nobody_runs_is_ended_by_whoever_cancels_it() {
    let cluster = stage(10).await;
    let candidates = candidates(&cluster, LETTERS, 2).await;
    let wanted = wanted(Whereto::Origin, Options::default());
    let (job, _) = begin(&cluster, &wanted, &candidates).await;
    let id = job.unwrap().id().clone();
    let clock = Clock::system();
    let job = control::cancel(cluster.settings(), &clock, &id, "bob", "").await.unwrap();
    assert_eq!(job.standing(), Standing::Ended(Ending::Cancelled));
    let (job, plan) = begin(&cluster, &wanted, &candidates).await;
    assert!(job.is_some() && plan.left_out.is_empty(), "its letters are free");
}

#[tokio::test(flavor = "multi_thread")]
async fn letters_that_are_gone_when_it_is_their_turn_are_told_and_left_out() {
    let cluster = stage(100).await;
    let candidates = candidates(&cluster, LETTERS, 2).await;
    let wanted = wanted(Whereto::Origin, Options::default());
    let (job, _) = begin(&cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let id = job.id().clone();
    let below = redrive_core::Origin { topic: topic(LETTERS), partition: 0, offset: 20 };
    redrive_kafka::Admin::new(cluster.settings()).unwrap().delete_records(&below).await.unwrap();
    assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
    assert_eq!(all(&cluster, "orders", 2).await.len(), 80);
    let job =
        control::listen(cluster.settings(), &Clock::system(), &id, Duration::ZERO, |_| {}).await.unwrap();
    let counts = job.counts();
    assert_eq!((counts.sent, counts.skipped), (80, 20));
    assert_eq!(job.whys().into_iter().collect::<Vec<_>>(), [("they are gone from the letter topic", 20)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ended_long_ago_is_forgotten_once_its_letters_are_gone_and_not_before() {
    let cluster = Cluster::open("embedded").await.unwrap();
    for name in ["orders", LETTERS] {
        cluster.create_topic(name, 1).await.unwrap();
    }
    put(&cluster, (0..5).map(|n| letter("orders", LETTERS, 0, n, "k")).collect()).await;
    let candidates = candidates(&cluster, LETTERS, 1).await;
    let wanted = wanted(Whereto::Origin, Options::default());
    let (job, _) = begin(&cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let id = job.id().clone();
    assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
    let settings = cluster.settings();
    let state = async || Followed::read(settings).await.unwrap().state;
    let now = Clock::system().now().wall;
    let later = now.plus(REMEMBERED).plus(Duration::from_secs(60));
    assert_eq!(
        forget_old(settings, &state().await, later).await.unwrap(),
        0,
        "its letters would be open again"
    );
    let admin = redrive_kafka::Admin::new(settings).unwrap();
    admin.delete_records(&format!("{LETTERS}/0/4").parse().unwrap()).await.unwrap();
    assert_eq!(forget_old(settings, &state().await, later).await.unwrap(), 0, "one is still there");
    admin.delete_records(&format!("{LETTERS}/0/5").parse().unwrap()).await.unwrap();
    assert_eq!(forget_old(settings, &state().await, now).await.unwrap(), 0, "it is remembered for a while");
    assert!(state().await.job(&id).is_some());
    assert_eq!(forget_old(settings, &state().await, later).await.unwrap(), 1);
    assert!(state().await.job(&id).is_none());
    let keys = all(&cluster, "redrive.state", 1).await;
    let mut last = BTreeMap::new();
    for record in keys {
        last.insert(text(record.key.as_ref()), record.value.is_none());
    }
    let of_job = last.iter().filter(|(key, _)| key.contains(id.as_str()));
    assert!(of_job.clone().count() > 3 && of_job.clone().all(|(_, gone)| *gone), "{last:?}");
}

/// A job whose first letters are waited for in vain: nobody who tells consumes the topic.
async fn with_canary(cluster: &Cluster, options: Options) -> (Held, Wanted) {
    let candidates = candidates(cluster, LETTERS, 2).await;
    let wanted = wanted(Whereto::Origin, options);
    let (job, plan) = begin(cluster, &wanted, &candidates).await;
    assert_eq!(plan.silent, BTreeMap::from([(topic("orders"), candidates.len() as u64)]));
    (job.unwrap(), wanted)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_pauses_since_nothing_is_heard_of_its_first_letters_goes_on_when_it_is_resumed() {
    let cluster = stage(50).await;
    // How long it waits is part of the job: the process would wait much longer.
    let options = Options { canary: Some(5), canary_wait_ms: Some(300), ..Options::default() };
    let (job, wanted) = with_canary(&cluster, options).await;
    let (id, clock, settings) = (job.id().clone(), Clock::system(), cluster.settings());
    let ended = run(&cluster, job, &wanted.to).await;
    assert_eq!(ended, Ended::Paused("nothing was heard of 5 of the first 5".to_owned()));

    // One that crashed meanwhile waits for them again: nobody said anything of them.
    let state = async || Followed::read(settings).await.unwrap().state;
    let known = state().await.job(&id).unwrap().clone();
    assert!(known.wish.as_ref().unwrap().canary, "{known:?}");
    let wish = known.go_on("bob@there", clock.now().wall, "they look good");
    let job = replay::take_over(settings, &clock, &id, Some(wish), false).await.unwrap();
    assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
    assert_eq!(all(&cluster, "orders", 2).await.len(), 50, "each once");
    let job = control::listen(settings, &clock, &id, Duration::from_secs(60), |_| {}).await.unwrap();
    assert!(
        job.is_over() && job.counts().unheard() == 50,
        "nothing more is ever heard, so nobody waits for it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_resumed_before_its_first_letters_were_given_up_still_waits_for_them() {
    let cluster = stage(50).await;
    let options = Options { canary: Some(5), canary_wait_ms: Some(60_000), ..Options::default() };
    let (job, wanted) = with_canary(&cluster, options).await;
    let (id, clock, settings) = (job.id().clone(), Clock::system(), cluster.settings());
    let stopped_while_it_waits = async |job| {
        let mut process = process(&cluster);
        let sending = replay::run(&process.running, job, || Ok(destinations(&cluster, &wanted.to)));
        let stopping = async {
            process.progress.wait_for(|progress| progress.waits.is_some()).await.unwrap();
            process.stop.send(true).unwrap();
        };
        let (ended, ()) = tokio::join!(sending, stopping);
        assert_eq!(ended.unwrap(), Ended::Stopped);
    };
    stopped_while_it_waits(job).await;
    let known = Followed::read(settings).await.unwrap().state.job(&id).unwrap().clone();
    let wish = known.go_on("bob@there", clock.now().wall, "");
    let job = replay::take_over(settings, &clock, &id, Some(wish), false).await.unwrap();
    stopped_while_it_waits(job).await;
    assert_eq!(all(&cluster, "orders", 2).await.len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_process_stopped_or_is_gone_is_interrupted_until_another_goes_on() {
    let cluster = stage(400).await;
    let candidates = candidates(&cluster, LETTERS, 2).await;
    let options = Options { rate: Some("100/s".to_owned()), ..Options::default() };
    let wanted = wanted(Whereto::Origin, options);
    let (job, _) = begin(&cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let (id, clock, settings) = (job.id().clone(), Clock::system(), cluster.settings());
    let known = async || Followed::read(settings).await.unwrap().state.job(&id).unwrap().clone();
    let begun = known().await;
    assert_eq!(begun.standing_at(begun.begun.time()), Standing::Running);
    let later = begun.begun.time().plus(Duration::from_secs(60));
    assert_eq!(begun.standing_at(later), Standing::Interrupted, "nothing was heard of it");

    let mut first = process(&cluster);
    let sending = replay::run(&first.running, job, || Ok(destinations(&cluster, &wanted.to)));
    let stopping = async {
        first.progress.wait_for(|progress| progress.upto > 0).await.unwrap();
        assert_eq!(known().await.standing_at(clock.now().wall), Standing::Running);
        first.stop.send(true).unwrap();
    };
    let (ended, ()) = tokio::join!(sending, stopping);
    assert_eq!(ended.unwrap(), Ended::Stopped);
    assert_eq!(known().await.standing_at(clock.now().wall), Standing::Interrupted, "it said so");

    let job = replay::take_over(settings, &clock, &id, None, false).await.unwrap();
    let mut second = process(&cluster);
    let sending = replay::run(&second.running, job, || Ok(destinations(&cluster, &wanted.to)));
    let watching = async {
        second.progress.wait_for(|progress| progress.upto > progress.from).await.unwrap();
        assert_eq!(known().await.standing_at(clock.now().wall), Standing::Running);
    };
    let (ended, ()) = tokio::join!(sending, watching);
    assert_eq!(ended.unwrap(), Ended::Finished);
    assert_eq!(known().await.standing_at(later), Standing::Ended(Ending::Finished));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_sent_while_a_job_waits_is_not_made_up_for_in_a_rush() {
    let cluster = stage(200).await;
    let options = Options {
        rate: Some("100/s".to_owned()),
        canary: Some(5),
        canary_wait_ms: Some(60_000),
        ..Options::default()
    };
    let (job, wanted) = with_canary(&cluster, options).await;
    let (id, clock, settings) = (job.id().clone(), Clock::system(), cluster.settings());
    let mut process = process(&cluster);
    let sending = replay::run(&process.running, job, || Ok(destinations(&cluster, &wanted.to)));
    let began = async {
        process.progress.wait_for(|progress| progress.waits.is_some()).await.unwrap();
        // Longer than all that could be saved up.
        clock.sleep(Duration::from_millis(1_500)).await;
        let known = Followed::read(settings).await.unwrap().state.job(&id).unwrap().clone();
        let wish = Wish { canary: true, ..known.go_on("bob@there", clock.now().wall, "") };
        let began = clock.now().steady;
        control::wish(settings, &id, &wish).await.unwrap();
        began
    };
    let (ended, began) = tokio::join!(sending, began);
    assert_eq!(ended.unwrap(), Ended::Finished);
    let took = clock.now().steady - began;
    // 195 letters, of which the first handful of 20 may go at once.
    assert!(took >= Duration::from_millis(1_650), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_did_with_a_letter_is_told_with_its_time() {
    let cluster = stage(20).await;
    let candidates = candidates(&cluster, LETTERS, 2).await;
    let wanted = wanted(Whereto::Origin, Options::default());
    let (job, plan) = begin(&cluster, &wanted, &candidates).await;
    let job = job.unwrap();
    let (id, settings, clock) = (job.id().clone(), cluster.settings(), Clock::system());
    let letter = plan.letters[7].clone();
    assert_eq!(story(settings, &letter).await.unwrap()[0].done, None);
    let before = clock.now().wall;
    assert_eq!(run(&cluster, job, &wanted.to).await, Ended::Finished);
    let (job, at) = (id.to_string(), clock.now().wall);
    let report = redrive::replay::Report {
        job,
        number: 7,
        what: redrive::replay::What::Handled,
        at,
        by: "one".to_owned(),
        letter: None,
        why: None,
    };
    put(&cluster, vec![report.write().partition(0)]).await;
    let chapters = story(settings, &letter).await.unwrap();
    assert_eq!((chapters.len(), chapters[0].number, chapters[0].is_sent()), (1, 7, true));
    assert!(chapters[0].done.is_some_and(|done| (before..=at).contains(&done)), "{chapters:?}");
    assert_eq!((chapters[0].outcomes[0].at, chapters[0].outcomes[0].by.as_str()), (at.millis(), "one"));
    let shown = Shown::read(settings, &letter, std::iter::empty()).await.unwrap();
    let document = shown.document();
    let told: Vec<_> =
        document["timeline"].as_array().unwrap().iter().map(|one| one["kind"].clone()).collect();
    assert_eq!(told, ["buried", "sent", "outcome"]);
    assert_eq!((&document["replays"], &document["replay"]), (&1.into(), &format!("{id}/7").into()));
    assert!(document["replayed_at"].is_string(), "{document}");
    assert_eq!(story(settings, &format!("{LETTERS}/0/99").parse().unwrap()).await.unwrap(), []);
}
