//! A replay begins: planned, told if only that is wanted, written down, and run in this process.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use redrive_core::{Origin, duration};
use redrive_letters::jobs::{Followed, Kind, Options, Whereto};
use redrive_letters::query::{self, Filter};
use redrive_letters::replay::pace::{MAX_FAILED, Share};
use redrive_letters::replay::{
    self, Candidate, Destinations, Followers, Rate, Start, Wanted, control, deeds,
};
use redrive_letters::{Query, State as LetterState, export, journal};
use serde_json::json;

use super::drive;
use crate::answer;
use crate::api::{Answer, body, desk};
use crate::desk::Desk;
use crate::given::Given;
use crate::listen::Shared;
use crate::problem::Problem;

/// What is asked for.
struct Asked {
    filter: Filter,
    to: Whereto,
    dry_run: bool,
    rate: Option<Rate>,
    canary: Option<u64>,
    canary_wait: Option<Duration>,
    max_failed: f64,
    max_replays: Option<u32>,
    again: bool,
    ahead: bool,
    without_followers: bool,
    reason: String,
}

impl Asked {
    fn read(mut given: Given) -> Result<Self, Problem> {
        let filter = selection(&mut given)?;
        let max_failed = given.read::<Share>("max_failed")?.map_or(MAX_FAILED, |share| share.0);
        let canary_wait = given.read::<String>("canary_wait")?;
        let canary_wait = canary_wait.as_deref().map(duration::parse).transpose();
        let canary_wait = canary_wait.map_err(|error| {
            Problem::bad(format!("`canary_wait`: {}; write 30s, 5m or 1h", error.message))
        })?;
        let most = u64::from(u32::MAX);
        let asked = Self {
            filter,
            to: given.read("to")?.unwrap_or(Whereto::Usual),
            dry_run: given.flag("dry_run")?,
            rate: given.read("rate")?,
            canary: given.some("canary", most)?,
            canary_wait,
            max_failed,
            max_replays: given.some("max_replays", most)?.and_then(|most| u32::try_from(most).ok()),
            again: given.flag("again")?,
            ahead: given.flag("ahead")?,
            without_followers: given.flag("without_followers")?,
            reason: given.read("reason")?.unwrap_or_default(),
        };
        given.end()?;
        reason(&asked.filter, &asked.reason, asked.dry_run)?;
        Ok(asked)
    }

    fn wanted(&self, query: String, set: Option<u32>) -> Wanted {
        let options = Options {
            rate: self.rate.map(|rate| rate.to_string()),
            canary: self.canary,
            canary_wait_ms: self.canary_wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            max_failed: Some(self.max_failed),
            max_replays: self.max_replays.or(set),
            again: self.again,
            ahead: self.ahead,
            unattended: true,
        };
        let (by, reason, to) = (journal::writer(), self.reason.clone(), self.to.clone());
        Wanted { kind: Kind::Replay, by, reason, query, to, options, lanes: None }
    }
}

/// Which letters are to be changed: by a query, or all of them if that is said.
pub(in crate::api) fn selection(given: &mut Given) -> Result<Filter, Problem> {
    let filter = given.filter_in("query")?;
    let all = given.flag("all")?;
    let filter = filter.unwrap_or_default();
    if filter == Filter::default() && !all {
        return Err(Problem::bad(
            "which letters? say what they have in common in `query`, name them in its `id`, or say \"all\": true",
        ));
    }
    Ok(filter)
}

/// More than single letters want a reason.
pub(in crate::api) fn reason(filter: &Filter, reason: &str, dry_run: bool) -> Result<(), Problem> {
    if filter.ids.is_empty() && reason.is_empty() && !dry_run {
        return Err(Problem::bad("why? `reason` is written into the journal; \"dry_run\": true needs none"));
    }
    Ok(())
}

/// What a query means where letters are changed: those in these states, unless others or single ones are named.
pub(in crate::api) fn meant(desk: &Desk, filter: &Filter, usual: &[LetterState]) -> Query {
    let usual = if filter.ids.is_empty() { usual } else { &[] };
    filter.query(usual, desk.now())
}

/// The letters that a query means, ready to be changed. A header is looked for in Kafka.
pub(in crate::api) async fn candidates(desk: &Desk, query: &Query) -> Result<Vec<Candidate>, Problem> {
    let asked = match query.header {
        None => Some(query.clone()),
        Some(_) => {
            let mut index = desk.index().await?;
            query::without_header(&mut index, &desk.letters.settings, query).await?
        }
    };
    let Some(asked) = asked else { return Ok(Vec::new()) };
    desk.ask(move |index| index.candidates_of(&asked)).await
}

