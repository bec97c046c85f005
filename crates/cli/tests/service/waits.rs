//! `Retry-After`, by the clock on the wall.

use redrive_testkit::python::Python;
use serde_json::json;

use crate::on_both;
use crate::place::Place;
use crate::process::{Process, until};

on_both!(retry_after_is_honoured_to_the_second);

async fn retry_after_is_honoured_to_the_second(place: Place) {
    let after = |status: u16, seconds: u32| json!([{ "status": status, "headers": { "retry-after": seconds.to_string() } }, {}]);
    let python = Python::new(&json!({
        "transient": after(500, 2), "not-ready": after(425, 4), "outage": after(503, 3),
        "date": [{ "status": 425, "date": 3 }, {}], "outage-date": [{ "status": 503, "date": 2 }, {}],
    }));
    // By their own policies they would wait much shorter, or much longer.
    let more = "retry.transient = \"list(50ms)\"\nretry.not-ready = \"list(1m)\"\n\
                retry.outage = \"exponential(100ms..100ms x1)\"\n";
    let process = Process::start(place.folder(), &place.config(&[], &python.url(), more)).await;
    process.until_ready().await;
    // An outage stops everything, so each has its turn.
    for turn in [
        &[("transient", 2.0), ("not-ready", 4.0), ("date", 3.0)][..],
        &[("outage", 3.0)],
        &[("outage-date", 2.0)],
    ] {
        place.send(turn.iter().map(|(value, _)| (*value, *value))).await;
        for (value, seconds) in turn {
            until(value, || python.of(value).len() == 2).await;
            let calls = python.of(value);
            let waited = calls[1].at - calls[0].at;
            // Late by what a machine that stalls costs, not by a policy.
            assert!((*seconds..seconds + 5.0).contains(&waited), "{value} waited {waited} s");
        }
    }
    until("all are handled", || process.subscription(&place.topic)["totals"]["handled"] == 5).await;
    process.stop().await;
    assert_eq!(place.letters().await, []);
}
