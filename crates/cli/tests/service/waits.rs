//! `Retry-After`, by the clock on the wall.

use redrive_testkit::python::Python;
use serde_json::json;

use crate::on_both;
use crate::place::Place;
use crate::process::{Process, until};

on_both!(retry_after_is_honoured_to_the_second);

/// How often it is looked at: a machine that stands still for a second has a say in when something is called.
const LOOKS: usize = 3;

async fn retry_after_is_honoured_to_the_second(place: Place) {
    let after = |status: u16, seconds: u32| json!({ "status": status, "headers": { "retry-after": seconds.to_string() } });
    let script = |answer: serde_json::Value| json!(vec![[answer, json!({})]; LOOKS].concat());
    let python = Python::new(&json!({
        "transient": script(after(500, 2)), "not-ready": script(after(425, 4)), "outage": script(after(503, 3)),
        "date": script(json!({ "status": 425, "date": 3 })), "outage-date": script(json!({ "status": 503, "date": 2 })),
    }));
    // By their own policies they would wait much shorter, or much longer.
    let more = "retry.transient = \"list(50ms)\"\nretry.not-ready = \"list(1m)\"\n\
                retry.outage = \"exponential(100ms..100ms x1)\"\n";
    let process = Process::start(place.folder(), &place.config(&[], &python.url(), more)).await;
    process.until_ready().await;
    // An outage stops everything, so each has its turn.
    let turns = [
        &[("transient", 2.0), ("not-ready", 4.0), ("date", 3.0)][..],
        &[("outage", 3.0)],
        &[("outage-date", 2.0)],
    ];
    let mut handled = 0;
    for turn in turns {
        for look in 1..=LOOKS {
            place.send(turn.iter().map(|(value, _)| (*value, *value))).await;
            handled += turn.len();
            let mut late = Vec::new();
            for (value, seconds) in turn {
                until(value, || python.of(value).len() == 2 * look).await;
                let calls = python.of(value);
                let waited = calls[2 * look - 1].at - calls[2 * look - 2].at;
                assert!(waited >= *seconds, "{value} waited {waited} s");
                late.extend((waited >= seconds + 1.0).then(|| format!("{value} waited {waited} s")));
            }
            if late.is_empty() {
                break;
            }
            assert!(look < LOOKS, "each time: {late:?}");
        }
    }
    until("all are handled", || process.subscription(&place.topic)["totals"]["handled"] == handled).await;
    process.stop().await;
    assert_eq!(place.letters().await, []);
}
