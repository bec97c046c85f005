//! Records that wait on shelves: listed, and ordered to be released, rescheduled or cancelled.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{StatusCode, Uri};
use bytes::Bytes;
use redrive::delayed::{Answer as Said, Counts, Deed, Delayed, View, Wish};
use redrive_core::topic::{Purpose, derived};
use redrive_core::{Origin, Topic};
use redrive_letters::{When, journal, waiting};
use serde_json::{Value, json};

use super::{Answer, Named, body, desk, place};
use crate::answer;
use crate::desk::Desk;
use crate::given::Given;
use crate::listen::Shared;
use crate::problem::Problem;

/// How long to wait for the answer of a worker.
const WAIT: Duration = Duration::from_secs(10);

pub(super) async fn list(State(shared): State<Arc<Shared>>, uri: Uri) -> Answer {
    let mut given = Given::in_address(&uri)?;
    let topic: Option<Topic> = given.read("topic")?;
    let group: Option<String> = given.read("group")?;
    let limit = given.some("limit", u64::from(u32::MAX))?.unwrap_or(100);
    let filter = waiting::Filter {
        key: given.read("key")?,
        lane: given.read("lane")?,
        due_before: given.read("due_before")?,
        due_after: given.read("due_after")?,
    };
    given.end()?;
    let desk = desk(&shared)?;
    let now = desk.now();
    let (mut records, mut shelves): (Vec<(Delayed, String)>, Vec<Value>) = (Vec::new(), Vec::new());
    for (shelf, group) in shelves_of(desk, topic.as_ref(), group.as_ref())? {
        let settings = &desk.letters.settings;
        let view = match View::read(settings, shelf, &[], filter.keep(), |_| {}).await {
            Ok(view) => view,
            // A subscription that delays in another way has none.
            Err(redrive::delayed::Error::NoShelf(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        let mut found = view.records();
        found.retain(|record| filter.accepts(record, now));
        let mut counted = waiting::counts(&Counts::of(&found, now));
        counted["shelf"] = view.shelf().as_str().into();
        counted["group"] = group.as_str().into();
        counted["closed_lanes"] = view.closures().iter().map(waiting::closure).collect();
        shelves.push(counted);
        records.extend(found.into_iter().map(|record| (record, group.clone())));
    }
    records.sort_by_key(|(record, _)| (record.earliest.is_none(), record.earliest));
    records.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let records: Vec<Value> =
        records.iter().map(|(record, group)| waiting::record(record, Some(group))).collect();
    Ok(answer::json(StatusCode::OK, &json!({ "records": records, "shelves": shelves })))
}

pub(super) async fn release(
    State(shared): State<Arc<Shared>>,
    named: Named,
    uri: Uri,
    given: Result<Bytes, BytesRejection>,
) -> Answer {
    order(&shared, named, &uri, body(given)?, |_, _| Ok(Deed::Release)).await
}

pub(super) async fn reschedule(
    State(shared): State<Arc<Shared>>,
    named: Named,
    uri: Uri,
    given: Result<Bytes, BytesRejection>,
) -> Answer {
    let deed = |desk: &Desk, given: &mut Given| {
        let due = given.read::<When>("due")?;
        let due = due.ok_or_else(|| {
            Problem::bad("`due` is missing: 2026-11-01T06:00:00Z, or 10m for ten minutes from now")
        })?;
        Ok(Deed::Reschedule { due: due.at(desk.now()).millis() })
    };
    order(&shared, named, &uri, body(given)?, deed).await
}

pub(super) async fn cancel(
    State(shared): State<Arc<Shared>>,
    named: Named,
    uri: Uri,
    given: Result<Bytes, BytesRejection>,
) -> Answer {
    order(&shared, named, &uri, body(given)?, |_, _| Ok(Deed::Cancel)).await
}

/// Gives an order, and waits for what comes of it.
async fn order(
    shared: &Shared,
    named: Named,
    uri: &Uri,
    mut given: Given,
    deed: impl FnOnce(&Desk, &mut Given) -> Result<Deed, Problem> + Send,
) -> Answer {
    let origin: Origin = place(named)?;
    let mut address = Given::in_address(uri)?;
    let group: Option<String> = address.read("group")?;
    address.end()?;
    let desk = desk(shared)?;
    let deed = deed(desk, &mut given)?;
    let reason: String = given.read("reason")?.unwrap_or_default();
    given.end()?;
    let shelves = shelves_of(desk, Some(&origin.topic), group.as_ref())?;
    let [(shelf, group)] = shelves.as_slice() else {
        let groups: Vec<_> = shelves.iter().map(|(_, group)| group.as_str()).collect();
        return Err(Problem::bad(format!(
            "several groups consume it: {}; name one with ?group=",
            groups.join(", ")
        )));
    };
    let settings = &desk.letters.settings;
    let keep = Arc::new(|_: &redrive::delayed::Wait| false);
    let mut view = View::read(settings, shelf.clone(), &[origin.partition], keep, |_| {}).await?;
    let wishes = [Wish { origin: origin.clone(), deed }];
    let answers = view.give(&wishes, (&journal::writer(), &reason), WAIT, &desk.clock).await?;
    let Some(said) = answers.first() else {
        return Err(Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the order was not given; give it again",
        ));
    };
    let (word, text) = waiting::answer(said, group);
    let status = match said {
        said if said.is_done() => StatusCode::OK,
        Said::Queued | Said::Unanswered => StatusCode::ACCEPTED,
        Said::NotGiven(_) => return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, text)),
        Said::Said(_) => {
            let remedy = "GET /api/v1/delayed lists what waits";
            return Err(Problem::new(StatusCode::CONFLICT, format!("{text}; {remedy}")));
        }
    };
    let told = json!({
        "origin": origin.to_string(),
        "group": group,
        "deed": waiting::deed(deed),
        "outcome": word,
        "text": text,
    });
    Ok(answer::json(status, &told))
}

/// The shelves that are meant, with their groups: of this process, or of a topic and a group that are both named.
fn shelves_of(
    desk: &Desk,
    topic: Option<&Topic>,
    group: Option<&String>,
) -> Result<Vec<(Topic, String)>, Problem> {
    let own = desk.letters.shelves.iter().filter(|((its_topic, its_group), _)| {
        topic.is_none_or(|topic| topic == its_topic) && group.is_none_or(|group| group == its_group)
    });
    let own: Vec<_> = own.map(|((_, group), shelf)| (shelf.clone(), group.clone())).collect();
    if !own.is_empty() {
        return Ok(own);
    }
    let (Some(topic), Some(group)) = (topic, group) else {
        let why = "no subscription of this process is so; name both topic and group";
        return Err(Problem::missing(why));
    };
    let shelf = derived(topic, group, Purpose::Shelf).map_err(|error| Problem::bad(error.to_string()))?;
    Ok(vec![(shelf, group.clone())])
}
