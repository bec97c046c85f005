//! Something that is wrong: what, where, and the command that mends it.

use serde_json::{Value, json};

pub(super) struct Trouble {
    /// What kind it is, in a word.
    pub(super) kind: String,
    /// A subscription, a topic or a job.
    pub(super) place: String,
    pub(super) what: String,
    pub(super) remedy: String,
}

impl Trouble {
    pub(super) fn value(&self) -> Value {
        let Self { kind, place, what, remedy } = self;
        json!({ "kind": kind, "where": place, "what": what, "remedy": remedy })
    }
}
