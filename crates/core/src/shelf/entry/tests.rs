use proptest::prelude::*;

use super::*;
use crate::headers::{Name, Trail};
use crate::offsets::Ranges;
use crate::route::Reason;

fn at(offset: i64) -> crate::Origin {
    crate::Origin { topic: "orders.g.shelf".parse().unwrap(), partition: 3, offset }
}

/// The entry as a broker hands it out.
fn delivered(written: Written) -> Record {
    Record { at: at(0), timestamp: None, key: written.key, value: written.value, headers: written.headers }
}

fn record(header: &str, value: &[u8]) -> Record {
    let mut headers = Headers::default();
    headers.push(ENTRY, Some(Bytes::from(header.to_owned())));
    Record { at: at(0), timestamp: None, key: None, value: Some(Bytes::copy_from_slice(value)), headers }
}

fn bytes() -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 0..12).prop_map(Bytes::from)
}

fn stamps() -> impl Strategy<Value = Stamp> {
    (any::<u64>(), any::<u32>(), any::<u64>(), -1..i64::MAX).prop_map(|(process, number, seq, seen)| Stamp {
        claim: ClaimId { process, number },
        seq,
        seen,
    })
}

fn identities() -> impl Strategy<Value = Identity> {
    (".{1,8}", proptest::option::of(".{0,8}"), ".{1,8}").prop_map(|(topic, topic_id, group)| Identity {
        topic,
        topic_id,
        group,
    })
}

fn checkpoints() -> impl Strategy<Value = Checkpoint> {
    let done = (0..1_i64 << 47, any::<u32>(), any::<u32>());
    let done = done.prop_map(|(origin, attempt, replay)| Done { origin, attempt, replay });
    let ahead = proptest::collection::vec((0..1_000_i64, 1..5_i64), 0..6);
    let log = (any::<i64>(), proptest::option::of(any::<i64>()));
    let log = proptest::option::of(log.prop_map(|(at, cut)| Beginning { at, cut }));
    (identities(), 0..1_i64 << 47, ahead, any::<bool>(), proptest::collection::vec(done, 0..6), log).prop_map(
        |(identity, mark, gaps, begins, done, log)| {
            let mut ahead = Ranges::default();
            let mut from = mark;
            for (gap, length) in gaps {
                from += gap + 1;
                ahead.insert(from..from + length);
                from += length;
            }
            Checkpoint { identity, progress: Progress::new(mark, ahead), begins, done, log }
        },
    )
}

/// A header of the user's: any name, and those that look like ours.
fn headers() -> impl Strategy<Value = Vec<(String, Option<Bytes>)>> {
    let ours = vec![ENTRY.to_owned(), format!("~{ENTRY}"), "redrive-due".into(), "~~redrive-origin".into()];
    let name = prop_oneof!["[a-z~-]{1,8}", proptest::sample::select(ours)];
    proptest::collection::vec((name, proptest::option::of(bytes())), 0..5)
}

fn waits() -> impl Strategy<Value = Wait> {
    let known = (0..1_i64 << 47, proptest::option::of(bytes()), any::<u32>(), any::<bool>(), 0..300_u32);
    let rest = (0..i64::MAX / 2, proptest::option::of(bytes()), proptest::option::of(bytes()), headers());
    (known, rest).prop_map(|((offset, lane, attempt, cancelled, replays), (due, key, value, headers))| {
        let origin = crate::Origin { topic: "orders".parse().unwrap(), partition: 3, offset };
        let trail = Trail {
            origin: Some(origin.clone()),
            attempt: Some(attempt),
            replays: (replays > 0).then_some(replays),
            due: Some(Timestamp::from_millis(due)),
            lane,
            reason: cancelled.then_some(Reason::Cancelled),
            leader: (offset > 0).then(|| crate::Origin { offset: offset - 1, ..origin.clone() }),
            ..Trail::default()
        };
        let headers = headers.into_iter().collect();
        let record = Record { at: origin, timestamp: None, key, value, headers };
        Wait { record: record.into(), trail: trail.into() }
    })
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        any::<i64>().prop_map(|due| Verdict::Due { due }),
        proptest::sample::select(vec![
            Verdict::Cancelled,
            Verdict::Opened,
            Verdict::TooLate,
            Verdict::Finished,
            Verdict::Unknown,
            Verdict::Replayed,
            Verdict::Already,
            Verdict::StillWaiting,
            Verdict::TooLarge,
        ]),
        any::<i64>().prop_map(|deadline| Verdict::Announced { deadline }),
        any::<i64>().prop_map(|deadline| Verdict::Taken { deadline }),
    ]
}

