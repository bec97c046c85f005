//! A collector gets a span for each attempt, whoever is called is its child, and a collector that does not work
//! costs nothing.

mod ground;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ground::collector::{Collector, hex, of};
use ground::raw::{Raw, request, write};
use ground::{configured, outgoing, publish, send, stage, until, until_status};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use redrive::testkit::Stage;
use redrive::{Clock, Running};
use redrive_config::Surroundings;
use redrive_push::Traces;
use redrive_testkit::python;
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PRODUCER: &str = "00f067aa0ba902b7";
const QUICK: &str =
    "retry.transient = \"list(20ms x2)\"\nretry.outage = \"list(50ms x9)\"\nsurge-guard = \"off\"\n";

fn traceparent() -> String {
    format!("00-{TRACE}-{PRODUCER}-01")
}

fn traces(keys: &str) -> Traces {
    let text = format!("kafka.brokers = \"embedded\"\nservice = \"shop\"\n[traces]\n{keys}\n");
    let surroundings = Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
    let config =
        redrive_config::read("redrive.toml", &text, surroundings).unwrap_or_else(|report| panic!("{report}"));
    Traces::new(&config.traces.unwrap(), config.service.as_deref()).unwrap()
}

/// A subscription with these keys whose spans go to where `to` says.
async fn run(stage: &Stage, keys: &str, to: &str) -> Running {
    let traces = traces(to);
    traces.start();
    let subscription = redrive_push::traced(&configured(keys), &traces).unwrap();
    redrive::Worker::new(stage.cluster()).subscribe(subscription).start().await.unwrap()
}

/// An endpoint that answers with the status that this makes of a request, and keeps the requests.
fn endpoint(answer: impl Fn(&str) -> Option<u16> + Send + Sync + 'static) -> (Raw, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::<Mutex<Vec<String>>>::default();
    let kept = requests.clone();
    let server = Raw::new(move |_, mut stream| {
        while let Some(request) = request(&mut stream) {
            kept.lock().unwrap().push(request.clone());
            // Without a status it waits until the caller has gone.
            if let Some(status) = answer(&request) {
                write(&mut stream, &format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n"));
            }
        }
    });
    (server, requests)
}

fn header<'a>(request: &'a str, name: &str) -> Vec<&'a str> {
    let lines = request.split("\r\n\r\n").next().unwrap().lines();
    lines
        .filter_map(|line| line.split_once(": "))
        .filter(|(one, _)| *one == name)
        .map(|(_, value)| value)
        .collect()
}

