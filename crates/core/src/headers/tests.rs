use super::*;
use crate::class::Class;
use crate::failure::{Cause, Failure};
use crate::route::{Reason, Retries};
use crate::time::Timestamp;
use proptest::prelude::*;

fn trail() -> Trail {
    Trail {
        origin: Some("orders/3/1042".parse().unwrap()),
        origin_timestamp: Some(Timestamp::from_millis(1_700_000_000_000)),
        group: Some("payments".into()),
        retries: Some(Retries { in_place: 3, blocked: 0, set_aside: 1 }),
        due: Some(Timestamp::from_millis(1_700_000_005_000)),
        lane: Some(Bytes::from_static(&[0, 0xff, 7])),
        reason: Some(Reason::Exhausted),
        instance: Some("worker-1".into()),
        replays: Some(2),
        pointer: Some("orders/3/1042".parse().unwrap()),
        ..Trail::default()
    }
}

#[test]
fn user_headers_pass_untouched_and_in_order() {
    let user = [
        ("b", Some(&b"1"[..])),
        ("a", None),
        ("b", Some(&b""[..])),
        ("redrive-custom", Some(&[0xff, 0][..])),
    ];
    let mut headers = Headers::from_iter(user);
    let before = headers.clone();
    trail().write(&mut headers);
    trail().write(&mut headers);
    assert_eq!(headers.without_ours(), before);
    assert_eq!(Trail::read(&headers), Ok(trail()));
}

#[test]
fn a_header_is_replaced_in_its_place_and_never_appended() {
    let mut headers = Headers::from_iter([
        ("x", Some("1")),
        ("redrive-due", Some("1")),
        ("y", None),
        ("redrive-due", Some("2")),
    ]);
    headers.set("redrive-due", "3");
    let names: Vec<_> = headers.iter().map(|header| &*header.name).collect();
    assert_eq!(names, ["x", "redrive-due", "y"]);
    assert_eq!(headers.text("redrive-due"), Some("3"));
}

#[test]
fn a_malformed_header_is_named() {
    let headers = Headers::from_iter([("redrive-due", Some("tomorrow"))]);
    let error = Trail::read(&headers).unwrap_err().to_string();
    assert!(error.contains("redrive-due"), "{error}");
}

fn size(headers: &Headers) -> usize {
    headers.iter().map(|h| h.name.len() + h.value.as_ref().map_or(0, Bytes::len)).sum()
}

#[test]
fn a_thousand_hops_do_not_grow_the_headers() {
    for text in ["x", "ü", "\u{1}", "\"", "\u{10ffff}"] {
        let failure = Failure::new(Cause::new(text.repeat(10_000), text.repeat(100_000)));
        let failure = (0..100).fold(failure, |failure, _| {
            let code = Some(text.repeat(10_000));
            failure.caused_by(Cause { code, ..Cause::new(text.repeat(10_000), text.repeat(100_000)) })
        });
        let mut trail =
            Trail { error_stack: Some(text.repeat(100_000)), instance: Some(text.repeat(1_000)), ..trail() };
        let mut headers = Headers::default();
        let mut sizes = Vec::new();
        for hop in 0..1_000 {
            trail.note(&failure, Class::Transient, Timestamp::from_millis(hop));
            trail.write(&mut headers);
            trail = Trail::read(&headers).unwrap();
            sizes.push(size(&headers));
        }
        assert_eq!((trail.attempt, trail.history.len(), trail.history[15].at), (Some(1_000), 16, 999));
        assert_eq!(trail.first_failed_at, Some(Timestamp::from_millis(0)));
        assert!(sizes.iter().all(|size| *size < 64 * 1024), "{text:?}: {:?}", sizes.iter().max());
        assert!(sizes[999] <= sizes[20] + 200, "{text:?}: {} then {}", sizes[20], sizes[999]);
    }
}

#[test]
fn the_last_value_of_a_name_is_the_one_that_is_read() {
    let headers = Headers::from_iter([("redrive-attempt", Some("1")), ("redrive-attempt", Some("2"))]);
    assert_eq!(Trail::read(&headers).unwrap().attempt, Some(2));
}

fn any_header() -> impl Strategy<Value = (String, Option<Vec<u8>>)> {
    let ours = proptest::sample::select(Name::ALL).prop_map(|name| name.as_str().to_owned());
    let name = prop_oneof!["[a-c]{0,2}", ours, "redrive-[a-z]{0,4}"];
    (name, proptest::option::of(proptest::collection::vec(any::<u8>(), 0..12)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_headers_are_read_or_refused_and_writing_keeps_the_users(pairs in proptest::collection::vec(any_header(), 0..12)) {
        let mut headers = Headers::from_iter(pairs);
        let users = headers.without_ours();
        let read = Trail::read(&headers);
        trail().write(&mut headers);
        prop_assert_eq!(headers.without_ours(), users);
        prop_assert_eq!(Trail::read(&headers), Ok(trail()));
        if let Ok(read) = read {
            read.write(&mut headers);
            prop_assert_eq!(Trail::read(&headers), Ok(read));
        }
    }
}
