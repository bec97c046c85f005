//! The fold: whatever compaction removes, everybody comes to the same; who holds a letter; how a letter stands.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::*;
use redrive_core::headers::Headers;
use redrive_core::{Origin, Record};

use super::*;

/// A log as it is written: keys, values, offsets.
#[derive(Debug, Default)]
struct Log(Vec<Record>);

impl Log {
    fn put(&mut self, key: &Key, value: Option<Bytes>) {
        let at =
            Origin { topic: "redrive.state".parse().unwrap(), partition: 0, offset: self.0.len() as i64 };
        let key = Some(Bytes::from(key.to_string()));
        self.0.push(Record { at, timestamp: None, key, value, headers: Headers::default() });
    }

    fn begin(&mut self, id: &JobId, kind: Kind, letters: &[Origin]) {
        let selection = Selection::of(letters);
        for (number, chunk) in (0..).zip(selection.chunks()) {
            self.put(&Key::Selection(id.clone(), number), Some(chunk.clone()));
        }
        let begun = Begun {
            kind,
            by: "ann".into(),
            reason: "because".into(),
            at: 5,
            query: "--all".into(),
            to: Whereto::Topic("elsewhere".parse().unwrap()),
            letters: selection.len(),
            chunks: u32::try_from(selection.chunks().len()).unwrap(),
            options: Options { rate: Some("50/s".into()), max_failed: Some(2.5), ..Options::default() },
            ends: BTreeMap::from([("a/0".to_owned(), 7)]),
            topics: BTreeMap::from([("orders.billing.dlq".to_owned(), "then".to_owned())]),
            lanes: Vec::new(),
            announced: None,
            silent: Some(2),
            replays: BTreeMap::from([(1, 3)]),
            cuts: Vec::new(),
            rewrites: Vec::new(),
        };
        self.put(&Key::Begun(id.clone()), Some(value::write(&begun)));
    }

    fn mark(&mut self, id: &JobId, upto: u64) {
        let mark = Mark { upto, at: 6, by: "here".into(), ..Mark::default() };
        self.put(&Key::Mark(id.clone()), Some(value::write(&mark)));
    }

    fn end(&mut self, id: &JobId, upto: u64) {
        let end = End { how: Ending::Cancelled, at: 9, by: "bob".into(), upto };
        self.put(&Key::End(id.clone()), Some(value::write(&end)));
    }

