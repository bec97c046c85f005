//! What comes is what was sent, byte for byte: in each call, across a crash, and in the letter.

use rdkafka::Message;
use rdkafka::message::Headers;
use redrive_testkit::python::Python;
use serde_json::json;

use crate::on_both;
use crate::place::{PARTITIONS, Place};
use crate::process::{Process, until};

on_both!(bytes_and_headers_are_identical_in_each_call_across_a_crash_and_in_the_letter);

async fn bytes_and_headers_are_identical_in_each_call_across_a_crash_and_in_the_letter(place: Place) {
    // In place, set aside, after the crash, and then given up.
    let python = Python::new(
        &json!({ "*": [{ "status": 500 }, { "status": 425 }, { "status": 500 }, { "status": 422 }] }),
    );
    let more = "retry.transient = \"list(10ms x3)\"\nretry.not-ready = \"list(10s x3)\"";
    let config = place.config(&[("group.instance.id", "one")], &python.url(), more);
    let process = Process::start(place.folder(), &config).await;
    process.until_ready().await;
    let all: Vec<u8> = (0..=255).collect();
    let own: Vec<(&str, Option<&[u8]>)> = vec![
        ("trace", Some(b"1")),
        ("X-Trace", Some(b"two words")),
        ("trace", None),
        ("x-trace", Some(b"")),
        ("trace", Some(&all)),
        ("größe; a,b", Some(b"50%")),
        ("content-type", Some(b"text/x-odd")),
        ("trace", Some(b"1")),
    ];
    place.publish(&all, &all, &own).await;
    until("it is set aside", || process.subscription(&place.topic)["totals"]["shelved"] == 1).await;
    drop(process);
    let process = Process::start(place.folder(), &config).await;
    until("four calls", || python.calls().len() == 4).await;
    let expected: Vec<_> =
        own.iter().map(|(name, value)| ((*name).to_owned(), value.map(<[u8]>::to_vec))).collect();
    for (number, call) in python.calls().iter().enumerate() {
        assert_eq!(call.body, all);
        assert_eq!(call.key().as_ref(), Some(&all));
        assert_eq!(call.record_headers(), expected);
        assert_eq!(call.header("content-type"), Some("text/x-odd"));
        assert_eq!(call.header("redrive-attempt"), Some((number + 1).to_string().as_str()));
        assert_eq!(call.header("ce-id"), python.calls()[0].header("ce-id"));
    }
    until("a letter", || process.subscription(&place.topic)["totals"]["letters"]["permanent"] == 1).await;
    process.stop().await;
    let (cluster, dlq) = (place.cluster.clone(), place.dlq());
    let letters = tokio::task::spawn_blocking(move || cluster.messages(&dlq, PARTITIONS)).await.unwrap();
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((letter.key(), letter.payload()), (Some(&all[..]), Some(&all[..])));
    let headers = letter.headers().unwrap().iter();
    let headers = headers.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec)));
    let theirs: Vec<_> = headers.filter(|(name, _)| !name.starts_with("redrive-")).collect();
    assert_eq!(theirs, expected);
}
