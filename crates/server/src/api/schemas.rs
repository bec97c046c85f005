//! What is answered, as schemas of the OpenAPI document. The names are those of the JSON that the command line shows.

use serde_json::{Map, Value, json};

/// A member of an answer: its name and its type. `?` says that it may be null, `[]` that it is a list; `#` names
/// another of these schemas.
type Member = (&'static str, &'static str);

/// What is known of a letter, in a list.
const LETTER: &[Member] = &[
    ("id", "string"),
    ("topic", "string"),
    ("partition", "integer"),
    ("offset", "integer"),
    ("time", "string"),
    ("time_ms", "integer"),
    ("dialect", "string"),
    ("source", "object"),
    ("group", "string?"),
    ("class", "string?"),
    ("reason", "string?"),
    ("error_type", "string?"),
    ("error_message", "string?"),
    ("failure", "string"),
    ("attempts", "integer"),
    ("replays", "integer"),
    ("leader", "integer?"),
    ("size", "integer"),
    ("tombstone", "boolean"),
    ("pointer", "boolean"),
    ("state", "string"),
    ("job", "string?"),
    ("outcome", "string?"),
    ("key", "string?"),
    ("key_base64", "string"),
    ("lane", "string?"),
    ("lane_base64", "string"),
];

const LETTERS: &[Member] = &[("letters", "#letter[]"), ("total", "integer?"), ("next", "string?")];

/// Everything about one letter.
const WHOLE: &[Member] = &[
    ("id", "string"),
    ("dialect", "string"),
    ("state", "string?"),
    ("job", "string?"),
    ("outcome", "string?"),
    ("failure", "string"),
    ("time", "string"),
    ("time_ms", "integer"),
    ("source", "object"),
    ("group", "string?"),
    ("class", "string?"),
    ("reason", "string?"),
    ("error_type", "string?"),
    ("error_message", "string?"),
    ("error_chain", "object[]"),
    ("error_stack", "string?"),
    ("attempts", "integer?"),
    ("history", "object[]"),
    ("leader", "string?"),
    ("service", "string?"),
    ("instance", "string?"),
    ("handler", "string?"),
    ("content_type", "string?"),
    ("replays", "integer"),
    ("replay", "string?"),
    ("replayed_at", "string?"),
    ("pointer", "string?"),
    ("pointer_expires", "string?"),
    ("tombstone", "boolean"),
    ("size", "integer?"),
    ("problems", "string[]"),
    ("timeline", "#event[]"),
    ("links", "object"),
    ("followers", "string[]"),
    ("same_lane", "string[]"),
    ("same_error", "string[]"),
    ("key", "string?"),
    ("key_base64", "string"),
    ("lane", "string?"),
    ("lane_base64", "string"),
    ("headers", "object[]"),
    ("payload", "string?"),
    ("payload_base64", "string"),
    ("payload_missing", "string"),
];

const EVENT: &[Member] = &[("at", "string"), ("kind", "string"), ("what", "string")];

const RESOLVED: &[Member] = &[
    ("would_resolve", "integer"),
    ("id", "string"),
    ("resolved", "integer"),
    ("tombstones", "integer"),
    ("without_tombstone", "integer"),
    ("source_tombstones", "integer"),
    ("held", "integer"),
    ("lanes", "object[]"),
];

const GROUP: &[Member] = &[
    ("id", "string"),
    ("state", "string"),
    ("source", "string"),
    ("group", "string?"),
    ("letter_topics", "string[]"),
    ("error_type", "string?"),
    ("error_message", "string?"),
    ("open", "integer"),
    ("letters", "integer"),
    ("keys", "integer"),
    ("first", "string"),
    ("last", "string"),
    ("hours", "object[]"),
    ("said", "object?"),
];

const GROUPS: &[Member] = &[("groups", "#group[]"), ("total", "integer")];

const STATS: &[Member] = &[("stats", "#bar[]")];

const BAR: &[Member] = &[("letters", "integer"), ("open", "integer"), ("from", "string"), ("name", "string")];

