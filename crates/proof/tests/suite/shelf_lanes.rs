//! Lanes behind a letter: held over restarts until it is resolved, or buried with it.

use redrive_core::shelf::Deed;
use redrive_testkit::Stored;

use crate::on_both;
use crate::place::{Place, Sent, until};
use crate::subject::Subject;

on_both!(
    a_closed_lane_stays_closed_over_restarts_while_others_go_on,
    what_follows_a_letter_is_buried_with_it_over_restarts,
);

async fn a_closed_lane_stays_closed_over_restarts_while_others_go_on(place: Place) {
    place.topics(1).await;
    let lane = place.send([("bad", "permanent"), ("bad", "ok"), ("bad", "later:1:10")]).await;
    let mut others = place.send((0..10).map(|n| (format!("good-{n}"), "ok"))).await;
    let worker = worker_of(&place, "hold");
    place.until_done(others.len()).await;
    // They wait on the shelf: the source is complete.
    place.until_complete(&[lane.clone(), others.clone()].concat(), 1).await;
    worker.kill();

    let worker = worker_of(&place, "hold");
    let more = place.send([("bad", "ok"), ("bad", "ok")]).await;
    others.extend(place.send((0..10).map(|n| (format!("good-{n}"), "later:1:10"))).await);
    place.until_done(others.len()).await;
    place.until_complete(&[more.clone(), others.clone()].concat(), 1).await;
    worker.stop_well().await;
    let lane = [lane, more].concat();
    let calls = place.calls();
    assert_eq!(calls.starts_of((0, lane[0].offset)), 1, "its letter is there");
    assert!(lane[1..].iter().all(|one| calls.starts_of((0, one.offset)) == 0), "the lane is closed");

    let worker = worker_of(&place, "hold");
    place.order(0, lane[0].offset, Deed::Resolve).await;
    let all = [lane.clone(), others].concat();
    place.until_done(all.len() - 1).await;
    place.until_complete(&all, 1).await;
    worker.stop_well().await;
    let (calls, letters) = (place.calls(), place.letters(1).await);
    calls.judge_all(&all, &letters);
    assert_eq!((letters.len(), calls.repeats()), (1, vec![]));
}

async fn what_follows_a_letter_is_buried_with_it_over_restarts(place: Place) {
    place.topics(1).await;
    let lane = place.send([("bad", "poison:1:300"), ("bad", "ok"), ("bad", "ok")]).await;
    let others = place.send((0..10).map(|n| (format!("good-{n}"), "ok"))).await;
    let worker = worker_of(&place, "bury");
    let all = [lane.clone(), others].concat();
    until_letters(&place, 3).await;
    place.until_complete(&all, 1).await;
    worker.kill();

    let worker = worker_of(&place, "bury");
    let late = place.send([("bad", "ok"), ("other", "ok")]).await;
    let letters = until_letters(&place, 4).await;
    let all = [all, late.clone()].concat();
    place.until_complete(&all, 1).await;
    worker.stop_well().await;
    place.calls().judge_all(&all, &letters);
    let leader = format!("{}/0/{}", place.topic, lane[0].offset);
    let followers = [&lane[1], &lane[2], &late[0]];
    let header = |letter: &Stored, name: &str| letter.headers.get(name).cloned();
    assert_eq!(header(letter_of(&letters, &lane[0]), "redrive-reason").as_deref(), Some("permanent"));
    for follower in followers {
        let letter = letter_of(&letters, follower);
        assert_eq!(header(letter, "redrive-reason").as_deref(), Some("follower"));
        assert_eq!(header(letter, "redrive-leader"), Some(leader.clone()));
        assert_eq!(place.calls().starts_of((0, follower.offset)), 0, "the handler never saw it");
    }
}

async fn until_letters(place: &Place, count: usize) -> Vec<Stored> {
    until("letters", async || {
        let letters = place.letters(1).await;
        (letters.len() >= count).then_some(letters)
    })
    .await
}

fn letter_of<'a>(letters: &'a [Stored], of: &Sent) -> &'a Stored {
    let of = (of.partition, of.offset);
    letters.iter().find(|letter| crate::calls::origin(letter) == of).expect("a letter of it")
}

fn worker_of(place: &Place, followers: &str) -> Subject {
    let command = place.worker().with("--followers", followers).property("group.instance.id", "one");
    command.with("--retry", "not-ready=list(50ms x100)").start()
}
