//! An endpoint's answer: read within limits, then understood.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, DATE, LOCATION, RETRY_AFTER};
use hyper::{HeaderMap, StatusCode};
use redrive::{Clock, Failure, Timestamp};
use serde_json::Value;
use tracing::debug;

use crate::outcome::{Outcome, cut, seconds};

/// An answer, with as much of its body as was read.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) end: End,
}

/// How the body ended.
#[derive(Debug)]
pub(super) enum End {
    /// All of it is here.
    Whole,
    /// It is longer than what is read.
    TooLong,
    /// It did not come in time.
    TooSlow,
    /// The connection broke.
    Broken(BrokenOff),
}

/// Why a body has no end.
pub(super) type BrokenOff = Box<dyn Error + Send + Sync>;

/// The body of an answer, as it comes.
pub(super) trait Body {
    /// Whether nothing more is to come, as far as that is known.
    fn is_over(&self) -> bool;

    /// More of it; none at its end.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>>;
}

impl Body for Incoming {
    fn is_over(&self) -> bool {
        self.is_end_stream()
    }

    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        loop {
            match ready!(Pin::new(&mut *self).poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Poll::Ready(Some(Ok(data))),
                    Err(_trailers) => {}
                },
            }
        }
    }
}

impl Answer {
    /// Reads the body up to `most` bytes and, if it is not there yet, until `until` by the clock. What is not read
    /// is dropped with its connection, which is then not used again.
    pub(super) async fn read(
        status: StatusCode,
        headers: HeaderMap,
        body: &mut impl Body,
        most: usize,
        clock: &Clock,
        until: impl Fn(StatusCode) -> Duration,
    ) -> Self {
        let (mut read, mut deadline) = (BytesMut::new(), None);
        let end = loop {
            if body.is_over() {
                break End::Whole;
            }
            let until = *deadline.get_or_insert_with(|| until(status));
            let more = tokio::select! {
                biased;
                more = std::future::poll_fn(|context| body.poll_more(context)) => more,
                () = clock.sleep_until(until) => break End::TooSlow,
            };
            match more {
                None => break End::Whole,
                Some(Err(error)) => break End::Broken(error),
                Some(Ok(data)) => {
                    let room = most - read.len();
                    read.extend_from_slice(&data[..data.len().min(room)]);
                    if data.len() > room {
                        break End::TooLong;
                    }
                }
            }
        };
        if let End::TooSlow | End::Broken(_) = &end {
            debug!(%status, ?end, read = read.len(), "the body of an answer was not read to its end");
        }
        Self { status, headers, body: read.freeze(), end }
    }

    /// Done, or the failure that it stands for. `clock` says what dates are compared with.
    pub(super) fn result(&self, clock: &Clock) -> Result<(), Failure> {
        // What else it says is for those who failed.
        if self.status.is_success() { Ok(()) } else { self.outcome(clock.now().wall).result("http") }
    }

