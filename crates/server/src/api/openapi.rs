//! What can be asked and done, as an OpenAPI document.

use redrive_letters::query::Filter;
use serde_json::{Map, Value, json};

use super::schemas;

/// Something that can be asked or done, as the document tells it.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// Whether letters can be asked for by what they have in common.
    filter: bool,
    /// Parameters in the address: name, what it means.
    query: &'static [(&'static str, &'static str)],
    /// Members of the body: name, type, what it means.
    body: &'static [(&'static str, &'static str, &'static str)],
    /// What is answered when it goes well: the status, and the type or, where it is JSON, the schema.
    good: &'static [(&'static str, Good)],
}

/// What an answer is.
enum Good {
    /// JSON of this schema.
    Of(&'static str),
    /// JSON that is not told in detail.
    Json,
    /// Bytes.
    Bytes,
    /// Nothing.
    Nothing,
}

const JSON: &[(&str, Good)] = &[("200", Good::Json)];
const REASON: (&str, &str, &str) = ("reason", "string", "why; it is written into the journal");
const SELECTION: (&str, &str, &str) = ("query", "query", "which letters");
const ALL: (&str, &str, &str) = ("all", "boolean", "all letters, where no query narrows them");
const DRY_RUN: (&str, &str, &str) = ("dry_run", "boolean", "only say what would happen, and to how many");
const GROUP: (&str, &str) = ("group", "the consumer group, where several consume the topic");

const fn asked(path: &'static str, summary: &'static str) -> Operation {
    Operation { method: "get", path, summary, filter: false, query: &[], body: &[], good: JSON }
}

const fn done(
    path: &'static str,
    summary: &'static str,
    body: &'static [(&'static str, &'static str, &'static str)],
) -> Operation {
    Operation { method: "post", path, summary, filter: false, query: &[], body, good: JSON }
}

