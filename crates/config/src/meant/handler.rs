//! What handles the records of a subscription: which endpoint, and how it is spoken to.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use redrive_core::settings::{BatchFormat, Endpoint, HttpVersion, Place, Tombstones};

use super::Property;
use super::subscription::{count, size, value};
use crate::problem::Problem;
use crate::typed::{self, At};

pub(super) const MAX_ANSWER: NonZeroU64 = NonZeroU64::new(64 << 10).unwrap();
pub(super) const MAX_BODY: NonZeroU64 = NonZeroU64::new(100 << 20).unwrap();

const QUEUE: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// What handles the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// They are pushed to an endpoint.
    Http(Box<Http>),
    /// They are written to a program.
    Command(Box<Command>),
}

/// A program that runs all the time and gets records as lines of JSON.
#[derive(Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is the key of its name, described in the reference")]
pub struct Command {
    pub program: String,
    pub arguments: Vec<String>,
    pub env: Vec<Property>,
    pub directory: Option<PathBuf>,
    pub stop_timeout: Duration,
}

/// An HTTP endpoint, and how it is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is the key of its name, described in the reference")]
pub struct Http {
    pub url: Endpoint,
    pub version: HttpVersion,
    pub ca: Option<PathBuf>,
    /// The files of a certificate and of its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    pub credentials: Option<Credentials>,
    pub signature_secret: Option<Secret>,
    pub headers: Vec<Property>,
    pub tombstones: Tombstones,
    pub max_answer: NonZeroU64,
    pub max_body: NonZeroU64,
    pub batch: Option<Batch>,
}

/// Who we say we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Whoever holds this token.
    Bearer(Secret),
    /// `user:password`.
    Basic(Secret),
}

/// Who is told of each record that is set aside or dead-lettered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// Where events go.
    pub endpoint: Box<Http>,
    /// How long one may take.
    pub timeout: Duration,
    /// How many may wait.
    pub queue: NonZeroU32,
}

/// Several records in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// How many at most.
    pub records: NonZeroU32,
    /// How they are written.
    pub format: BatchFormat,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

/// Without the arguments, any of which may be secret.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("env", &self.env)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The handler, if the file names one.
pub(super) fn resolve(typed: Option<&At<typed::Handler>>, problems: &mut Vec<Problem>) -> Option<Handler> {
    let typed = typed?;
    match (&typed.http, &typed.command) {
        (Some(endpoint), None) => http(endpoint, problems).map(|http| Handler::Http(Box::new(http))),
        (None, Some(program)) => {
            command(program, problems).map(|command| Handler::Command(Box::new(command)))
        }
        (Some(_), Some(second)) => {
            let problem =
                Problem::error(second.key.clone(), "a subscription has one handler, and here are two");
            problems.push(problem.help("keep http or command"));
            None
        }
        (None, None) => {
            let problem = Problem::error(typed.span.clone(), "this names no handler");
            // What could not be read is told already.
            if typed.whole {
                problems.push(problem.help("write handler.http.url = \"http://HOST:PORT/PATH\""));
            }
            None
        }
    }
}

fn command(typed: &At<typed::Command>, problems: &mut Vec<Problem>) -> Option<Command> {
    let argv = typed.argv.as_ref()?;
    let mut words = argv.value.iter().map(|word| word.value.0.clone());
    let Some(program) = words.next() else {
        let problem = Problem::error(argv.span.clone(), "this names no program");
        // What could not be read is told already.
        if typed.whole {
            problems.push(problem.help("write argv = [\"python3\", \"handler.py\"]"));
        }
        return None;
    };
    let named = || typed.env.iter().flat_map(|named| &named.value.0);
    for variable in named() {
        let Property { name, value } = &variable.value;
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let problem = Problem::error(variable.key.clone(), "this is not an environment variable");
            problems.push(problem.help("a name has letters, digits and underscores"));
        }
    }
    Some(Command {
        program,
        arguments: words.collect(),
        env: named().map(|variable| variable.value.clone()).collect(),
        directory: typed.directory.as_ref().map(|folder| PathBuf::from(&folder.value.0)),
        stop_timeout: typed.stop_timeout.as_ref().map_or(Duration::from_secs(5), |timeout| timeout.value),
    })
}

/// Who is told, if the file names someone.
pub(super) fn notify(typed: Option<&At<typed::Notify>>, problems: &mut Vec<Problem>) -> Option<Notify> {
    let typed = typed?;
    let url = typed.url.as_ref()?;
    if let Some(ca) = typed.ca.as_ref().filter(|_| !matches!(url.value.place, Place::Host { tls: true, .. }))
    {
        needs_tls("ca", ca, problems);
    }
    let bearer = typed.bearer.as_ref().map(|token| Credentials::Bearer(token.value.clone()));
    let in_address = url.value.credentials.clone().map(|text| Credentials::Basic(Secret(text)));
    let endpoint = Http {
        url: url.value.clone(),
        version: HttpVersion::Auto,
        ca: typed.ca.as_ref().map(|text| PathBuf::from(&text.value.0)),
        identity: None,
        credentials: bearer.or(in_address),
        signature_secret: typed.signature_secret.as_ref().map(|secret| secret.value.clone()),
        headers: Vec::new(),
        tombstones: Tombstones::Deliver,
        max_answer: MAX_ANSWER,
        max_body: MAX_BODY,
        batch: None,
    };
    Some(Notify {
        endpoint: Box::new(endpoint),
        timeout: typed.timeout.as_ref().map_or(Duration::from_secs(5), |timeout| timeout.value),
        queue: count(typed.queue.as_ref()).unwrap_or(QUEUE),
    })
}

