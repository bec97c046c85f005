//! Flows, a shelf, a group and a broker at random: what is promised holds whatever comes when.
//!
//! One source partition, several workers of which the group gives it to one at a time. Appends land late,
//! twice or not at all, commits are refused, owners are kicked out and go on for a while, logs are cut by
//! whoever asked last, orders come at any time, and an operator resets the group. A second fold, written
//! the plain way, says what the log means. A failing seed is printed and runs again.

mod naive;
mod world;

use world::{Faults, World};

use super::*;

fn seeds() -> u64 {
    std::env::var("REDRIVE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_500)
}

fn first_seed() -> u64 {
    std::env::var("REDRIVE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn simulate(followers: Followers, exactly_once: bool) {
    for seed in first_seed()..first_seed() + seeds() {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed, followers, exactly_once, Faults::default());
            world.run(400);
            world.settle();
        });
        if let Err(why) = run {
            eprintln!("seed {seed} with followers {followers:?}, exactly once {exactly_once}");
            std::panic::resume_unwind(why);
        }
    }
}

#[test]
fn at_least_once_and_followers_pass() {
    simulate(Followers::Pass, false);
}

#[test]
fn at_least_once_and_followers_are_held() {
    simulate(Followers::Hold, false);
}

#[test]
fn at_least_once_and_followers_are_buried() {
    simulate(Followers::Bury, false);
}

#[test]
fn exactly_once_and_followers_pass() {
    simulate(Followers::Pass, true);
}

#[test]
fn exactly_once_and_followers_are_held() {
    simulate(Followers::Hold, true);
}

#[test]
fn exactly_once_and_followers_are_buried() {
    simulate(Followers::Bury, true);
}

impl Flow {
    /// Up to where the log may be cut now, worth it or not.
    fn best_cut(&self, partition: i32) -> Option<i64> {
        self.partitions.get(partition)?.aside.as_ref()?.owner.best_cut()
    }

    /// Carries everything that is live, worth it or not.
    fn carry_all(&mut self, partition: i32) {
        let aside = self.partitions.aside(partition).filter(|aside| aside.owner.is_running());
        if let Some((below, _)) = aside.and_then(|aside| aside.owner.shelf.checkpoint()) {
            self.carry_below(partition, below);
        }
    }
}
