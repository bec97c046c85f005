//! Letters that need nothing more.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use bytes::Bytes;
use redrive_core::Origin;
use redrive_letters::cleanup::{self, Followers, Sources};
use redrive_letters::jobs::{Kind, Options, Whereto};
use redrive_letters::journal::{self, Deed};
use redrive_letters::replay::Wanted;
use redrive_letters::{State as LetterState, told};
use serde_json::{Value, json};

use super::replays::begin;
use super::{Answer, body, desk};
use crate::answer;
use crate::listen::Shared;
use crate::problem::Problem;

/// How long to wait for the workers to open lanes.
const WAIT: Duration = Duration::from_secs(10);

pub(super) async fn resolve(
    State(shared): State<Arc<Shared>>,
    given: Result<Bytes, BytesRejection>,
) -> Answer {
    let mut given = body(given)?;
    let filter = begin::selection(&mut given)?;
    let dry_run = given.flag("dry_run")?;
    let bury = given.flag("bury_followers")?;
    let tombstone_source = given.flag("tombstone_source")?;
    let reason: String = given.read("reason")?.unwrap_or_default();
    given.end()?;
    begin::reason(&filter, &reason, dry_run)?;
    let desk = desk(&shared)?;
    let query = begin::meant(desk, &filter, &[LetterState::Open]);
    let asked = query.to_string();
    desk.refresh().await?;
    let letters = begin::candidates(desk, &query).await?;
    if letters.is_empty() {
        return Err(Problem::missing(format!("no letter matches: {asked}; GET /api/v1/letters lists them")));
    }
    let settings = &desk.letters.settings;
    let sources = if tombstone_source { Sources::of(settings, &letters).await? } else { Sources::default() };
    if dry_run {
        let mut told = json!({ "would_resolve": letters.len() });
        if tombstone_source {
            told["source_tombstones"] = sources.tombstones.len().into();
        }
        return Ok(answer::json(StatusCode::OK, &told));
    }
    let by = journal::writer();
    let deed = Deed {
        who: by.clone(),
        at: desk.now().millis(),
        what: "resolve".to_owned(),
        selection: asked.clone(),
        job: None,
        counts: [
            ("letters".to_owned(), letters.len() as u64),
            ("source-tombstones".to_owned(), sources.tombstones.len() as u64),
        ]
        .into(),
        why: reason.clone(),
    };
    journal::append(settings, deed).await?;
    let wanted = Wanted {
        kind: Kind::Resolve,
        by: by.clone(),
        reason: reason.clone(),
        query: asked,
        to: Whereto::Usual,
        options: Options::default(),
        lanes: None,
    };
    let places: Vec<Origin> = letters.iter().map(|letter| letter.at.clone()).collect();
    let Some(done) = cleanup::carry_out(settings, &desk.clock, &wanted, &places).await? else {
        let why = "a replay is about to send all of them; GET /api/v1/replays shows it";
        return Err(Problem::new(StatusCode::CONFLICT, why));
    };
    sources.write(settings).await?;
    let followers = if bury { Followers::Bury } else { Followers::Release };
    let (with, who) = ((settings, &desk.clock), (by.as_str(), reason.as_str()));
    let shelves = desk.letters.shelves.clone();
    let opened = cleanup::open_all(with, shelves, &letters, followers, who, WAIT).await?;
    let mut lanes: Vec<Value> = Vec::new();
    for (shelf, opened) in &opened {
        match opened {
            Ok(opened) => lanes.extend(opened.all().map(
                |(origin, done)| json!({ "shelf": shelf.as_str(), "origin": origin.to_string(), "done": done }),
            )),
            Err(error) => lanes.push(json!({ "shelf": shelf.as_str(), "done": false, "why": told(error) })),
        }
    }
    desk.refresh().await?;
    let told = json!({
        "id": done.job.as_str(),
        "resolved": done.letters,
        "tombstones": done.tombstones,
        "without_tombstone": done.without,
        "source_tombstones": sources.tombstones.len(),
        "held": done.held,
        "lanes": lanes,
    });
    Ok(answer::json(StatusCode::OK, &told))
}
