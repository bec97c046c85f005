//! What an endpoint gets is what the record is: bytes, headers, nulls; and proof of who sends it.

mod ground;

use ground::{outgoing, publish, run, send, stage, until, until_status};
use redrive_testkit::python::{self, Python};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn bytes_and_headers_are_identical_on_every_attempt() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let python = Python::new(&json!({ "*": [{ "status": 425 }, { "status": 500 }, {}] }));
    let keys = format!(
        "handler.http.url = \"{}\"\nretry.transient = \"list(10ms)\"\nretry.not-ready = \"list(50ms)\"\n",
        python.url()
    );
    let running = run(&stage, &keys).await;
    let all: Vec<u8> = (0..=255).collect();
    let own: Vec<(&str, Option<&[u8]>)> = vec![
        ("trace", Some(b"1")),
        ("X-Trace", Some(b"two words")),
        ("trace", None),
        ("x-trace", Some(b"")),
        ("trace", Some(&all)),
        ("größe; a,b", Some(b"50%")),
        ("redrive-header-x", Some(b"not ours")),
        ("traceparent", Some(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")),
        ("content-type", Some(b"text/x-odd")),
        ("trace", Some(b"1")),
    ];
    publish(&stage, outgoing(Some(&all), Some(&all), &own)).await;
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    running.stop().await.unwrap();
    until("three calls", || python.calls().len() == 3).await;
    let expected: Vec<_> =
        own.iter().map(|(name, value)| ((*name).to_owned(), value.map(<[u8]>::to_vec))).collect();
    for (number, call) in python.calls().iter().enumerate() {
        assert_eq!(call.body, all);
        assert_eq!(call.key().as_ref(), Some(&all));
        assert_eq!(call.record_headers(), expected);
        assert_eq!(call.header("content-type"), Some("text/x-odd"));
        assert_eq!(
            call.header("traceparent"),
            Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        );
        assert_eq!(call.header("ce-id"), Some("orders/0/0"));
        assert_eq!(call.header("redrive-attempt"), Some((number + 1).to_string().as_str()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_value_is_not_an_empty_one_and_may_be_skipped() {
    if !python::is_there() {
        return;
    }
    for (choice, calls) in [("deliver", 3), ("skip", 2)] {
        let stage = stage().await;
        let python = Python::new(&json!({}));
        let keys = format!("handler.http = {{ url = \"{}\", tombstones = \"{choice}\" }}", python.url());
        let running = run(&stage, &keys).await;
        publish(&stage, outgoing(None, None, &[])).await;
        publish(&stage, outgoing(None, Some(b""), &[])).await;
        publish(&stage, outgoing(Some(b""), Some(b"x"), &[])).await;
        until_status(&running, "handled", |status| status.counts.handled == 3).await;
        running.stop().await.unwrap();
        until("the calls", || python.calls().len() == calls).await;
        let of = |offset: &str| {
            python.calls().into_iter().find(|call| call.header("redrive-offset") == Some(offset))
        };
        assert_eq!(of("0").is_some(), choice == "deliver");
        if let Some(tombstone) = of("0") {
            assert_eq!((tombstone.header("redrive-tombstone"), tombstone.body.len()), (Some("true"), 0));
        }
        let empty = of("1").unwrap();
        assert_eq!((empty.header("redrive-tombstone"), empty.body.len()), (None, 0));
        assert_eq!((empty.header("redrive-key"), of("2").unwrap().header("redrive-key")), (None, Some("")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_can_verify_who_calls() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let python = Python::new(&json!({ "secret": "s3cret" }));
    let url = format!("{}?a=b", python.url());
    let keys = format!(
        "handler.http = {{ url = \"{url}\", signature-secret = \"s3cret\", basic = \"ada:pass\", \
         headers = {{ X-Tenant = \"shop\" }} }}"
    );
    let running = run(&stage, &keys).await;
    send(&stage, &["one"]).await;
    publish(&stage, outgoing(None, None, &[])).await;
    publish(&stage, outgoing(None, Some(b"\xff\x00"), &[])).await;
    until_status(&running, "handled", |status| status.counts.handled == 3).await;
    running.stop().await.unwrap();
    until("the calls", || python.calls().len() == 3).await;
    let call = &python.calls()[0];
    assert_eq!(call.header("authorization"), Some("Basic YWRhOnBhc3M="));
    assert_eq!(call.header("x-tenant"), Some("shop"));
    assert_eq!(call.path, "/records?a=b");
    // So is a batch, which has no id.
    let batch =
        format!("handler.http = {{ url = \"{url}\", signature-secret = \"s3cret\", batch.records = 5 }}");
    let stage = ground::stage().await;
    let running = run(&stage, &batch).await;
    send(&stage, &["one", "two"]).await;
    until_status(&running, "handled", |status| status.counts.handled == 2).await;
    running.stop().await.unwrap();
    // Another secret is noticed.
    let stage = ground::stage().await;
    let keys =
        format!("handler.http = {{ url = \"{url}\", signature-secret = \"other\", bearer = \"t0ken\" }}");
    let running = run(&stage, &keys).await;
    send(&stage, &["two"]).await;
    let letters = stage.letters("orders.g.dlq", 1).await.unwrap();
    running.stop().await.unwrap();
    let told = format!("{:?}", letters[0].headers);
    assert!(told.contains("401 Unauthorized: the signature is wrong"), "{told}");
    assert!(!told.contains("other") && !told.contains("t0ken"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unix_socket_is_an_endpoint_too() {
    if !python::is_there() {
        return;
    }
    let stage = stage().await;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("endpoint.sock");
    let python = Python::at(socket.to_str().unwrap(), &json!({}));
    let running =
        run(&stage, &format!("handler.http.url = \"http+unix://{}:/pay?x=1\"", socket.display())).await;
    send(&stage, &["one", "two"]).await;
    until_status(&running, "handled", |status| status.counts.handled == 2).await;
    running.stop().await.unwrap();
    until("the calls", || python.calls().len() == 2).await;
    assert_eq!(
        (python.calls()[0].path.as_str(), python.calls()[0].header("host")),
        ("/pay?x=1", Some("localhost"))
    );
}

#[test]
fn the_documented_way_to_verify_is_the_one_that_is_tested() {
    let page = include_str!("../../../docs/http.md");
    let documented = page.split("```python\n").find(|block| block.starts_with("def verified")).unwrap();
    let documented = documented.split("```").next().unwrap();
    assert!(include_str!("../../testkit/src/python/endpoint.py").contains(documented), "{documented}");
}