const OPERATIONS: &[Operation] = &[
    asked("/api/v1/openapi.json", "This document"),
    asked("/api/v1/subscriptions", "The subscriptions of this process"),
    asked("/api/v1/subscriptions/{topic}/{group}", "One of them"),
    Operation {
        filter: true,
        query: &[
            ("limit", "at most so many, up to 1000; 100 if it is not given"),
            ("cursor", "go on from where another list ended: its `next`"),
            ("sort", "newest, oldest or attempts"),
        ],
        good: &[("200", Good::Of("letters"))],
        ..asked("/api/v1/letters", "Letters, the newest first; without `state` only open ones")
    },
    Operation {
        good: &[("200", Good::Of("letter_in_full"))],
        ..asked("/api/v1/letters/{topic}/{partition}/{offset}", "Everything about one letter")
    },
    Operation {
        good: &[("200", Good::Bytes), ("204", Good::Nothing)],
        ..asked(
            "/api/v1/letters/{topic}/{partition}/{offset}/payload",
            "Its payload, byte for byte; 204 if it has none",
        )
    },
    Operation {
        good: &[("200", Good::Of("resolved"))],
        ..done(
            "/api/v1/letters/resolve",
            "Letters need nothing more; lanes that they closed are opened",
            &[
                SELECTION,
                ALL,
                DRY_RUN,
                (
                    "tombstone_source",
                    "boolean",
                    "tombstones into the compacted topics that the letters came from, too",
                ),
                ("bury_followers", "boolean", "what waits behind the letters becomes letters, too"),
                REASON,
            ],
        )
    },
    Operation {
        filter: true,
        query: &[("all", "true: those without open letters, too"), ("limit", "at most so many")],
        good: &[("200", Good::Of("groups"))],
        ..asked("/api/v1/groups", "Failures by their cause, the most open letters first")
    },
    Operation {
        good: &[("200", Good::Of("group"))],
        ..done(
            "/api/v1/groups/{id}",
            "Says of a failure group that it is muted, resolved or open",
            &[("state", "string", "muted, resolved or open"), REASON],
        )
    },
    Operation {
        filter: true,
        query: &[("by", "hour, day, error, topic or group")],
        good: &[("200", Good::Of("stats"))],
        ..asked("/api/v1/stats", "Letters in numbers")
    },
    Operation {
        query: &[("all", "true: also jobs that send nothing, and those that withdrew")],
        good: &[("200", Good::Of("replays"))],
        ..asked("/api/v1/replays", "The jobs, the newest last")
    },
    Operation {
        good: &[("200", Good::Of("plan")), ("202", Good::Of("plan"))],
        ..done(
            "/api/v1/replays",
            "Sends letters back, as a job that runs in this process; 202 with its id, or 200 for a dry run",
            &[
                SELECTION,
                ALL,
                ("to", "string", "usual, retry, origin or the name of a topic"),
                DRY_RUN,
                ("rate", "string", "at most so fast: 50/s, 3000/m"),
                ("canary", "integer", "so many first, and the others only if those went well"),
                ("canary_wait", "string", "how long to wait for what becomes of those: 30s, 5m"),
                ("max_failed", "number", "pause when more of a hundred fail again; 20 if it is not given"),
                ("max_replays", "integer", "a letter that was sent back so often is left out"),
                ("again", "boolean", "send letters again that another job has sent"),
                ("ahead", "boolean", "send letters though the letter that they followed is not sent"),
                ("without_followers", "boolean", "leave letters alone that followed these into the letters"),
                REASON,
            ],
        )
    },
    Operation {
        good: &[("200", Good::Of("replay"))],
        ..asked("/api/v1/replays/{id}", "One job, and the letters that did not go well")
    },
    Operation {
        good: &[("200", Good::Of("replay"))],
        ..done("/api/v1/replays/{id}/pause", "Has a job wait, wherever it runs", &[REASON])
    },
    Operation {
        good: &[("200", Good::Of("replay"))],
        ..done(
            "/api/v1/replays/{id}/resume",
            "Lets a job go on, in this process; one that pauses because of its first letters sends the others",
            &[REASON],
        )
    },
    Operation {
        good: &[("200", Good::Of("replay"))],
        ..done("/api/v1/replays/{id}/cancel", "Ends a job where it is", &[REASON])
    },
    Operation {
        query: &[
            ("topic", "the source topic"),
            ("group", "the consumer group"),
            ("key", "the key, as text or as 0x and hexadecimal digits"),
            ("lane", "the business key"),
            ("due_before", "due before this time: 2026-11-01T06:00:00Z, 10m from now"),
            ("due_after", "due at this time or after it"),
            ("limit", "at most so many; 100 if it is not given"),
        ],
        good: &[("200", Good::Of("delayed"))],
        ..asked("/api/v1/delayed", "What waits on the shelves, the first due first")
    },
    Operation {
        query: &[GROUP],
        good: &[("200", Good::Of("ordered")), ("202", Good::Of("ordered"))],
        ..done(
            "/api/v1/delayed/{topic}/{partition}/{offset}/release",
            "Has a waiting record be due now",
            &[REASON],
        )
    },
    Operation {
        query: &[GROUP],
        good: &[("200", Good::Of("ordered")), ("202", Good::Of("ordered"))],
        ..done(
            "/api/v1/delayed/{topic}/{partition}/{offset}/reschedule",
            "Has a waiting record be due at another time",
            &[("due", "string", "2026-11-01T06:00:00Z, or 10m for ten minutes from now"), REASON],
        )
    },
    Operation {
        query: &[GROUP],
        good: &[("200", Good::Of("ordered")), ("202", Good::Of("ordered"))],
        ..done(
            "/api/v1/delayed/{topic}/{partition}/{offset}/cancel",
            "Has a waiting record become a dead letter",
            &[REASON],
        )
    },
];

/// The whole document.
pub(super) fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.shown();
    }
    let mut known: Map<String, Value> = schemas::all().collect();
    known.extend([("problem".to_owned(), problem()), ("query".to_owned(), query())]);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Redrive",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Dead letters, failure groups, replays and waiting records of a process of Redrive.",
        },
        "paths": paths,
        "security": [{}, { "token": [] }],
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": known,
        },
    })
}

