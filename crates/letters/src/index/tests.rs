//! The index against a plain list that is searched from end to end.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;
use redrive_core::{Class, Origin, Record, Timestamp};
use tempfile::TempDir;

use super::Index;
use super::entry::Entry;
use super::write::Run;
use crate::state::{GroupWish, LetterState, Outcome, State, Wish};
use crate::stats::By;
use crate::{Letter, Query, Sort, Standing, Summary};

/// One letter, described by a few small numbers so that many are alike.
#[derive(Debug, Clone)]
struct Spec {
    key: u8,
    time: i64,
    error: u8,
    attempts: u8,
    lane: u8,
    class: u8,
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    let spec = (0..4_u8, 0..20_i64, 0..4_u8, 0..40_u8, 0..4_u8, 0..3_u8).prop_map(
        |(key, time, error, attempts, lane, class)| Spec {
            key,
            time: time * 1_000_000,
            error,
            attempts,
            lane,
            class,
        },
    );
    proptest::collection::vec(spec, 1..60)
}

const TOPIC: &str = "orders.g.dlq";

fn letter(spec: &Spec, partition: i32, offset: i64) -> Letter {
    let mut headers = redrive_core::headers::Headers::default();
    let mut set = |name: &str, value: String| headers.set(name, value);
    set("redrive-origin", format!("orders/{partition}/{offset}"));
    set("redrive-group", "g".to_owned());
    set("redrive-attempt", spec.attempts.to_string());
    set("redrive-error-type", format!("Error{}", ["A", "B", "C", "D"][spec.error as usize]));
    set(
        "redrive-error-message",
        format!("{} number {offset} failed", ["db", "web", "disk", "db"][spec.error as usize]),
    );
    set("redrive-reason", "exhausted".to_owned());
    set("redrive-buried-at", spec.time.to_string());
    if spec.class > 0 {
        set("redrive-class", Class::ALL[spec.class as usize].to_string());
    }
    if spec.lane > 0 {
        set("redrive-lane", format!("k{}", spec.lane));
    }
    if spec.attempts > 35 {
        set("redrive-leader", format!("orders/{partition}/0"));
    }
    let key = (spec.key > 0).then(|| Bytes::from(format!("k{}", spec.key)));
    let at = Origin { topic: TOPIC.parse().unwrap(), partition, offset };
    Letter::read(&Record { at, timestamp: None, key, value: Some(Bytes::from_static(b"x")), headers })
}

struct World {
    _folder: TempDir,
    index: Index,
    topic: i64,
    letters: BTreeMap<Origin, (Letter, State)>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut index, _) = Index::open(folder.path(), "test").unwrap();
        let topic = index.set_topic(&TOPIC.parse().unwrap(), None, false).unwrap();
        Self { _folder: folder, index, topic, letters: BTreeMap::new() }
    }

    fn add(&mut self, specs: &[Spec]) {
        let mut runs: BTreeMap<i32, Vec<Letter>> = BTreeMap::new();
        for (number, spec) in specs.iter().enumerate() {
            let (partition, offset) = ((number % 2) as i32, number as i64 / 2);
            runs.entry(partition).or_default().push(letter(spec, partition, offset));
        }
        for (partition, letters) in runs {
            let place = self.index.place(self.topic, partition, 0).unwrap().place;
            for letter in &letters {
                self.letters.insert(letter.at.clone(), (letter.clone(), State::Open));
            }
            let entries: Vec<Entry> =
                letters.into_iter().map(|letter| Entry::of(letter, |_| false)).collect();
            let next = entries.len() as i64;
            self.index
                .add(vec![Run { place, topic: self.topic, is_compacted: false, entries, next }])
                .unwrap();
        }
    }

    fn sweep(&mut self, partition: i32, first: i64) {
        let place = self.index.place(self.topic, partition, 0).unwrap().place;
        self.index.sweep(place, first).unwrap();
        self.index.tidy().unwrap();
        self.letters.retain(|at, _| at.partition != partition || at.offset >= first);
    }

    fn set(&mut self, partition: i32, offset: i64, state: State) {
        let letter = Origin { topic: TOPIC.parse().unwrap(), partition, offset };
        let said = LetterState {
            letter: letter.clone(),
            state,
            job: Some("j1".to_owned()),
            outcome: Some(Outcome::Buried),
            at: None,
        };
        self.index.set_states(&[said]).unwrap();
        if let Some((_, is)) = self.letters.get_mut(&letter) {
            *is = state;
        }
    }

    fn expected(&self, query: &Query) -> Vec<&(Letter, State)> {
        self.letters.values().filter(|(letter, state)| means(query, letter, *state)).collect()
    }

    fn pages(&mut self, query: &Query, most: usize) -> Vec<Summary> {
        let (mut all, mut from) = (Vec::new(), None);
        loop {
            let page = self.index.page(query, most, from).unwrap();
            assert!(page.letters.len() <= most);
            all.extend(page.letters);
            from = page.next;
            if from.is_none() {
                return all;
            }
        }
    }
}