    fn outcome(&mut self, id: &JobId, number: u64, what: &str) {
        // As workers write it.
        let value = format!(r#"{{"what":"{what}","at":7,"by":"i-1"}}"#);
        self.put(&Key::Outcome(id.clone(), number), Some(Bytes::from(value)));
    }

    fn folded(&self) -> State {
        let mut state = State::default();
        self.0.iter().for_each(|record| state.take(record));
        state
    }

    /// What is left when these of the superseded records are removed.
    fn compacted(&self, removed: &BTreeSet<usize>) -> Self {
        let mut last = BTreeMap::new();
        for (place, record) in self.0.iter().enumerate() {
            last.insert(record.key.clone(), place);
        }
        let stays = |place: usize, record: &Record| last[&record.key] == place || !removed.contains(&place);
        let left = self.0.iter().enumerate().filter(|(place, record)| stays(*place, record));
        Self(left.map(|(_, record)| record.clone()).collect())
    }
}

fn job(number: u64) -> JobId {
    JobId::by(number)
}

fn letter(offset: i64) -> Origin {
    Origin { topic: "orders.billing.dlq".parse().unwrap(), partition: 0, offset }
}

fn letters(offsets: std::ops::Range<i64>) -> Vec<Origin> {
    offsets.map(letter).collect()
}

#[derive(Debug, Clone)]
enum Deed {
    Begin { job: u64, from: i64, count: i64 },
    Mark { job: u64, upto: u64 },
    Wish { job: u64, want: Want },
    End { job: u64 },
    Outcome { job: u64, number: u64, what: usize },
    Group { fingerprint: u8, muted: bool },
    Forget { job: u64 },
    Foreign,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let job = || 0..4_u64;
    let want = prop_oneof![Just(Want::Run), Just(Want::Pause), Just(Want::Cancel)];
    let deed = prop_oneof![
        3 => (job(), 0..20_i64, 1..10_i64).prop_map(|(job, from, count)| Deed::Begin { job, from, count }),
        3 => (job(), 0..10_u64).prop_map(|(job, upto)| Deed::Mark { job, upto }),
        1 => (job(), want).prop_map(|(job, want)| Deed::Wish { job, want }),
        1 => job().prop_map(|job| Deed::End { job }),
        3 => (job(), 0..10_u64, 0..4_usize).prop_map(|(job, number, what)| Deed::Outcome { job, number, what }),
        1 => (0..3_u8, any::<bool>()).prop_map(|(fingerprint, muted)| Deed::Group { fingerprint, muted }),
        1 => job().prop_map(|job| Deed::Forget { job }),
        1 => Just(Deed::Foreign),
    ];
    prop::collection::vec(deed, 0..60)
}

/// Written as tools do: a job begins once, and what is about it comes after that.
fn written(deeds: &[Deed]) -> Log {
    let (mut log, mut begun, mut over) = (Log::default(), BTreeMap::new(), BTreeSet::new());
    for deed in deeds {
        match *deed {
            Deed::Begin { job: number, from, count } if begun.insert(number, count).is_none() => {
                log.begin(&job(number), Kind::Replay, &letters(from..from + count));
            }
            Deed::Mark { job: number, upto } if begun.contains_key(&number) => log.mark(&job(number), upto),
            Deed::Wish { job: number, want } if begun.contains_key(&number) => {
                let wish = Wish { want, by: "bob".into(), at: 8, why: "so".into(), canary: false };
                log.put(&Key::Wish(job(number)), Some(value::write(&wish)));
            }
            Deed::End { job: number } if begun.contains_key(&number) => log.end(&job(number), 3),
            Deed::Outcome { job: number, number: letter, what } if begun.contains_key(&number) => {
                // The last of these is of a later version.
                log.outcome(&job(number), letter, ["handled", "waiting", "buried", "vanished"][what]);
            }
            Deed::Group { fingerprint, muted } => {
                let state = if muted { GroupStanding::Muted } else { GroupStanding::Resolved };
                let state = GroupState { state, by: "ann".into(), at: 3, why: String::new() };
                log.put(&Key::Group(format!("f{fingerprint}")), Some(value::write(&state)));
            }
            Deed::Forget { job: number } if begun.contains_key(&number) && over.insert(number) => {
                for key in [Key::Begun(job(number)), Key::Selection(job(number), 0)] {
                    log.put(&key, None);
                }
            }
            Deed::Foreign => {
                let at = Origin {
                    topic: "redrive.state".parse().unwrap(),
                    partition: 0,
                    offset: log.0.len() as i64,
                };
                let key = Some(Bytes::from_static(b"pause/orders/billing"));
                log.0.push(Record { at, timestamp: None, key, value: None, headers: Headers::default() });
            }
            _ => {}
        }
    }
    log
}

proptest! {
    #[test]
    fn whatever_compaction_removes_everybody_comes_to_the_same(
        deeds in deeds(),
        removed in prop::collection::btree_set(0..200_usize, 0..200),
    ) {
        let log = written(&deeds);
        prop_assert_eq!(log.compacted(&removed).folded(), log.folded());
    }

    #[test]
    fn a_letter_has_one_sender(deeds in deeds()) {
        let state = written(&deeds).folded();
        let all = letters(0..30);
        // As each job sees it: what earlier ones hold it does not send.
        for letter in &all {
            let sends = |job: &&&Job| {
                let number = job.selection.iter().position(|one| one == *letter);
                number.is_some_and(|number| job.will_do(number as u64))
                    && !state.held(std::slice::from_ref(letter), Some(job.order)).contains_key(letter)
            };
            prop_assert!(state.jobs().iter().filter(sends).count() <= 1);
        }
    }

    #[test]
    fn any_record_is_taken_or_passed_over(key in "(job|outcome|group-state|journal-head)/[a-z0-9/]{0,20}", value in any::<Option<Vec<u8>>>()) {
        let mut log = Log::default();
        log.begin(&job(1), Kind::Replay, &letters(0..3));
        let mut state = log.folded();
        let at = letter(99);
        let record = Record {
            at, timestamp: None, key: Some(Bytes::from(key)), value: value.map(Bytes::from), headers: Headers::default(),
        };
        state.take(&record);
        prop_assert!(state.job(&job(1)).is_some());
    }
}

#[test]
fn an_earlier_job_holds_what_it_sent_and_what_it_is_going_to_send() {
    let mut log = Log::default();
    let (first, second) = (job(1), job(2));
    log.begin(&first, Kind::Replay, &letters(0..10));
    log.mark(&first, 4);
    log.begin(&second, Kind::Replay, &letters(2..14));
    let state = log.folded();
    let order = state.job(&second).unwrap().order;
    let held = state.held(&letters(2..14), Some(order));
    assert_eq!(held.len(), 8);
    assert_eq!(held[&letter(3)], Hold { job: first.clone(), number: 3, sent: true });
    assert_eq!(held[&letter(4)], Hold { job: first.clone(), number: 4, sent: false });
    assert!(state.held(&letters(0..10), Some(0)).is_empty(), "nobody is before the first");

    log.end(&first, 4);
    let held = log.folded().held(&letters(2..14), Some(order));
    assert_eq!(held.len(), 2, "what a job did not send before it ended is nobody's: {held:?}");
}

#[test]
fn a_letter_stands_as_the_last_job_left_it() {
    let mut log = Log::default();
    let (replay, resolve) = (job(1), job(2));
    log.begin(&replay, Kind::Replay, &letters(0..4));
    log.mark(&replay, 2);
    log.outcome(&replay, 0, "waiting");
    log.outcome(&replay, 0, "handled");
    let states = log.folded().letters(&letters(0..6));
    assert_eq!(states[&letter(0)], LetterState::Replayed(replay.clone(), Some(What::Handled)));
    assert_eq!(states[&letter(1)], LetterState::Replayed(replay.clone(), None));
    assert_eq!(states[&letter(2)], LetterState::Replaying(replay.clone()));
    assert_eq!(states.get(&letter(4)), None);

    log.begin(&resolve, Kind::Resolve, &letters(1..6));
    log.mark(&resolve, 4);
    log.end(&replay, 2);
    let states = log.folded().letters(&letters(0..6));
    assert_eq!(states[&letter(1)], LetterState::Resolved(resolve.clone()));
    assert_eq!(states[&letter(4)], LetterState::Resolved(resolve));
    assert_eq!(states.get(&letter(5)), None, "not yet");
}

#[test]
fn what_became_of_letters_is_counted() {
    let mut log = Log::default();
    let id = job(1);
    log.begin(&id, Kind::Replay, &letters(0..10));
    log.mark(&id, 6);
    for (number, what) in [(0, "handled"), (1, "buried"), (2, "waiting"), (3, "skipped"), (9, "handled")] {
        log.outcome(&id, number, what);
    }
    let state = log.folded();
    let counts = state.job(&id).unwrap().counts();
    let wanted =
        Counts { letters: 10, sent: 5, skipped: 1, handled: 1, buried: 1, waiting: 1, ..Counts::default() };
    assert_eq!((counts, counts.unheard()), (wanted, 2), "what is beyond the mark was not sent");
    assert_eq!(counts.failed_share().map(f64::round), Some(67.0));
    assert!(!state.job(&id).unwrap().has_done(3), "skipped");
}

#[test]
fn reasons_that_differ_by_a_number_only_are_one_with_a_count() {
    let mut log = Log::default();
    let id = job(1);
    log.begin(&id, Kind::Replay, &letters(0..10));
    log.mark(&id, 10);
    for (number, why) in [(0, "no customer 17"), (1, "no customer 4"), (2, "timed out"), (3, "no customer 5")]
    {
        let why = Some(why.to_owned());
        let outcome = Outcome { what: What::Buried, at: 1, by: "one".into(), letter: None, why };
        log.put(&Key::Outcome(id.clone(), number), Some(value::write(&outcome)));
    }
    let state = log.folded();
    let whys: Vec<_> = state.job(&id).unwrap().whys().into_iter().collect();
    assert_eq!(whys, [("no customer 17", 3), ("timed out", 1)]);
}

#[test]
fn a_job_without_all_of_its_selection_is_none() {
    let mut log = Log::default();
    log.begin(&job(1), Kind::Replay, &letters(0..10));
    log.0.remove(0);
    assert_eq!(log.folded().jobs().len(), 0);
}

#[test]
fn values_of_a_later_version_say_nothing() {
    let mut log = Log::default();
    log.begin(&job(1), Kind::Replay, &letters(0..10));
    log.put(&Key::Mark(job(1)), Some(Bytes::from_static(br#"{"v":2,"upto":5,"at":1}"#)));
    assert_eq!(log.folded().job(&job(1)).unwrap().mark, Mark::default());
}