impl Operation {
    fn shown(&self) -> Value {
        let in_path = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let mut parameters: Vec<Value> = in_path
            .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
            .collect();
        let filter: &[(&str, &str)] = if self.filter { &Filter::NAMES } else { &[] };
        parameters.extend(self.query.iter().chain(filter).map(|(name, what)| {
            json!({ "name": name, "in": "query", "description": what, "schema": { "type": "string" } })
        }));
        let mut responses: Map<String, Value> = Map::new();
        for (status, good) in self.good {
            let content = match good {
                Good::Of(name) => json!({ "application/json": { "schema": schemas::named(name) } }),
                Good::Json => json!({ "application/json": { "schema": { "type": "object" } } }),
                Good::Bytes => json!({ "application/octet-stream": {} }),
                Good::Nothing => json!({}),
            };
            responses.insert((*status).to_owned(), json!({ "description": "done", "content": content }));
        }
        let wrong = json!({ "$ref": "#/components/schemas/problem" });
        let wrong = json!({ "application/problem+json": { "schema": wrong } });
        let wrong = json!({ "description": "why not, and what mends it", "content": wrong });
        responses.insert("default".to_owned(), wrong);
        let mut value = json!({ "summary": self.summary, "parameters": parameters, "responses": responses });
        if self.method == "post" {
            let schema = members(self.body.iter().map(|(name, kind, what)| {
                let schema = match *kind {
                    "query" => json!({ "$ref": "#/components/schemas/query" }),
                    kind => json!({ "type": kind, "description": what }),
                };
                (*name, schema)
            }));
            value["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
        }
        value
    }
}

fn members<'a>(members: impl Iterator<Item = (&'a str, Value)>) -> Value {
    let properties: Map<String, Value> = members.map(|(name, value)| (name.to_owned(), value)).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn query() -> Value {
    let one = json!({ "type": ["string", "number"] });
    let some = |what: &str| json!({ "description": what, "anyOf": [one, { "type": "array", "items": one }] });
    members(Filter::NAMES.iter().map(|(name, what)| (*name, some(what))))
}

fn problem() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": { "type": text, "title": text, "status": { "type": "integer" }, "detail": text },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_document_tells_of_every_route_and_of_no_other() {
        let there: BTreeSet<(String, String)> = crate::api::routes()
            .iter()
            .map(|route| (route.method.to_owned(), route.path.replace("{*", "{")))
            .collect();
        let document = document();
        let told = document["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone()))
        });
        assert_eq!(told.collect::<BTreeSet<_>>(), there);
        assert_eq!(OPERATIONS.len(), there.len(), "each once");
    }

    /// Every `$ref` in a document.
    fn refs(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(ToOwned::to_owned));
                members.values().for_each(|value| refs(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| refs(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[test]
    fn every_answer_about_letters_groups_replays_and_what_waits_has_a_schema_that_is_there() {
        let document = document();
        for operation in OPERATIONS {
            let is_meant = ["letters", "groups", "stats", "replays", "delayed"]
                .iter()
                .any(|name| operation.path.starts_with(&format!("/api/v1/{name}")));
            let told = operation.good.iter().all(|(_, good)| !matches!(good, Good::Json));
            assert!(!is_meant || told, "{}", operation.path);
        }
        let mut found = BTreeSet::new();
        refs(&document, &mut found);
        for name in found {
            let path = name.strip_prefix('#').unwrap();
            assert!(document.pointer(path).is_some_and(Value::is_object), "{name}");
        }
    }

    #[test]
    fn a_schema_has_every_member_that_is_answered() {
        use redrive_letters::export;
        use redrive_letters::replay::Plan;
        let plan = export::plan(&Plan::default(), 0);
        let told = schemas::members("plan");
        for name in plan.as_object().unwrap().keys() {
            assert!(told.contains(&name.as_str()), "{name}");
        }
    }
}