fn means(query: &Query, letter: &Letter, state: State) -> bool {
    let text = query.text.as_deref().unwrap_or_default().to_lowercase();
    let said =
        format!("{} {}", letter.error_type.as_deref().unwrap_or(""), letter.message.as_deref().unwrap_or(""));
    let said: Vec<String> = said.to_lowercase().split(' ').map(ToOwned::to_owned).collect();
    let attempts = letter.attempts.unwrap_or(0);
    (query.keys.is_empty() || query.keys.iter().any(|key| letter.key.as_deref() == Some(key)))
        && (query.lanes.is_empty() || query.lanes.iter().any(|lane| letter.lane.as_deref() == Some(lane)))
        && (query.classes.is_empty() || letter.class.is_some_and(|class| query.classes.contains(&class)))
        && (query.states.is_empty() || query.states.contains(&state))
        && query.after.is_none_or(|after| letter.time() >= after)
        && query.before.is_none_or(|before| letter.time() < before)
        && query.least_attempts.is_none_or(|least| attempts >= least)
        && query.most_attempts.is_none_or(|most| attempts <= most)
        && query.leader.as_ref().is_none_or(|leader| letter.leader.as_ref() == Some(leader))
        && query.key_pattern.is_none() | letter.key.as_deref().is_some_and(|key| key.ends_with(b"2"))
        && text.split_whitespace().all(|word| said.iter().any(|one| one == word))
}