pub(super) fn needs_tls(name: &str, file: &At<typed::Text>, problems: &mut Vec<Problem>) {
    let problem = Problem::error(file.key.clone(), format!("{name} needs TLS, and the url has none"));
    let problem = problem.help("write the url with https://, or remove this");
    // What the defaults say is found again with each subscription.
    if !problems.contains(&problem) {
        problems.push(problem);
    }
}

fn http(typed: &At<typed::Http>, problems: &mut Vec<Problem>) -> Option<Http> {
    let is_ours = |name: &str| {
        OURS.contains(&name)
            || name == "authorization"
            || ["redrive-", "ce-"].iter().any(|own| name.starts_with(own))
    };
    headers(
        typed.headers.as_ref(),
        is_ours,
        "remove it; credentials are written as bearer or basic",
        problems,
    );
    without_tls(typed, problems);
    let identity = identity(typed, problems);
    let credentials = credentials(typed, problems);
    let path = |text: &At<typed::Text>| PathBuf::from(&text.value.0);
    let batch = typed.batch.as_ref().and_then(|batch| {
        Some(Batch { records: count(batch.records.as_ref())?, format: value(batch.format.as_ref()) })
    });
    let headers = typed.headers.iter().flat_map(|named| &named.value.0);
    Some(Http {
        url: typed.url.as_ref()?.value.clone(),
        version: value(typed.version.as_ref()),
        ca: typed.ca.as_ref().map(path),
        identity,
        credentials,
        signature_secret: typed.signature_secret.as_ref().map(|secret| secret.value.clone()),
        headers: headers.map(|header| header.value.clone()).collect(),
        tombstones: value(typed.tombstones.as_ref()),
        max_answer: size(typed.max_answer.as_ref()).unwrap_or(MAX_ANSWER),
        max_body: size(typed.max_body.as_ref()).unwrap_or(MAX_BODY),
        batch,
    })
}

fn identity(typed: &At<typed::Http>, problems: &mut Vec<Problem>) -> Option<(PathBuf, PathBuf)> {
    match (&typed.certificate, &typed.private_key) {
        (Some(certificate), Some(key)) => Some(((&certificate.value.0).into(), (&key.value.0).into())),
        (Some(alone), None) if typed.whole => {
            let problem = Problem::error(alone.key.clone(), "a certificate is of no use without its key");
            problems.push(problem.help("name its file as private-key"));
            None
        }
        (None, Some(alone)) if typed.whole => {
            let problem = Problem::error(alone.key.clone(), "a key is of no use without its certificate");
            problems.push(problem.help("name its file as certificate"));
            None
        }
        _ => None,
    }
}

fn credentials(typed: &At<typed::Http>, problems: &mut Vec<Problem>) -> Option<Credentials> {
    let in_address = typed.url.as_ref().and_then(|url| url.value.credentials.clone());
    let bearer = typed.bearer.as_ref().map(|token| (token, Credentials::Bearer(token.value.clone())));
    let basic = typed.basic.as_ref().map(|basic| (basic, Credentials::Basic(basic.value.clone())));
    if let Some((at, _)) = basic.as_ref().filter(|(at, _)| !at.value.0.contains(':')) {
        let problem = Problem::error(at.key.clone(), "these are no credentials: a colon is missing");
        problems.push(problem.help("write basic = \"USER:${PASSWORD}\""));
    }
    let keys: Vec<_> = [&typed.bearer, &typed.basic].into_iter().flatten().map(|at| at.key.clone()).collect();
    if keys.len() + usize::from(in_address.is_some()) > 1 {
        let key = keys.last().cloned().unwrap_or(typed.span.clone());
        let problem = Problem::error(key, "a request carries one kind of credentials, and here are several");
        problems.push(problem.help("keep one of bearer, basic and the credentials in the url"));
    }
    let in_address = in_address.map(|text| Credentials::Basic(Secret(text)));
    bearer.or(basic).map(|(_, credentials)| credentials).or(in_address)
}

/// What only means something with TLS must not be believed to protect a connection without it.
fn without_tls(typed: &At<typed::Http>, problems: &mut Vec<Problem>) {
    let Some(url) = &typed.url else { return };
    if matches!(url.value.place, Place::Host { tls: true, .. }) {
        return;
    }
    let files = [("ca", &typed.ca), ("certificate", &typed.certificate), ("private-key", &typed.private_key)];
    for (name, file) in files {
        let Some(file) = file else { continue };
        needs_tls(name, file, problems);
    }
}

/// Names that every request has from us.
pub(super) const OURS: [&str; 7] =
    ["connection", "content-length", "content-type", "te", "trailer", "transfer-encoding", "upgrade"];

/// What is wrong with headers that are added to requests; some are ours to set, and then there is something else to do.
pub(super) fn headers(
    typed: Option<&At<typed::Named>>,
    is_ours: impl Fn(&str) -> bool,
    instead: &str,
    problems: &mut Vec<Problem>,
) {
    let mut seen = Vec::new();
    for header in typed.iter().flat_map(|named| &named.value.0) {
        let Property { name, value } = &header.value;
        let lower = name.to_ascii_lowercase();
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let wrong = if name.is_empty() || !name.chars().all(is_token) {
            ("this is not the name of a header", "a name has letters, digits and dashes")
        } else if is_ours(&lower) {
            ("Redrive sets this header itself", instead)
        } else if value.chars().any(|c| !(c.is_ascii_graphic() || c == ' ')) {
            ("the value of a header is plain text on one line", "write other characters as %XX")
        } else if seen.contains(&lower) {
            ("this header is given twice", "names of headers do not differ by case")
        } else {
            seen.push(lower);
            continue;
        };
        problems.push(Problem::error(header.key.clone(), wrong.0).help(wrong.1));
    }
}
