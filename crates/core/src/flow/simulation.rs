//! Flows, a shelf, a group and a broker at random: what is promised holds whatever comes when.
//!
//! One source partition, several workers of which the group gives it to one at a time. Appends land late,
//! twice or not at all, commits are refused, owners are kicked out and go on for a while, logs are cut by
//! whoever asked last, orders come at any time, and an operator resets the group. A second fold, written
//! the plain way, says what the log means. A failing seed is printed and runs again.

mod naive;
mod world;

use std::collections::BTreeMap;

use world::{Faults, World};

use super::*;

fn seeds() -> u64 {
    std::env::var("REDRIVE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

fn first_seed() -> u64 {
    std::env::var("REDRIVE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn simulate(followers: Followers, exactly_once: bool) {
    simulate_with(followers, exactly_once, |world| {
        world.run(400);
        world.settle();
    });
}

fn simulate_with(followers: Followers, exactly_once: bool, play: fn(&mut World)) {
    let mut coverage = Coverage::default();
    for seed in first_seed()..first_seed() + seeds() {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed, followers, exactly_once, Faults::default());
            play(&mut world);
            world.seen
        });
        match run {
            Ok(seen) => coverage.add(&seen),
            Err(why) => {
                eprintln!("seed {seed} with followers {followers:?}, exactly once {exactly_once}");
                std::panic::resume_unwind(why);
            }
        }
    }
    println!("followers {followers:?}, exactly once {exactly_once}:\n{coverage}");
}

/// In how many runs something happened, and how often in all: a simulation proves nothing about what never does.
#[derive(Default)]
struct Coverage {
    runs: u64,
    seen: BTreeMap<&'static str, (u64, u64)>,
}

impl Coverage {
    fn add(&mut self, seen: &BTreeMap<&'static str, u64>) {
        self.runs += 1;
        for (what, times) in seen.iter().filter(|(_, times)| **times > 0) {
            let (runs, all) = self.seen.entry(what).or_default();
            *runs += 1;
            *all += times;
        }
    }
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (what, (runs, times)) in &self.seen {
            writeln!(f, "{:>5.1}% {times:>8} {what}", 100.0 * *runs as f64 / self.runs as f64)?;
        }
        Ok(())
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

#[test]
fn what_somebody_else_cuts_off_is_told() {
    simulate_with(Followers::Pass, false, World::run_and_be_cut);
    simulate_with(Followers::Hold, false, World::run_and_be_cut);
    simulate_with(Followers::Bury, false, World::run_and_be_cut);
}

#[test]
fn what_somebody_else_cuts_off_is_told_exactly_once() {
    simulate_with(Followers::Pass, true, World::run_and_be_cut);
    simulate_with(Followers::Hold, true, World::run_and_be_cut);
    simulate_with(Followers::Bury, true, World::run_and_be_cut);
}

impl Flow {
    /// Has the log cut as soon as that may be, worth it or not.
    fn prepare_cut(&mut self, partition: i32) {
        if let Some(aside) = self.partitions.aside(partition).filter(|aside| aside.owner.is_running()) {
            aside.owner.prepare_cut();
        }
    }

    /// Looks at the next turn for pointers to old originals, whenever it last did.
    fn look_for_old_ones(&mut self, partition: i32) {
        if let Some(aside) = self.partitions.aside(partition) {
            aside.looked = None;
        }
    }

    /// Carries everything that is live, worth it or not.
    fn carry_all(&mut self, partition: i32) {
        let aside = self.partitions.aside(partition).filter(|aside| aside.owner.is_running());
        if let Some((below, _)) = aside.and_then(|aside| aside.owner.shelf.checkpoint()) {
            self.carry_below(partition, below);
        }
    }
}
