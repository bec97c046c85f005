//! Letters: listed, shown, their payloads as they are.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::IntoResponse;
use redrive_core::Origin;
use redrive_letters::show::{self, Shown};
use redrive_letters::{Cursor, Query, Sort, State as LetterState, export, query};
use serde_json::{Value, json};

use super::{Answer, Named, desk, place};
use crate::answer;
use crate::desk::Desk;
use crate::given::Given;
use crate::listen::Shared;
use crate::problem::Problem;

/// As many letters are listed at once at most.
pub(super) const MOST: u64 = 1_000;
const USUAL: u64 = 100;

pub(super) async fn list(State(shared): State<Arc<Shared>>, uri: Uri) -> Answer {
    let mut given = Given::in_address(&uri)?;
    let limit = given.some("limit", MOST)?.unwrap_or(USUAL);
    let cursor: Option<Cursor> = given.read("cursor")?;
    let sort = match given.read::<String>("sort")?.as_deref() {
        None | Some("newest") => Sort::Newest,
        Some("oldest") => Sort::Oldest,
        Some("attempts") => Sort::Attempts,
        Some(other) => {
            return Err(Problem::bad(format!(
                "`sort`: `{other}` is none; there are newest, oldest, attempts"
            )));
        }
    };
    let filter = given.filter()?;
    given.end()?;
    let desk = desk(&shared)?;
    let usual: &[LetterState] = if filter.ids.is_empty() { &[LetterState::Open] } else { &[] };
    let query = Query { sort, ..filter.query(usual, desk.now()) };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let page = if query.header.is_some() {
        let mut index = desk.index().await?;
        query::with_header(&mut index, &desk.letters.settings, &query, most, cursor).await?
    } else {
        desk.ask(move |index| index.page(&query, most, cursor)).await?
    };
    let letters: Vec<Value> = page.letters.iter().map(export::metadata).collect();
    let next = page.next.map(|next| next.to_string());
    Ok(answer::json(StatusCode::OK, &json!({ "letters": letters, "total": page.total, "next": next })))
}

pub(super) async fn show(State(shared): State<Arc<Shared>>, named: Named, uri: Uri) -> Answer {
    let id = place(named)?;
    Given::in_address(&uri)?.end()?;
    let desk = desk(&shared)?;
    may_show(desk, &id).await?;
    let links = desk.letters.links.iter().map(|(name, template)| (name.as_str(), template.as_str()));
    let mut shown = Shown::read(&desk.letters.settings, &id, links).await?;
    let document = desk.ask(move |index| {
        shown.look_around(index)?;
        Ok(shown.document())
    });
    Ok(answer::json(StatusCode::OK, &document.await?))
}

/// Refuses a letter that was erased, though Kafka may have it still.
async fn may_show(desk: &Desk, id: &Origin) -> Result<(), Problem> {
    let id = id.clone();
    desk.ask(move |index| index.may_show(&id)).await
}

/// The bytes, exactly as they were. What they claim to be is told, and no browser is to act on it.
pub(super) async fn payload(State(shared): State<Arc<Shared>>, named: Named, uri: Uri) -> Answer {
    let id = place(named)?;
    Given::in_address(&uri)?.end()?;
    let desk = desk(&shared)?;
    may_show(desk, &id).await?;
    let settings = &desk.letters.settings;
    let whole = show::whole(settings, &id).await?;
    let Some(payload) = whole.payload(settings).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let kind = whole.letter.content_type.as_deref().and_then(|kind| HeaderValue::from_str(kind).ok());
    let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let file = format!("attachment; filename=\"{}-{}-{}.bin\"", id.topic, id.partition, id.offset);
    let headers = [
        (header::CONTENT_DISPOSITION, file.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok(([(header::CONTENT_TYPE, kind)], headers, payload).into_response())
}
