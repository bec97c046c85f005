//! `redrive dlq show`: everything about one letter, and what belongs to it.

use std::fmt::Write;
use std::path::PathBuf;
use std::{fs, io};

use clap::Args;
use redrive::{Origin, Timestamp};
use redrive_letters::show::{NEIGHBOURS, Shown};

use super::place::{Opened, Place};
use super::{Output, words};
use crate::exit::Exit;
use crate::{bytes_text, human, screen, when};

/// As much of a payload is shown unless all is asked for, in bytes.
const MOST: usize = 1_000;

#[derive(Args)]
#[command(after_help = "Examples:
  redrive dlq show orders.billing.dlq/3/17
  redrive dlq show orders.billing.dlq/3/17 --payload order.bin     the payload, byte for byte
  redrive dlq show orders.billing.dlq/3/17 -o json

The payload of a letter that points to it is read from there.")]
pub(super) struct Show {
    /// Where the letter lies: topic/partition/offset
    id: Origin,
    #[command(flatten)]
    place: Place,
    /// Write the payload to a file, byte for byte
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Show the whole payload and the whole stack, however long they are
    #[arg(long)]
    full: bool,
    /// How to show it
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Show {
    pub(super) async fn run(&self) -> io::Result<Exit> {
        let mut opened = match self.place.open().await {
            Ok(opened) => opened,
            Err(exit) => return Ok(exit),
        };
        let shown = match self.read(&mut opened).await {
            Ok(shown) => shown,
            Err(error) => return Ok(opened.reached.failed(&error)),
        };
        if let Some(file) = &self.payload {
            match save(file, &shown.payload) {
                Ok(said) => screen::say(&said),
                Err(said) => {
                    screen::say(&format!("error: {said}"));
                    return Ok(Exit::Failed);
                }
            }
        }
        screen::data(&match self.output {
            Output::Table => self.text(&shown, opened.now),
            Output::Json => format!("{:#}\n", shown.document()),
            Output::Ndjson => format!("{}\n", shown.document()),
        })?;
        Ok(Exit::Ok)
    }

    async fn read(&self, opened: &mut Opened) -> Result<Shown, redrive_letters::Error> {
        opened.index.may_show(&self.id)?;
        let reached = &opened.reached;
        let links = reached.links.iter().map(|link| (link.name.as_str(), link.template.as_str()));
        let mut shown = Shown::read(&reached.settings, &self.id, links).await?;
        shown.look_around(&mut opened.index)?;
        Ok(shown)
    }

    fn text(&self, shown: &Shown, now: Timestamp) -> String {
        let (letter, record) = (&shown.whole.letter, &shown.whole.record);
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<12} {value}");
        };
        let time = |time: Timestamp| format!("{}, {}", when::shown(time), when::from_now(time, now));
        line("letter", &letter.at.to_string());
        line("written by", letter.dialect.name());
        line("state", &shown.summary.as_ref().map_or("not indexed".to_owned(), words::state));
        line("failure", &letter.fingerprint().to_string());
        line("when", &time(letter.time()));
        let source = &letter.source;
        let number = |number: Option<i64>| number.map_or("?".to_owned(), |number| number.to_string());
        if let Some(topic) = &source.topic {
            let origin =
                format!("{topic}/{}/{}", number(source.partition.map(i64::from)), number(source.offset));
            line("origin", &origin);
        }
        if let Some(at) = source.timestamp {
            line("", &format!("of {}", when::shown(at)));
        }
        let maybe = [
            ("group", letter.group.clone()),
            ("service", letter.service.clone()),
            ("instance", letter.instance.clone()),
            ("handler", letter.handler.clone()),
            ("class", letter.class.map(|class| class.name().to_owned())),
            ("reason", letter.reason.map(|reason| reason.to_string())),
            ("leader", letter.leader.as_ref().map(ToString::to_string)),
            ("lane", letter.lane.as_deref().map(bytes_text::line)),
            ("type", letter.content_type.clone()),
        ];
        for (name, value) in maybe {
            if let Some(value) = value {
                line(name, &bytes_text::line(value.as_bytes()));
            }
        }
        line("error", &bytes_text::line(error(&letter.error_type, &letter.message).as_bytes()));
        for link in letter.chain.iter().skip(1) {
            let message = Some(link.message.clone()).filter(|message| !message.is_empty());
            let because = error(&Some(link.error_type.clone()), &message);
            line("because", &bytes_text::line(because.as_bytes()));
        }
        for (number, event) in shown.timeline().into_iter().enumerate() {
            let name = if number == 0 { "timeline" } else { "" };
            line(name, &format!("{}  {}", when::shown(event.at), bytes_text::line(event.what.as_bytes())));
        }
        if let Some(attempts) = letter.attempts {
            line("attempts", &attempts.to_string());
        }
        if shown.replays() > 0 {
            line("sent back", &human::count(shown.replays(), "time", "times"));
        }
        for (name, address) in &shown.links {
            line(name, address);
        }
        for (name, letters) in
            [("followers", &shown.followers), ("same lane", &shown.lane), ("same error", &shown.same)]
        {
            for (number, other) in letters.iter().take(NEIGHBOURS).enumerate() {
                let name = if number == 0 { name } else { "" };
                line(name, &format!("{}  {}  {}", other.at, words::origin(other), words::state(other)));
            }
            if letters.len() > NEIGHBOURS {
                line("", "and more");
            }
        }
        for problem in &letter.problems {
            line("note", &bytes_text::line(problem.as_bytes()));
        }
        line("key", &letter.key.as_deref().map_or("none".to_owned(), bytes_text::line));
        for header in record.headers.iter().filter(|header| !is_told(&header.name)) {
            let value = header.value.as_deref().map_or("none".to_owned(), bytes_text::line);
            line(
                "header",
                &format!("{} = {}", bytes_text::line(header.name.as_bytes()), bytes_text::cut(&value, 400)),
            );
        }
        if let Some(pointer) = &letter.pointer {
            line("points to", &pointer.to_string());
        }
        if let Some(stack) = &letter.stack {
            let lines = stack.lines().take(if self.full { usize::MAX } else { 12 });
            for (number, one) in lines.enumerate() {
                line(if number == 0 { "stack" } else { "" }, &bytes_text::line(one.as_bytes()));
            }
        }
        text + &self.value(&shown.payload)
    }

    fn value(&self, payload: &Result<Option<bytes::Bytes>, String>) -> String {
        let value = match payload {
            Ok(Some(value)) => value,
            Ok(None) => return "payload      none\n".to_owned(),
            Err(why) => return format!("payload      {why}\n"),
        };
        let part = if self.full { value } else { &value.slice(..value.len().min(MOST)) };
        // A cut may fall into the middle of a character.
        let whole = match std::str::from_utf8(part) {
            Err(error) if error.error_len().is_none() => &part[..error.valid_up_to()],
            Ok(_) | Err(_) => part,
        };
        let (kind, body) = match bytes_text::text(whole) {
            Some(text) => ("text", text.to_owned()),
            None => ("hexadecimal", bytes_text::hex(part)),
        };
        let bytes = human::count(value.len() as u64, "byte", "bytes");
        let more = if part.len() < value.len() { "; cut, --full shows all" } else { "" };
        format!("payload      {bytes}, {kind}{more}\n\n{body}\n")
    }
}

fn error(error_type: &Option<String>, message: &Option<String>) -> String {
    match (error_type, message) {
        (Some(error_type), Some(message)) => format!("{error_type}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.clone(),
        (None, None) => "-".to_owned(),
    }
}

/// What is told above in words of its own.
fn is_told(name: &str) -> bool {
    redrive_core::headers::Name::of(name).is_some()
}

fn save(file: &PathBuf, payload: &Result<Option<bytes::Bytes>, String>) -> Result<String, String> {
    let value = payload.as_ref().map_err(Clone::clone)?;
    let Some(value) = value else { return Err("the record has no payload: it is a tombstone".to_owned()) };
    fs::write(file, value).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    Ok(format!("{} written to {}", human::count(value.len() as u64, "byte", "bytes"), file.display()))
}