fn deeds() -> impl Strategy<Value = Deed> {
    prop_oneof![
        any::<i64>().prop_map(|due| Deed::Reschedule { due }),
        any::<i64>().prop_map(|deadline| Deed::Announce { deadline }),
        proptest::sample::select(vec![Deed::Release, Deed::Cancel, Deed::Resolve]),
    ]
}

fn jobs() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(".{0,8}")
}

fn announcements() -> impl Strategy<Value = Option<Announced>> {
    let announced = (".{0,8}", any::<i64>()).prop_map(|(job, deadline)| Announced { job, deadline });
    proptest::option::of(announced)
}

fn entries() -> impl Strategy<Value = Entry> {
    let origin = any::<i64>;
    prop_oneof![
        (stamps(), identities()).prop_map(|(stamp, identity)| Entry::Claim(stamp, identity)),
        (stamps(), checkpoints()).prop_map(|(stamp, checkpoint)| Entry::Checkpoint(stamp, checkpoint)),
        (stamps(), waits()).prop_map(|(stamp, wait)| Entry::Wait(stamp, wait.into())),
        (stamps(), origin(), bytes(), any::<bool>(), announcements()).prop_map(
            |(stamp, origin, lane, completes, announced)| {
                Entry::Closed(stamp, Closed { origin, lane, completes, announced })
            }
        ),
        (stamps(), ".{0,8}", origin(), verdicts(), jobs(), any::<Option<i64>>(), any::<Vec<i64>>()).prop_map(
            |(stamp, id, origin, verdict, job, order, also)| {
                Entry::Outcome(stamp, Outcome { id, origin, verdict, order, job, also })
            }
        ),
        (".{0,8}", origin(), deeds(), ".{0,8}", ".{0,8}", jobs()).prop_map(
            |(id, origin, deed, by, reason, job)| Entry::Order(Order { id, origin, deed, by, reason, job })
        ),
        (waits(), 1_u32.., ".{0,8}").prop_map(|(wait, replays, replay)| {
            let mut trail = Trail::clone(&wait.trail);
            (trail.replays, trail.replay) = (Some(replays), Some(replay));
            Entry::Replay(Arc::new(Wait { trail: trail.into(), ..wait }))
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(entry in entries()) {
        prop_assert_eq!(Entry::read(&delivered(entry.write())), Ok(entry));
    }

    #[test]
    fn what_is_read_in_brief_folds_alike(wait in waits(), stamp in stamps()) {
        let record = delivered(Entry::Wait(stamp, wait.into()).write());
        let (Ok(Entry::Wait(_, whole)), Ok(Entry::Wait(_, brief))) = (Entry::read(&record), Entry::brief(&record))
        else { panic!("they are waits") };
        prop_assert_eq!((whole.done(), whole.due(), whole.lane()), (brief.done(), brief.due(), brief.lane()));
        prop_assert_eq!((whole.is_cancelled(), whole.is_pointer()), (brief.is_cancelled(), brief.is_pointer()));
        prop_assert_eq!((whole.behind(), &whole.record.at), (brief.behind(), &brief.record.at));
    }

    #[test]
    fn what_is_packed_is_unpacked(wait in waits()) {
        prop_assert_eq!(Wait::unpack(wait.pack()), Some(wait));
    }

    #[test]
    fn any_bytes_are_unpacked_or_refused(packed in bytes()) {
        drop(Wait::unpack(Vec::from(packed).into()));
    }

    #[test]
    fn anything_is_read_or_refused(header in ".{0,60}", key in proptest::option::of(bytes()), value in bytes()) {
        let mut record = record(&header, &value);
        record.key = key;
        drop(Entry::read(&record));
    }

    #[test]
    fn a_damaged_entry_is_read_or_refused(entry in entries(), value in bytes(), key in proptest::option::of(bytes())) {
        let mut damaged = delivered(entry.write());
        damaged.value = Some(value);
        drop(Entry::read(&damaged));
        damaged.key = key;
        drop(Entry::read(&damaged));
    }
}

#[test]
fn headers_of_the_user_that_have_our_names_survive() {
    let origin = crate::Origin { topic: "orders".parse().unwrap(), partition: 0, offset: 7 };
    let mut record =
        Record { at: origin, timestamp: None, key: None, value: None, headers: Headers::default() };
    for name in [ENTRY, "redrive-due", "~redrive-due", "redrive-origin", "plain"] {
        record.headers.push(name, Some(Bytes::from_static(b"theirs")));
    }
    let trail = Trail { due: Some(Timestamp::from_millis(5)), attempt: Some(1), ..Trail::default() };
    let stamp = Stamp { claim: ClaimId { process: 1, number: 1 }, seq: 1, seen: 0 };
    let written =
        Entry::Wait(stamp, Wait { record: record.clone().into(), trail: trail.into() }.into()).write();
    let Ok(Entry::Wait(_, wait)) = Entry::read(&delivered(written)) else { panic!("it is a wait") };
    assert_eq!((&*wait.record, wait.trail.due), (&record, Some(Timestamp::from_millis(5))));
    assert!(Name::of("redrive-due").is_some(), "it is one of ours");
}

#[test]
fn a_newer_version_is_refused_unless_it_says_that_it_may_be_skipped() {
    assert_eq!(Entry::read(&record("2 wait x", b"")), Err(BadEntry::Newer(2)));
    assert_eq!(Entry::read(&record("2? hint", b"")), Ok(Entry::Skipped));
    assert_eq!(Entry::read(&record("1? hint 0-1 1 1", b"")), Ok(Entry::Skipped), "a kind that came later");
    let said = Entry::read(&record("2 wait x", b"")).unwrap_err().to_string();
    assert_eq!(said, "the entry has version 2; this program reads up to version 1");
}

#[test]
fn what_is_malformed_says_what_is_wrong() {
    let said = |header: &str, value: &[u8]| Entry::read(&record(header, value)).unwrap_err().to_string();
    let foreign = "the record has no readable `redrive-entry` header";
    assert_eq!(said("", b""), foreign);
    assert_eq!(said("one wait", b""), foreign);
    assert_eq!(said("1", b""), foreign);
    assert_eq!(said("1 wait", b""), "the wait is malformed: its header has no claim, number and offset");
    assert_eq!(
        said("1 wait 1 2 3", b""),
        "the wait is malformed: its header has no claim, number and offset"
    );
    assert_eq!(said("1 wait 0-1 2 3", b""), "the wait is malformed: it has no origin");
    assert_eq!(said("1 hint 0-1 2 3", b""), "the hint is malformed: nothing of that kind is known");
    let mut closed = record("1 closed 0-1 2 3", br#"{"origin":1,"completes":true}"#);
    let said = |record: &Record| Entry::read(record).unwrap_err().to_string();
    assert_eq!(said(&closed), "the closed is malformed: it names no lane");
    closed.key = Some(Bytes::new());
    assert!(Entry::read(&closed).is_ok(), "an empty key is one");
    let mut checkpoint = record("1 checkpoint 0-1 2 3", b"");
    checkpoint.key = Some(Bytes::from_static(br#"{"topic":"t","group":"g"}"#));
    for (value, why) in [
        (&b""[..], "it ends too early"),
        (&b"\x07"[..], "its first byte is neither 0 nor 1"),
        (&b"\x00\xff\xff\xff\xff\x0f"[..], "it ends too early"),
    ] {
        checkpoint.value = Some(Bytes::copy_from_slice(value));
        assert_eq!(said(&checkpoint), format!("the checkpoint is malformed: {why}"));
    }
}

#[test]
fn a_pointer_carries_no_payload() {
    let origin = crate::Origin { topic: "orders".parse().unwrap(), partition: 0, offset: 7 };
    let record = Record {
        at: origin.clone(),
        timestamp: None,
        key: Some(Bytes::from_static(b"k")),
        value: Some(Bytes::from_static(b"too large")),
        headers: Headers::default(),
    };
    let trail = Trail { pointer: Some(origin), lane: Some(Bytes::from_static(b"k")), ..Trail::default() };
    let stamp = Stamp { claim: ClaimId { process: 1, number: 1 }, seq: 1, seen: 0 };
    let written = Entry::Wait(stamp, Wait { record: record.into(), trail: trail.into() }.into()).write();
    assert_eq!((&written.key, &written.value), (&None, &None));
    let Ok(Entry::Wait(_, wait)) = Entry::read(&delivered(written)) else { panic!("it is a wait") };
    assert!(wait.is_pointer() && wait.lane().is_some() && wait.record.at.offset == 7);
}

#[test]
fn only_what_waits_stands_for_itself() {
    for header in ["1 wait 00000000000000ff-3 7 9", "1 wait", "1? wait x"] {
        assert!(stands_for_itself(header.as_bytes()), "{header}");
    }
    // What this program does not know it reads whole.
    for header in
        ["2 wait 00000000000000ff-3 7 9", "1 replay", "1 claim a 1 1", "1", "", "wait", "1  wait", "\u{fffd}"]
    {
        assert!(!stands_for_itself(header.as_bytes()), "{header}");
    }
}
