//! Where a process sends the spans of its attempts.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use redrive_core::settings::{Endpoint, HttpVersion, Place, Tombstones};

use super::handler::{self, Credentials, Http, Secret};
use super::subscription::count;
use crate::problem::Problem;
use crate::typed::{self, At};

const QUEUE: NonZeroU32 = NonZeroU32::new(10_000).unwrap();
const TIMEOUT: Duration = Duration::from_secs(10);
/// Where collectors take spans, by the protocol.
const PATH: &str = "/v1/traces";

/// Where a process sends spans, and of how many records.
#[derive(Debug, Clone, PartialEq)]
pub struct Traces {
    /// The collector.
    pub endpoint: Box<Http>,
    /// The share of the records without a trace that get one, from 0 to 1.
    pub sample: f64,
    /// How long a request may take.
    pub timeout: Duration,
    /// How many spans may wait.
    pub queue: NonZeroU32,
}

impl Traces {
    pub(super) fn from_typed(typed: Option<&At<typed::Traces>>, problems: &mut Vec<Problem>) -> Option<Self> {
        let typed = typed?;
        let is_ours = |name: &str| handler::OURS.contains(&name);
        handler::headers(typed.headers.as_ref(), is_ours, "remove it", problems);
        let url = &typed.endpoint.as_ref()?.value;
        let has_tls = matches!(url.place, Place::Host { tls: true, .. });
        if let Some(ca) = typed.ca.as_ref().filter(|_| !has_tls) {
            handler::needs_tls("ca", ca, problems);
        }
        let headers = typed.headers.iter().flat_map(|named| &named.value.0);
        let endpoint = Http {
            url: collector(url),
            version: HttpVersion::Auto,
            ca: typed.ca.as_ref().map(|text| PathBuf::from(&text.value.0)),
            identity: None,
            credentials: url.credentials.clone().map(|text| Credentials::Basic(Secret(text))),
            signature_secret: None,
            headers: headers.map(|header| header.value.clone()).collect(),
            tombstones: Tombstones::Deliver,
            max_answer: handler::MAX_ANSWER,
            max_body: handler::MAX_BODY,
            batch: None,
        };
        Some(Self {
            endpoint: Box::new(endpoint),
            sample: typed.sample.as_ref().map_or(1.0, |sample| sample.value.0),
            timeout: typed.timeout.as_ref().map_or(TIMEOUT, |timeout| timeout.value),
            queue: count(typed.queue.as_ref()).unwrap_or(QUEUE),
        })
    }
}

fn collector(url: &Endpoint) -> Endpoint {
    let path = if url.path == "/" { PATH } else { &url.path };
    Endpoint { path: path.to_owned(), ..url.clone() }
}
