//! A mix of questions, each with other values, and how long the slowest took.

use std::time::Duration;

use redrive::{Class, Timestamp};
use redrive_letters::stats::By;
use redrive_letters::{Error, Fingerprint, Index, Query, Sort, State};

use crate::fill::{BEGAN, scattered};
use crate::{clock, millis, row};

const PAGE: usize = 50;
const DAY: u64 = 86_400_000;

/// Asks so many questions of each sort.
pub(crate) fn ask(index: &mut Index, letters: u64, count: u32) -> Result<(), Error> {
    let now = Timestamp::from_millis(i64::try_from(BEGAN + 30 * DAY).unwrap_or(0));
    let failures: Vec<Fingerprint> =
        index.groups(&Query::default(), now)?.iter().map(|group| group.failure).collect();
    let (mut lists, mut groups): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for (name, question) in LISTS {
        let mut times = Vec::new();
        for number in 0..(u64::from(count) / LISTS.len() as u64).max(1) {
            let query = question(scattered(number + 1), letters, &failures);
            let begun = clock::now();
            let page = index.page(&query, PAGE, None)?;
            times.push(begun.elapsed());
            if let Some(next) = page.next {
                let begun = clock::now();
                index.page(&query, PAGE, Some(next))?;
                times.push(begun.elapsed());
            }
        }
        tell(&format!("list {name}"), &mut times);
        lists.append(&mut times);
    }
    for number in 0..(u64::from(count) / 8).max(1) {
        let query = some_days(scattered(number + 1), letters, &failures);
        for question in 0..4 {
            let begun = clock::now();
            match question {
                0 => drop(index.groups(&Query::default(), now)?),
                1 => drop(index.groups(&query, now)?),
                2 => drop(index.stats(&query, By::Hour)?),
                _ => drop(index.stats(&Query::default(), By::Error)?),
            }
            groups.push(begun.elapsed());
        }
    }
    tell("all lists", &mut lists);
    tell("all groups and stats", &mut groups);
    Ok(())
}

fn tell(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at =
        |share: usize| times.get(times.len() * share / 100).or(times.last()).copied().unwrap_or_default();
    let slowest = times.last().copied().unwrap_or_default();
    row(name, &format!("median {}, p99 {}, slowest {}", millis(at(50)), millis(at(99)), millis(slowest)));
}

type Question = fn(u64, u64, &[Fingerprint]) -> Query;

const LISTS: [(&str, Question); 11] = [
    ("the newest", |_, _, _| Query::default()),
    ("by topic, the oldest", |chance, _, _| Query {
        topics: vec![format!("orders-{}", chance % 4)],
        sort: Sort::Oldest,
        ..Query::default()
    }),
    ("by failure group", |chance, _, failures| Query {
        failures: vec![failures[chance as usize % failures.len()]],
        ..Query::default()
    }),
    ("by key", |chance, letters, _| Query {
        keys: vec![format!("customer-{}", chance % (letters / 4).max(1)).into_bytes()],
        ..Query::default()
    }),
    ("by key, a pattern", |chance, _, _| Query {
        key_pattern: Some(format!("customer-{}$", chance % 1_000)),
        ..Query::default()
    }),
    ("of some days", some_days),
    ("by class, reason and attempts", |chance, _, _| Query {
        classes: vec![Class::ALL[chance as usize % 4]],
        least_attempts: Some(3),
        sort: Sort::Attempts,
        ..Query::default()
    }),
    ("by common words", |chance, _, _| Query {
        text: Some(["database", "declined", "refused ledger", "decode"][chance as usize % 4].to_owned()),
        ..Query::default()
    }),
    ("by rare words", |chance, letters, _| Query {
        text: Some(format!("order {}", chance % letters.max(1))),
        ..Query::default()
    }),
    ("by lane and class", |chance, letters, _| Query {
        lanes: vec![format!("customer-{}", chance % (letters / 4).max(1)).into_bytes()],
        classes: vec![Class::Transient],
        ..Query::default()
    }),
    ("that nothing fits", |chance, _, failures| Query {
        failures: vec![failures[chance as usize % failures.len()]],
        states: vec![State::Resolved],
        ..Query::default()
    }),
];

fn some_days(chance: u64, _: u64, _: &[Fingerprint]) -> Query {
    let from = BEGAN + chance % (29 * DAY);
    let time = |millis: u64| Some(Timestamp::from_millis(i64::try_from(millis).unwrap_or(0)));
    Query {
        groups: vec![format!("group-{}", chance % 4)],
        after: time(from),
        before: time(from + DAY),
        ..Query::default()
    }
}
