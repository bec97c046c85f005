//! A plan for people and for programs.

use std::fmt::Write;

use redrive::topics::{Change, Note, Plan, Step};
use serde_json::{Value, json};

use crate::human;

/// What happens to a topic, in a word.
pub(super) fn verb(step: &Step) -> &'static str {
    match step.change {
        Change::Create { .. } => "create",
        Change::AddPartitions { .. } => "grow",
        Change::Alter { .. } => "alter",
        Change::Cannot { .. } => "cannot",
    }
}

/// A step on one line, without its reason.
pub(super) fn line(step: &Step) -> String {
    let what = match &step.change {
        Change::Create { partitions, replication, .. } => {
            let partitions = human::count(u64::from(partitions.unsigned_abs()), "partition", "partitions");
            format!("{partitions}, replication factor {replication}")
        }
        Change::AddPartitions { from, to } => format!("partitions {from} -> {to}"),
        Change::Alter { setting, from, to } => {
            format!("{setting} {} -> {to}", from.as_deref().unwrap_or("unknown"))
        }
        Change::Cannot { .. } => "be mended from here".to_owned(),
    };
    format!("{:<7} {}  {what}", verb(step), step.topic)
}

pub(super) fn table(plan: &Plan) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        let _ = writeln!(text, "{}", line(step));
        if let Change::Create { settings, .. } = &step.change {
            for (setting, value) in settings {
                let _ = writeln!(text, "        {setting}={value}");
            }
        }
        let _ = writeln!(text, "        because {}", step.why);
        if let Change::Cannot { remedy } = &step.change {
            let _ = writeln!(text, "        remedy: {remedy}");
        }
    }
    if plan.is_done() {
        text.push_str("nothing to do\n");
    }
    if !plan.notes.is_empty() {
        text.push('\n');
    }
    for note in &plan.notes {
        let _ = writeln!(text, "note    {note}");
    }
    text
}

pub(super) fn plan(plan: &Plan) -> Value {
    json!({
        "done": plan.is_done(),
        "steps": plan.steps.iter().map(step).collect::<Vec<_>>(),
        "notes": plan.notes.iter().map(note).collect::<Vec<_>>(),
    })
}

pub(super) fn step(step: &Step) -> Value {
    let mut value = match &step.change {
        Change::Create { partitions, replication, settings } => {
            json!({ "partitions": partitions, "replication": replication, "settings": settings })
        }
        Change::AddPartitions { from, to } => json!({ "from": from, "to": to }),
        Change::Alter { setting, from, to } => json!({ "setting": setting, "from": from, "to": to }),
        Change::Cannot { remedy } => json!({ "remedy": remedy }),
    };
    value["change"] = verb(step).into();
    value["topic"] = step.topic.as_str().into();
    value["why"] = step.why.as_str().into();
    value
}

fn note(note: &Note) -> Value {
    let mut value = match note {
        Note::LettersAreDeleted { topic, setting, value } => {
            json!({ "note": "letters-are-deleted", "topic": topic.as_str(), "setting": setting, "value": value })
        }
        Note::LettersAreCompacted { topic, policy } => {
            json!({ "note": "letters-are-compacted", "topic": topic.as_str(), "policy": policy })
        }
        Note::MorePartitions { topic, partitions, source, of_source } => json!({
            "note": "more-partitions",
            "topic": topic.as_str(),
            "partitions": partitions,
            "source": source.as_str(),
            "of_source": of_source,
        }),
        Note::LeftBehind { topic, group, group_is_known, records } => json!({
            "note": "left-behind",
            "topic": topic.as_str(),
            "group": group,
            "group_is_known": group_is_known,
            "records": records,
        }),
    };
    value["text"] = note.to_string().into();
    value
}