const REPLAY: &[Member] = &[
    ("id", "string"),
    ("kind", "string"),
    ("state", "string"),
    ("by", "string"),
    ("reason", "string"),
    ("began", "string"),
    ("query", "string"),
    ("to", "string"),
    ("options", "object"),
    ("letters", "integer"),
    ("sent", "integer"),
    ("skipped", "integer"),
    ("handled", "integer"),
    ("buried", "integer"),
    ("waiting", "integer"),
    ("dropped", "integer"),
    ("refused", "integer"),
    ("unheard", "integer"),
    ("silent", "integer"),
    ("wish", "object?"),
    ("end", "object?"),
    ("runs_here", "boolean"),
    ("not_well", "object[]"),
    ("whys", "object[]"),
];

const REPLAYS: &[Member] = &[("replays", "#replay[]")];

/// What a replay does, or would do.
const PLAN: &[Member] = &[
    ("id", "string"),
    ("letters", "integer"),
    ("matched", "integer"),
    ("would_send", "integer"),
    ("to", "#count[]"),
    ("left_out", "#count[]"),
    ("unheard", "#count[]"),
    ("ahead_of_leaders", "integer"),
    ("leaders_missing", "string[]"),
    ("lanes_not_held", "object[]"),
];

const COUNT: &[Member] = &[("what", "string"), ("letters", "integer")];

const WAITING: &[Member] = &[
    ("origin", "string"),
    ("topic", "string"),
    ("partition", "integer"),
    ("offset", "integer"),
    ("group", "string?"),
    ("due", "string"),
    ("due_ms", "integer"),
    ("earliest", "string?"),
    ("since", "string?"),
    ("attempts", "integer?"),
    ("replays", "integer?"),
    ("class", "string?"),
    ("error_type", "string?"),
    ("error_message", "string?"),
    ("standing", "string"),
    ("behind", "integer?"),
    ("letter", "integer?"),
    ("cancelled", "boolean"),
    ("size", "integer?"),
    ("shelf_offset", "integer"),
    ("key", "string?"),
    ("key_hex", "string"),
    ("lane", "string?"),
    ("lane_hex", "string"),
];

const DELAYED: &[Member] = &[("records", "#waiting[]"), ("shelves", "object[]")];

const ORDERED: &[Member] = &[
    ("origin", "string"),
    ("group", "string"),
    ("deed", "string"),
    ("outcome", "string"),
    ("text", "string"),
];

const SCHEMAS: &[(&str, &[Member])] = &[
    ("letter", LETTER),
    ("letters", LETTERS),
    ("letter_in_full", WHOLE),
    ("event", EVENT),
    ("resolved", RESOLVED),
    ("group", GROUP),
    ("groups", GROUPS),
    ("stats", STATS),
    ("bar", BAR),
    ("replay", REPLAY),
    ("replays", REPLAYS),
    ("plan", PLAN),
    ("count", COUNT),
    ("waiting", WAITING),
    ("delayed", DELAYED),
    ("ordered", ORDERED),
];

/// All of them, by name.
pub(super) fn all() -> impl Iterator<Item = (String, Value)> {
    SCHEMAS.iter().map(|(name, members)| {
        let properties: Map<String, Value> =
            members.iter().map(|(name, kind)| ((*name).to_owned(), schema(kind))).collect();
        ((*name).to_owned(), json!({ "type": "object", "properties": properties }))
    })
}

/// One of them, where it is meant.
pub(super) fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn schema(kind: &str) -> Value {
    if let Some(one) = kind.strip_suffix("[]") {
        return json!({ "type": "array", "items": schema(one) });
    }
    if let Some(name) = kind.strip_prefix('#') {
        return named(name);
    }
    match kind.strip_suffix('?') {
        Some(kind) => json!({ "type": [kind, "null"] }),
        None => json!({ "type": kind }),
    }
}

#[cfg(test)]
pub(super) fn members(name: &str) -> Vec<&'static str> {
    let found = SCHEMAS.iter().find(|(one, _)| *one == name);
    found.map(|(_, members)| members.iter().map(|(name, _)| *name).collect()).unwrap_or_default()
}