    /// What it says of the record, or of all records, that were sent. `now` is what dates are compared with,
    /// if the answer has no date itself.
    pub(super) fn outcome(&self, now: Timestamp) -> Outcome {
        let text = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok());
        let reason = self.status.canonical_reason().unwrap_or_default();
        let said = self.said();
        let mut message = format!("{} {reason}", self.status.as_u16()).trim_end().to_owned();
        let mut outcome = Outcome { status: Some(self.status.as_u16()), ..Outcome::default() };
        if self.status.is_redirection() {
            let to = self.headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("nowhere");
            let to = to.split('?').next().unwrap_or(to);
            message = format!("{message}: a redirect to {}, which is not followed", cut(to, 200));
        } else if let Some(problem) = self.problem() {
            let text = |key: &str| problem.get(key).and_then(Value::as_str);
            let told: Vec<_> = ["title", "detail"].into_iter().filter_map(text).collect();
            message = format!("{message}: {}", told.join(": "));
            outcome.type_name = text("type").filter(|name| *name != "about:blank").map(ToOwned::to_owned);
        } else if !said.is_empty() {
            message = format!("{message}: {said}");
        }
        // Otherwise it would look as if nothing had been said.
        match &self.end {
            End::Whole | End::TooLong => {}
            End::TooSlow => message.push_str(" (the rest of the answer did not come in time)"),
            End::Broken(_) => message.push_str(" (the connection broke before the answer ended)"),
        }
        outcome.message = Some(message);
        outcome.retry_after = text(RETRY_AFTER.as_str()).and_then(|wait| self.retry_after(wait, now));
        outcome.name_class(text("redrive-class"));
        outcome.name_predecessor(text("redrive-follows"));
        outcome
    }

    /// The media type, without parameters, in lower case.
    pub(super) fn media_type(&self) -> String {
        let value = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    fn problem(&self) -> Option<Value> {
        let is_problem = self.media_type() == "application/problem+json";
        serde_json::from_slice(&self.body).ok().filter(|problem: &Value| is_problem && problem.is_object())
    }

    /// The beginning of the body, where it is text.
    fn said(&self) -> String {
        let known = match std::str::from_utf8(&self.body) {
            Ok(text) => text,
            // What was cut may end within a character.
            Err(error) if error.valid_up_to() + 4 > self.body.len() || error.valid_up_to() > 500 => {
                std::str::from_utf8(&self.body[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return format!("({} bytes that are no text)", self.body.len()),
        };
        cut(known, 500)
    }

    /// Seconds, or a date.
    fn retry_after(&self, wait: &str, now: Timestamp) -> Option<Duration> {
        let wait = wait.trim();
        if wait.bytes().all(|byte| byte.is_ascii_digit()) {
            return wait.parse().ok().and_then(seconds);
        }
        let date = |text: &str| {
            let imf = jiff::fmt::rfc2822::parse(text).map(|read| read.timestamp());
            // Two older forms that whoever reads HTTP has to know.
            let older = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"].into_iter();
            let mut older = older.filter_map(|form| {
                let read = jiff::civil::DateTime::strptime(form, text).ok()?;
                Some(read.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
            });
            let read = imf.ok().or_else(|| older.next())?;
            Some(Timestamp::from_millis(read.as_millisecond()))
        };
        // By the clock of whoever wrote both, if possible.
        let theirs = self.headers.get(DATE).and_then(|value| value.to_str().ok()).and_then(date);
        seconds(date(wait)?.since(theirs.unwrap_or(now)).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive::{Class, Failure};

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &[u8]) -> Answer {
        let headers = headers
            .iter()
            .map(|(name, value)| (hyper::header::HeaderName::from_static(name), value.parse().unwrap()));
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers.collect(),
            body: Bytes::copy_from_slice(body),
            end: End::Whole,
        }
    }

    fn failure(status: u16, headers: &[(&'static str, &str)], body: &str) -> Failure {
        let now = Timestamp::from_millis(1_800_000_000_000);
        answer(status, headers, body.as_bytes()).outcome(now).result("http").unwrap_err()
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let wait = |headers: &[(&'static str, &str)]| failure(503, headers, "").retry_after;
        assert_eq!(wait(&[("retry-after", "120")]), Some(Duration::from_secs(120)));
        assert_eq!(wait(&[("retry-after", "0")]), None, "the policy's wait");
        assert_eq!(wait(&[("retry-after", "Fri, 15 Jan 2027 08:00:07 GMT")]), Some(Duration::from_secs(7)));
        let skewed =
            [("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), ("date", "Sun, 06 Nov 1994 08:49:07 GMT")];
        assert_eq!(wait(&skewed), Some(Duration::from_secs(30)));
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), None);
        for older in ["Friday, 15-Jan-27 08:00:07 GMT", "Fri Jan 15 08:00:07 2027"] {
            assert_eq!(wait(&[("retry-after", older)]), Some(Duration::from_secs(7)), "{older}");
        }
        for nonsense in ["-1", "soon", "", "1e9", "99999999999999999999999"] {
            let wait = wait(&[("retry-after", nonsense)]);
            assert!(wait.is_none_or(|wait| wait > Duration::from_secs(1 << 40)), "{nonsense}: {wait:?}");
        }
    }

    #[test]
    fn a_problem_names_type_and_message() {
        let body =
            r#"{"type":"https://x/credit","title":"No credit","detail":"30 is less than 50","status":1}"#;
        let failure = failure(402, &[("content-type", "application/problem+json; charset=utf-8")], body);
        let cause = failure.outermost();
        assert_eq!((cause.type_name.as_str(), cause.status), ("https://x/credit", Some(402)));
        assert_eq!(cause.message, "402 Payment Required: No credit: 30 is less than 50");
        assert_eq!(failure.presumed, Some(Class::Permanent));
    }

    #[test]
    fn any_other_body_is_told_by_its_beginning() {
        let told = |body: &str| failure(500, &[], body).outermost().message.clone();
        assert_eq!(told(""), "500 Internal Server Error");
        assert_eq!(told("<p>\n  no\tstock</p>"), "500 Internal Server Error: <p> no stock</p>");
        assert!(told(&"long ".repeat(1_000)).len() < 600);
        let bytes = answer(500, &[], b"\xff\xfe\x00\x01").outcome(Timestamp::from_millis(0)).message.unwrap();
        assert_eq!(bytes, "500 Internal Server Error: (4 bytes that are no text)");
    }

    #[test]
    fn a_body_that_did_not_come_is_not_taken_for_none() {
        let told = |end: End| {
            let answer = Answer { end, ..answer(422, &[], b"no cust") };
            answer.outcome(Timestamp::from_millis(0)).message.unwrap()
        };
        let said = "422 Unprocessable Entity: no cust";
        assert_eq!(told(End::Whole), said);
        assert_eq!(told(End::TooLong), said);
        assert_eq!(told(End::TooSlow), format!("{said} (the rest of the answer did not come in time)"));
        let broken = format!("{said} (the connection broke before the answer ended)");
        assert_eq!(told(End::Broken("reset".into())), broken);
    }

    #[test]
    fn a_redirect_is_permanent_and_says_so() {
        let failure = failure(307, &[("location", "https://elsewhere/p?token=secret")], "");
        assert_eq!(failure.presumed, Some(Class::Permanent));
        let told = &failure.outermost().message;
        assert_eq!(told, "307 Temporary Redirect: a redirect to https://elsewhere/p, which is not followed");
    }

    #[test]
    fn an_answer_names_class_and_predecessor() {
        let failure = failure(409, &[("redrive-class", "not-ready"), ("redrive-follows", "orders/0/7")], "");
        assert_eq!(failure.outermost().class, Some(Class::NotReady));
        assert_eq!(failure.follows, Some("orders/0/7".parse().unwrap()));
    }
}
