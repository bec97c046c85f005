use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use uuid::Uuid;

use super::Topics;
use super::config::Config;
use crate::log::Handles;

fn open(dir: &std::path::Path) -> Topics {
    Topics::open(Some(dir), Handles::new(10)).unwrap()
}

fn config(pairs: &[(&str, &str)]) -> Config {
    let overrides: BTreeMap<_, _> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Config::new(overrides).unwrap()
}

/// With more than a mebibyte of live entries every deletion writes the journal anew.
#[test]
fn a_topic_can_be_deleted_while_another_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let topics = open(folder.path());
    let long = vec!["0:0"; 6_000].join(",");
    for number in 0..60 {
        let config = config(&[("leader.replication.throttled.replicas", &long)]);
        topics.create(&format!("large-{number}"), 1, config).unwrap();
    }
    let kept = topics.create("kept", 1, Config::default()).unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Not for ever: a lock is not fair, and whoever takes it again at once may keep the others from it.
            for turn in 0..200 {
                if turn > 0 && over.load(Ordering::Relaxed) {
                    break;
                }
                let changing = topics.changing();
                topics.configure(&changing, &kept, config(&[("retention.ms", "5")])).unwrap();
                drop(changing);
                thread::yield_now();
            }
        });
        for _ in 0..20 {
            let topic = topics.create("passing", 1, Config::default()).unwrap();
            topics.delete(&topic).unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
    drop(topics);
    let again = open(folder.path());
    assert_eq!(again.all().len(), 61);
    assert_eq!(again.get("kept").unwrap().config().overrides()["retention.ms"], "5");
}

#[test]
fn logs_that_no_entry_speaks_of_are_left_alone_and_those_of_deleted_topics_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let topics = open(folder.path());
    let deleted = topics.create("deleted", 1, Config::default()).unwrap();
    topics.delete(&deleted).unwrap();
    drop(topics);
    let dir = |id: Uuid| folder.path().join("logs").join(id.to_string());
    let unknown = Uuid::from_u128(7);
    fs::create_dir_all(dir(unknown)).unwrap();
    fs::create_dir_all(dir(deleted.id)).unwrap();
    open(folder.path());
    assert!(dir(unknown).exists());
    assert!(!dir(deleted.id).exists());
}
