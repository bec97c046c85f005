//! Why a question has no answer, with its status and what mends it.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use redrive::delayed;
use redrive_letters::groups::Unsaid;
use redrive_letters::{Error, journal, replay, told};

use crate::answer;

/// Why a question has no answer.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into() }
    }

    /// The question is wrong.
    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn missing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        answer::problem(self.status, &self.detail)
    }
}

impl From<redrive_kafka::Error> for Problem {
    fn from(error: redrive_kafka::Error) -> Self {
        let remedy = match error.refusal() {
            Some(refusal) if refusal.is_denied() => "redrive acls prints what a worker must be allowed to do",
            Some(_) | None => "is the cluster there? try again when it is",
        };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, format!("{}; {remedy}", told(&error)))
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match error {
            Error::Kafka(error) => return error.into(),
            Error::TooBroad(_) | Error::Pattern { .. } | Error::BadCursor(_) => StatusCode::BAD_REQUEST,
            Error::NoLetter(_) => {
                return Self::missing(format!("{error}; GET /api/v1/letters lists those that are there"));
            }
            Error::NoPayload { .. } => StatusCode::GONE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, told(&error))
    }
}

impl From<replay::Error> for Problem {
    fn from(error: replay::Error) -> Self {
        use replay::Error as Replay;
        let (status, remedy) = match error {
            Replay::Kafka(error) => return error.into(),
            Replay::Shelf(error) => return error.into(),
            Replay::NoJob(_) => (StatusCode::NOT_FOUND, "GET /api/v1/replays lists the jobs there are"),
            Replay::Several { .. } => (StatusCode::BAD_REQUEST, "write the whole id"),
            Replay::Ended(_) => (StatusCode::CONFLICT, "begin another with POST /api/v1/replays"),
            Replay::NoReplay(_) => (StatusCode::CONFLICT, "only replays can be changed"),
            Replay::TooManyLanes(_) => (StatusCode::BAD_REQUEST, "narrow the query"),
            Replay::Unread => (StatusCode::SERVICE_UNAVAILABLE, "try again in a minute"),
            Replay::Refused { .. } => {
                (StatusCode::BAD_GATEWAY, "mend the topic, then resume the job: it goes on where it was")
            }
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "look into the log of the process"),
        };
        Self::new(status, format!("{}; {remedy}", told(&error)))
    }
}

impl From<delayed::Error> for Problem {
    fn from(error: delayed::Error) -> Self {
        let (status, remedy) = match error {
            delayed::Error::Kafka(error) => return error.into(),
            delayed::Error::NoShelf(_) => (
                StatusCode::NOT_FOUND,
                "redrive topics apply makes it, and so does a worker with auto-create",
            ),
            delayed::Error::NoPartition { .. } => (StatusCode::NOT_FOUND, "name another partition"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "run the version that wrote it, or a later one"),
        };
        Self::new(status, format!("{}; {remedy}", told(&error)))
    }
}

impl From<Unsaid> for Problem {
    fn from(error: Unsaid) -> Self {
        match error {
            Unsaid::Journal(error) => error.into(),
            Unsaid::State(error) => error.into(),
        }
    }
}

impl From<journal::Error> for Problem {
    fn from(error: journal::Error) -> Self {
        let what = "nothing was done: what is done has to be in the journal first";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, format!("{}; {what}", told(&error)))
    }
}