fn keys(server: &Raw, more: &str) -> String {
    format!("handler.http.url = \"{}\"\n{QUICK}{more}\n", server.url())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_fails_once_has_two_spans_in_the_producers_trace_and_each_is_the_parent_of_its_request()
{
    let stage = stage().await;
    let collector = Collector::new();
    let (server, requests) =
        endpoint(|request| Some(if request.contains("redrive-attempt: 1") { 500 } else { 200 }));
    let to = format!("{}\nheaders.authorization = \"Bearer t0ken\"", collector.keys());
    let running = run(&stage, &keys(&server, ""), &to).await;
    let parent = traceparent();
    let context: [(&str, Option<&[u8]>); 3] = [
        ("traceparent", Some(parent.as_bytes())),
        ("tracestate", Some(b"congo=t61")),
        ("baggage", Some(b"tenant=a")),
    ];
    publish(&stage, outgoing(Some(b"secret-key"), Some(b"secret-value"), &context)).await;
    until_status(&running, "handled", |status| status.counts.handled == 1).await;
    running.stop().await.unwrap();
    redrive_push::stopped().await;

    let (spans, requests) = (collector.spans(), requests.lock().unwrap().clone());
    assert_eq!((spans.len(), requests.len()), (2, 2), "{spans:#?}");
    for (index, (span, request)) in spans.iter().zip(&requests).enumerate() {
        assert_eq!(hex(&span.trace_id), TRACE);
        assert_eq!(hex(&span.parent_span_id), PRODUCER);
        assert_eq!(
            (hex(&span.links[0].trace_id), hex(&span.links[0].span_id)),
            (TRACE.into(), PRODUCER.into())
        );
        assert_eq!(header(request, "traceparent"), [format!("00-{TRACE}-{}-01", hex(&span.span_id))]);
        assert_eq!(
            (header(request, "tracestate"), span.trace_state.as_str()),
            (vec!["congo=t61"], "congo=t61")
        );
        assert_eq!(header(request, "baggage"), ["tenant=a"]);
        assert_eq!(
            header(request, "redrive-header-traceparent"),
            [traceparent()],
            "the record's is as it was"
        );
        assert_eq!((span.name.as_str(), span.kind()), ("process orders", SpanKind::Consumer));
        for (key, value) in [
            ("messaging.system", "kafka"),
            ("messaging.operation.type", "process"),
            ("messaging.destination.name", "orders"),
            ("messaging.destination.partition.id", "0"),
            ("messaging.kafka.offset", "0"),
            ("messaging.consumer.group.name", "g"),
            ("redrive.attempt", &(index + 1).to_string()),
            ("error.type", ["http.500", ""][index]),
            ("redrive.class", ["transient", ""][index]),
        ] {
            assert_eq!(of(span, key), value, "{key}");
        }
        let code = [StatusCode::Error, StatusCode::Unset][index];
        assert_eq!(span.status.as_ref().unwrap().code(), code);
        assert!(span.start_time_unix_nano < span.end_time_unix_nano);
        assert!(!format!("{span:?}").contains("secret"), "{span:?}");
    }
    assert_ne!(spans[0].span_id, spans[1].span_id);
    assert!(spans[0].end_time_unix_nano <= spans[1].start_time_unix_nano);
    assert_eq!(collector.resource("service.name").as_deref(), Some("shop"));
    let head = &collector.heads()[0];
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert_eq!(header(head, "content-type"), ["application/x-protobuf"]);
    assert_eq!(header(head, "authorization"), ["Bearer t0ken"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_without_a_context_has_a_trace_of_its_own_and_what_is_not_recorded_passes_as_it_is() {
    let stage = stage().await;
    let collector = Collector::new();
    let (server, requests) =
        endpoint(|request| Some(if request.contains("redrive-attempt: 1") { 500 } else { 200 }));
    let unrecorded = format!("00-{TRACE}-{PRODUCER}-00");
    publish(&stage, outgoing(None, Some(b"plain"), &[])).await;
    publish(
        &stage,
        outgoing(None, Some(b"odd"), &[("traceparent", Some(b"00-1-2-3")), ("tracestate", Some(b"a=1"))]),
    )
    .await;
    publish(&stage, outgoing(None, Some(b"quiet"), &[("traceparent", Some(unrecorded.as_bytes()))])).await;
    let running = run(&stage, &keys(&server, ""), &collector.keys()).await;
    until_status(&running, "handled", |status| status.counts.handled == 3).await;
    running.stop().await.unwrap();
    redrive_push::stopped().await;

    let requests = requests.lock().unwrap().clone();
    let parents = |value: &str| -> Vec<String> {
        let those = requests.iter().filter(|request| request.ends_with(value));
        those.flat_map(|request| header(request, "traceparent")).map(ToOwned::to_owned).collect()
    };
    assert_eq!(parents("quiet"), [unrecorded.clone(), unrecorded]);
    let spans = collector.spans();
    assert_eq!(spans.len(), 4, "{spans:#?}");
    for (offset, value) in [("0", "plain"), ("1", "odd")] {
        let those: Vec<_> =
            spans.iter().filter(|span| of(span, "messaging.kafka.offset") == offset).collect();
        let expected: Vec<_> = those
            .iter()
            .map(|span| format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id)))
            .collect();
        assert_eq!(parents(value), expected, "{value}");
        assert_eq!(those[0].trace_id, those[1].trace_id, "both attempts are in one trace");
        assert!(those.iter().all(|span| span.parent_span_id.is_empty() && span.links.is_empty()));
    }
    let odd = requests.iter().find(|request| request.ends_with("odd")).unwrap();
    assert!(header(odd, "tracestate").is_empty(), "the state of a context that is not valid is nobody's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_of_none_records_nothing_and_says_so_to_whoever_is_called() {
    let stage = stage().await;
    let collector = Collector::new();
    let (server, requests) = endpoint(|_| Some(200));
    let running = run(&stage, &keys(&server, ""), &format!("{}\nsample = 0", collector.keys())).await;
    publish(&stage, outgoing(None, Some(b"new"), &[])).await;
    publish(&stage, outgoing(None, Some(b"known"), &[("traceparent", Some(traceparent().as_bytes()))])).await;
    until_status(&running, "handled", |status| status.counts.handled == 2).await;
    running.stop().await.unwrap();
    redrive_push::stopped().await;
    let spans = collector.spans();
    assert_eq!(
        spans.iter().map(|span| hex(&span.trace_id)).collect::<Vec<_>>(),
        [TRACE],
        "its producer decided"
    );
    let requests = requests.lock().unwrap();
    let new = requests.iter().find(|request| request.ends_with("new")).unwrap();
    assert!(header(new, "traceparent")[0].ends_with("-00"), "{new}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_takes_too_long_or_is_cut_off_has_its_span_with_the_time_it_took() {
    let stage = stage().await;
    let collector = Collector::new();
    let (server, requests) = endpoint(|_| None);
    let more = "timeout = \"2s\"\nretry-timeout = \"60s\"\ndrain-timeout = \"200ms\"\n\
                classify = [{ type = \"redrive::Timeout\", class = \"transient\" }]";
    let running = run(&stage, &keys(&server, more), &collector.keys()).await;
    send(&stage, &["slow"]).await;
    until("both attempts", || requests.lock().unwrap().len() == 2).await;
    running.stop().await.unwrap();
    redrive_push::stopped().await;
    let spans = collector.spans();
    let told: Vec<_> = spans.iter().map(|span| (of(span, "error.type"), of(span, "redrive.class"))).collect();
    assert_eq!(
        told,
        [("redrive::Timeout".into(), "transient".into()), ("redrive::CutOff".into(), String::new())]
    );
    let took = Duration::from_nanos(spans[0].end_time_unix_nano - spans[0].start_time_unix_nano);
    assert!(took > Duration::from_millis(1_900) && took < Duration::from_secs(20), "{took:?}");
    assert!(spans.iter().all(|span| span.status.as_ref().unwrap().code() == StatusCode::Error));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_record_of_a_batch_and_each_of_a_program_has_its_span() {
    let stage = stage().await;
    let collector = Collector::new();
    let (server, requests) = endpoint(|_| Some(200));
    for format in ["ndjson", "cloudevents"] {
        let keys = format!(
            "handler.http = {{ url = \"{}\", batch = {{ records = 10, format = \"{format}\" }} }}\n{QUICK}",
            server.url()
        );
        let before = collector.spans().len();
        requests.lock().unwrap().clear();
        for value in ["1", "2", "3"] {
            publish(
                &stage,
                outgoing(None, Some(value.as_bytes()), &[("traceparent", Some(traceparent().as_bytes()))]),
            )
            .await;
        }
        let running = run(&stage, &keys, &collector.keys()).await;
        until_status(&running, "handled", |status| status.counts.handled == 3).await;
        running.stop().await.unwrap();
        redrive_push::stopped().await;
        let spans = collector.spans();
        let mut expected: Vec<_> =
            spans[before..].iter().map(|span| format!("00-{TRACE}-{}-01", hex(&span.span_id))).collect();
        let mut told: Vec<String> = Vec::new();
        for request in requests.lock().unwrap().iter() {
            let body = request.split_once("\r\n\r\n").unwrap().1;
            let records: Vec<Value> = match format {
                "ndjson" => body.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
                _ => serde_json::from_str(body).unwrap(),
            };
            told.extend(records.iter().map(|record| record["traceparent"].as_str().unwrap().to_owned()));
        }
        expected.sort();
        told.sort();
        assert_eq!((told.len(), told), (3, expected), "{format}");
    }

    if !python::is_there() {
        return;
    }
    let before = collector.spans().len();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program.py");
    let code = "import json, sys\nfor line in sys.stdin:\n    record = json.loads(line)\n    \
                print(json.dumps({'call': record['call'], 'status': 422, 'type': record['traceparent'] + ' hunter2'}), flush=True)\n";
    std::fs::write(&program, code).unwrap();
    let keys = format!(
        "handler.command.argv = [\"python3\", \"{}\"]\nmask.patterns = [\"hunter2\"]\n{QUICK}",
        program.display()
    );
    send(&stage, &["one"]).await;
    let running = run(&stage, &keys, &collector.keys()).await;
    until_status(&running, "buried", |status| status.counts.buried == 1).await;
    running.stop().await.unwrap();
    redrive_push::stopped().await;
    let span = &collector.spans()[before];
    assert_eq!(of(span, "error.type"), format!("00-{}-{}-01 ***", hex(&span.trace_id), hex(&span.span_id)));
    assert_eq!(of(span, "redrive.class"), "permanent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_away_for_a_moment_misses_nothing() {
    let stage = stage().await;
    let collector = Collector::answering(|number| if number == 0 { "503 x" } else { "200 OK" });
    let (server, _) = endpoint(|_| Some(200));
    let running = run(&stage, &keys(&server, ""), &collector.keys()).await;
    send(&stage, &["a"]).await;
    until("the span", || collector.spans().len() == 1).await;
    assert_eq!(collector.heads().len(), 2);
    running.stop().await.unwrap();
    redrive_push::stopped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_or_stuck_costs_the_records_nothing_and_what_is_lost_is_counted() {
    let stuck = Raw::new(|_, mut stream| while request(&mut stream).is_some() {});
    // Where it is down, nobody listens: no system gives that port out.
    for port in [stuck.port, 1] {
        let to = format!("endpoint = \"http://127.0.0.1:{port}\"\ntimeout = \"60s\"\nqueue = 100");
        let stage = stage().await;
        let (server, _) = endpoint(|_| Some(200));
        let values: Vec<_> = (0..300).map(|number| number.to_string()).collect();
        send(&stage, &values.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let (before, clock) = (redrive_push::dropped_spans(), Clock::system());
        let running = run(&stage, &keys(&server, ""), &to).await;
        until_status(&running, "handled", |status| status.counts.handled == 300).await;
        assert!(clock.now().steady < Duration::from_secs(25));
        let stopping = clock.now().steady;
        running.stop().await.unwrap();
        until("all are counted", || redrive_push::dropped_spans() - before >= 300).await;
        let took = clock.now().steady - stopping;
        assert!(took < Duration::from_secs(25), "{to}: {took:?}");
        assert_eq!(redrive_push::dropped_spans() - before, 300, "{to}");
    }
}

#[test]
fn a_collector_that_cannot_be_called_is_refused_before_anything_runs() {
    let text = "kafka.brokers = \"b\"\n[traces]\nendpoint = \"https://localhost\"\nca = \"/no/such.pem\"\n";
    let surroundings = Surroundings { variables: &|_| None, property: &|_, _| Ok(()) };
    let config = redrive_config::read("redrive.toml", text, surroundings).unwrap();
    let error = Traces::new(&config.traces.unwrap(), None).err().unwrap().to_string();
    assert_eq!(
        error,
        "traces: ca: /no/such.pem cannot be read: No such file or directory (os error 2); \
         name a file that is there as traces.ca"
    );
}