pub(in crate::api) async fn begin(
    State(shared): State<Arc<Shared>>,
    given: Result<Bytes, BytesRejection>,
) -> Answer {
    let asked = Asked::read(body(given)?)?;
    let desk = desk(&shared)?;
    let settings = &desk.letters.settings;
    let usual: &[LetterState] =
        if asked.again { &[LetterState::Open, LetterState::Replayed] } else { &[LetterState::Open] };
    let query = meant(desk, &asked.filter, usual);
    let mut wanted = asked.wanted(query.to_string(), desk.letters.max_replays);
    desk.refresh().await?;
    let mut candidates = candidates(desk, &query).await?;
    if candidates.is_empty()
        && let Some(told) = held(desk, &query).await?
    {
        return Err(Problem::new(StatusCode::CONFLICT, told));
    }
    if candidates.is_empty() {
        return Err(Problem::missing(format!(
            "no letter matches: {}; GET /api/v1/letters lists them",
            wanted.query
        )));
    }
    let matched = candidates.len();
    let mut destinations = Destinations::new(settings, asked.to.clone(), desk.letters.shelves.clone())?;
    let followers = if asked.without_followers {
        Followers::default()
    } else {
        let mut index = desk.index().await?;
        Followers::of(settings, &mut index, &candidates, &mut destinations).await?
    };
    let all = [candidates.as_slice(), followers.letters.as_slice()].concat();
    let plan = replay::plan(settings, &wanted, &all, &mut destinations).await?;
    if asked.dry_run {
        return Ok(answer::json(StatusCode::OK, &export::plan(&plan, matched)));
    }
    if plan.letters.is_empty() {
        return Err(nothing(&plan));
    }
    let mut not_held = Vec::new();
    if !followers.lanes.is_empty() {
        let holding = followers.hold(settings, candidates.len(), &wanted, asked.rate).await?;
        not_held = holding.not().to_vec();
        let ready = async {
            desk.refresh().await?;
            desk.index().await
        };
        let mut index = match ready.await {
            Ok(index) => index,
            Err(problem) => {
                holding.withdraw(settings, &wanted).await;
                return Err(problem);
            }
        };
        holding.gather(&mut index, &mut candidates, &mut wanted);
    }
    let start = replay::begin(settings, &desk.clock, &wanted, &candidates, &mut destinations).await?;
    let (job, plan) = match start {
        Start::Begun { job, plan } => (*job, plan),
        Start::Nothing(plan) => return Err(nothing(&plan)),
    };
    let id = job.id().clone();
    let deed = deeds::begins(&desk.clock, &wanted, &id, plan.letters.len() as u64);
    if let Err(error) = journal::append(settings, deed).await {
        let told = redrive_letters::told(&error);
        let rest = match job.give_up(&desk.clock, &wanted.by).await {
            Ok(()) => "nothing was sent, and the letters are as they were; try again".to_owned(),
            Err(_) => format!(
                "nothing was sent, and job {id} holds the letters: POST /api/v1/replays/{id}/cancel frees them"
            ),
        };
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("{told}; {rest}")));
    }
    drive::start(desk, job, wanted.by);
    let mut told = export::plan(&plan, matched);
    told["id"] = id.as_str().into();
    told["letters"] = plan.letters.len().into();
    let lanes = not_held.iter().map(|(lane, why)| json!({ "leader": lane.leader, "why": why }));
    told["lanes_not_held"] = lanes.collect();
    let at = format!("/api/v1/replays/{id}");
    Ok(([(header::LOCATION, at)], answer::json(StatusCode::ACCEPTED, &told)).into_response())
}

/// Which jobs have letters that would match otherwise.
async fn held(desk: &Desk, query: &Query) -> Result<Option<String>, Problem> {
    if query.states.is_empty() || query.states.contains(&LetterState::Replaying) {
        return Ok(None);
    }
    let asked = Query { states: vec![LetterState::Replaying], ..query.clone() };
    let letters = candidates(desk, &asked).await?;
    let letters: Vec<Origin> = letters.into_iter().map(|letter| letter.at).collect();
    if letters.is_empty() {
        return Ok(None);
    }
    let state = Followed::read(&desk.letters.settings).await?.state;
    let told = control::holders(&state, &letters).into_iter().map(|(job, count)| {
        let id = &job.id;
        format!(
            "{} (GET /api/v1/replays/{id} shows it, POST /api/v1/replays/{id}/resume goes on with it)",
            control::held_by(job, count, desk.now())
        )
    });
    let told: Vec<String> = told.collect();
    Ok((!told.is_empty()).then(|| format!("no letter matches that is free: {}", told.join("; "))))
}

/// Letters matched, and none of them is to be sent.
fn nothing(plan: &replay::Plan) -> Problem {
    let mut why: Vec<_> = plan.left_out.iter().map(|(why, count)| format!("{count} {why}")).collect();
    if let Some(leader) = plan.leaders.first() {
        why.push(format!("{leader} has to go first: name it, and those that followed it are sent after it"));
    }
    Problem::new(StatusCode::CONFLICT, format!("nothing is left to send: {}", why.join("; ")))
}