fn queries() -> impl Strategy<Value = Query> {
    let times = (proptest::option::of(0..20_i64), proptest::option::of(0..20_i64));
    let texts = proptest::sample::select(vec![
        None,
        Some("db"),
        Some("failed db"),
        Some("7"),
        Some("ErrorB"),
        Some("nothing"),
    ]);
    let attempts = (proptest::option::of(0..40_u32), proptest::option::of(0..40_u32));
    let sort = proptest::sample::select(vec![Sort::Newest, Sort::Oldest, Sort::Attempts]);
    let flags = (0..3_u8, 0..3_u8, 0..3_u8, 0..3_u8, any::<bool>(), any::<bool>());
    (times, texts, attempts, sort, flags).prop_map(|((after, before), text, (least, most), sort, flags)| {
        let named = |flag: u8| if flag == 0 { Vec::new() } else { vec![format!("k{flag}").into_bytes()] };
        Query {
            keys: if flags.0 == 1 { named(2) } else { Vec::new() },
            lanes: if flags.1 == 1 { named(1) } else { Vec::new() },
            classes: if flags.2 == 1 { vec![Class::Outage, Class::Transient] } else { Vec::new() },
            states: if flags.3 == 1 { vec![State::Open] } else { Vec::new() },
            key_pattern: flags.4.then(|| "2$".to_owned()),
            leader: (flags.5 && flags.0 == 2).then(|| "orders/1/0".parse().unwrap()),
            after: after.map(|time| Timestamp::from_millis(time * 1_000_000)),
            before: before.map(|time| Timestamp::from_millis(time * 1_000_000 + 1)),
            text: text.map(ToOwned::to_owned),
            least_attempts: least.filter(|_| flags.2 == 2),
            most_attempts: most.filter(|_| flags.3 == 2),
            sort,
            ..Query::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_question_is_answered_as_by_looking_at_every_letter(
        specs in specs(), queries in proptest::collection::vec(queries(), 1..12),
        sweep in (0..2_i32, 0..10_i64), states in proptest::collection::vec((0..2_i32, 0..20_i64, 0..5_usize), 0..8),
    ) {
        let mut world = World::new();
        // What is said of letters that are not there yet counts when they come.
        for (partition, offset, state) in states.iter().take(3) {
            world.index.place(world.topic, *partition, 0).unwrap();
            world.set(*partition, *offset, State::ALL[*state]);
        }
        let early = states.iter().take(3).copied().collect::<Vec<_>>();
        world.add(&specs);
        for (partition, offset, state) in early {
            let at = Origin { topic: TOPIC.parse().unwrap(), partition, offset };
            if let Some((_, is)) = world.letters.get_mut(&at) { *is = State::ALL[state]; }
        }
        for (partition, offset, state) in states.iter().skip(3) {
            world.set(*partition, *offset, State::ALL[*state]);
        }
        world.sweep(sweep.0, sweep.1);
        for query in &queries {
            let expected: BTreeSet<Origin> = world.expected(query).iter().map(|(letter, _)| letter.at.clone()).collect();
            let found = world.pages(query, 5);
            let ats: Vec<Origin> = found.iter().map(|letter| letter.at.clone()).collect();
            prop_assert_eq!(ats.iter().cloned().collect::<BTreeSet<_>>(), expected.clone(), "{}", query);
            prop_assert_eq!(ats.len(), expected.len(), "none twice: {}", query);
            prop_assert_eq!(world.index.select(query).unwrap(), expected.iter().cloned().collect::<Vec<_>>());
            let place = |letter: &Summary| match query.sort {
                Sort::Newest => (0, -letter.time.millis()),
                Sort::Oldest => (0, letter.time.millis()),
                Sort::Attempts => (-i64::from(letter.attempts.min(32)), -letter.time.millis()),
            };
            prop_assert!(found.is_sorted_by_key(place), "{}", query);
            let groups = world.index.groups(query, Timestamp::from_millis(0)).unwrap();
            prop_assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), expected.len() as u64, "{}", query);
            for by in [By::Hour, By::Day, By::Error, By::Topic, By::Group] {
                let bars = world.index.stats(query, by).unwrap();
                prop_assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), expected.len() as u64);
            }
        }
        let letters: Vec<_> = world.letters.values().cloned().collect();
        for group in world.index.groups(&Query::default(), Timestamp::from_millis(0)).unwrap() {
            let of: Vec<_> = letters.iter().filter(|(letter, _)| letter.fingerprint() == group.failure).collect();
            let keys: BTreeSet<_> = of.iter().filter_map(|(letter, _)| letter.key.clone()).collect();
            prop_assert_eq!((group.count, group.keys), (of.len() as u64, keys.len() as u64));
            prop_assert_eq!(group.open, of.iter().filter(|(_, state)| *state == State::Open).count() as u64);
            prop_assert_eq!(group.first, of.iter().map(|(letter, _)| letter.time()).min().unwrap());
            prop_assert_eq!(group.last, of.iter().map(|(letter, _)| letter.time()).max().unwrap());
        }
    }
}

#[test]
fn what_is_said_of_a_failure_group_is_told_with_it() {
    let mut world = World::new();
    world.add(&[Spec { key: 1, time: 1_000_000, error: 0, attempts: 1, lane: 0, class: 0 }]);
    let now = Timestamp::from_millis(2_000_000);
    let group = world.index.groups(&Query::default(), now).unwrap().remove(0);
    assert_eq!(group.standing, Standing::New);
    let mut said = GroupWish {
        failure: group.failure,
        wish: Wish::Resolved,
        by: "ann".to_owned(),
        at: Timestamp::from_millis(1_500_000),
        why: Some("fixed".to_owned()),
    };
    world.index.set_group_wish(&said).unwrap();
    let group = world.index.groups(&Query::default(), now).unwrap().remove(0);
    assert_eq!((group.standing, group.said.as_ref()), (Standing::Resolved, Some(&said)));
    said.at = Timestamp::from_millis(500_000);
    world.index.set_group_wish(&said).unwrap();
    assert_eq!(world.index.groups(&Query::default(), now).unwrap()[0].standing, Standing::Regressed);
    world.index.clear_states().unwrap();
    assert_eq!(world.index.groups(&Query::default(), now).unwrap()[0].standing, Standing::New);
}

#[test]
fn a_state_comes_with_its_job_and_outcome() {
    let mut world = World::new();
    world.add(&[Spec { key: 1, time: 0, error: 0, attempts: 1, lane: 0, class: 0 }]);
    world.set(0, 0, State::Replayed);
    let letter = world.pages(&Query::default(), 5).remove(0);
    assert_eq!(
        (letter.state, letter.job.as_deref(), letter.outcome),
        (State::Replayed, Some("j1"), Some(Outcome::Buried))
    );
    world.index.clear_states().unwrap();
    assert_eq!(world.pages(&Query::default(), 5)[0].state, State::Open);
}
