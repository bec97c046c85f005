//! Failure groups and counts; what people say of a group.

use std::sync::Arc;

use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use bytes::Bytes;
use redrive_letters::groups::{self, Said};
use redrive_letters::query::Filter;
use redrive_letters::stats::By;
use redrive_letters::{Fingerprint, Query, Wish, export, journal};
use serde_json::{Value, json};

use super::{Answer, body, desk};
use crate::answer;
use crate::given::Given;
use crate::listen::Shared;
use crate::problem::Problem;

pub(super) async fn list(State(shared): State<Arc<Shared>>, uri: Uri) -> Answer {
    let mut given = Given::in_address(&uri)?;
    let all = given.flag("all")?;
    let limit = given.some("limit", u64::from(u32::MAX))?;
    let filter = countable(&mut given)?;
    given.end()?;
    let desk = desk(&shared)?;
    let now = desk.now();
    let query = filter.query(&[], now);
    let mut groups = desk.ask(move |index| index.groups(&query, now)).await?;
    groups.retain(|group| all || group.open > 0);
    let total = groups.len();
    groups.truncate(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
    let groups: Vec<Value> = groups.iter().map(export::group).collect();
    Ok(answer::json(StatusCode::OK, &json!({ "groups": groups, "total": total })))
}

pub(super) async fn stats(State(shared): State<Arc<Shared>>, uri: Uri) -> Answer {
    let mut given = Given::in_address(&uri)?;
    let by = given.read::<By>("by")?.unwrap_or(By::Hour);
    let filter = countable(&mut given)?;
    given.end()?;
    let desk = desk(&shared)?;
    let query = filter.query(&[], desk.now());
    let bars = desk.ask(move |index| index.stats(&query, by)).await?;
    let bars: Vec<Value> = bars.iter().map(export::bar).collect();
    Ok(answer::json(StatusCode::OK, &json!({ "stats": bars })))
}

/// A filter that the index alone can answer.
pub(super) fn countable(given: &mut Given) -> Result<Filter, Problem> {
    let filter = given.filter()?;
    no_header(&filter)?;
    Ok(filter)
}

pub(super) fn no_header(filter: &Filter) -> Result<(), Problem> {
    match filter.header {
        None => Ok(()),
        Some(_) => Err(Problem::bad(
            "letters are not counted by `header`; GET /api/v1/letters lists those that have it",
        )),
    }
}

pub(super) async fn say(
    State(shared): State<Arc<Shared>>,
    named: Result<Path<String>, PathRejection>,
    given: Result<Bytes, BytesRejection>,
) -> Answer {
    let Path(id) = named.map_err(|error| Problem::bad(error.body_text()))?;
    let failure: Fingerprint = id.parse().map_err(|error| Problem::bad(format!("`{id}`: {error}")))?;
    let mut given = body(given)?;
    let state: Option<String> = given.read("state")?;
    let reason: String = given.read("reason")?.unwrap_or_default();
    given.end()?;
    let wish = state.as_deref().and_then(Wish::named);
    let wish = wish.ok_or_else(|| Problem::bad("`state` has to be muted, resolved or open"))?;
    if reason.is_empty() {
        return Err(Problem::bad("why? `reason` is written into the journal"));
    }
    let desk = desk(&shared)?;
    let query = Query { failures: vec![failure], ..Query::default() };
    let now = desk.now();
    let asked = query.clone();
    desk.refresh().await?;
    let found = desk.ask(move |index| index.groups(&asked, now)).await?;
    if found.is_empty() {
        return Err(Problem::missing(format!(
            "no letter is of group {failure}; GET /api/v1/groups lists those there are"
        )));
    }
    let said = Said { wish, by: journal::writer(), why: reason };
    groups::say(&desk.letters.settings, &desk.clock, &said, &found).await?;
    desk.refresh().await?;
    let found = desk.ask(move |index| index.groups(&query, now)).await?;
    let told = found.first().map(export::group).unwrap_or_default();
    Ok(answer::json(StatusCode::OK, &told))
}
