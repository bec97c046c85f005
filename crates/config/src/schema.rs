//! The JSON schema of the file, for editors, from the same description that reads it.

use redrive_core::Class;
use serde_json::{Map, Value, json};

use crate::typed::{Field, File, Need, Shape, Typed};

/// The schema of the configuration file.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = of(&File::shape());
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("redrive.toml");
    schema
}

fn of(shape: &Shape) -> Value {
    match shape {
        Shape::Table(table) => {
            let required: Vec<_> =
                table.fields.iter().filter(|f| f.need == Need::Required).map(|f| f.key).collect();
            let keys: Map<String, Value> = table.fields.iter().map(|f| (f.key.to_owned(), key(f))).collect();
            json!({
                "type": "object",
                "description": table.doc,
                "additionalProperties": false,
                "required": required,
                "properties": keys,
            })
        }
        Shape::Properties => {
            json!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean", "object"] } })
        }
        Shape::Named => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Shape::ByClass(inner) => {
            let names = Class::ALL.into_iter().flat_map(|class| [class.name(), class.alias()]);
            let keys: Map<String, Value> = names.map(|name| (name.to_owned(), of(inner))).collect();
            json!({ "type": "object", "additionalProperties": false, "properties": keys })
        }
        Shape::List(inner) => json!({ "type": "array", "items": of(inner) }),
        Shape::Text { examples, .. } => json!({ "type": "string", "examples": examples }),
        // A variable may stand for any choice.
        Shape::Choice(names) => {
            json!({ "anyOf": [{ "enum": names }, { "type": "string", "pattern": "\\$\\{" }] })
        }
        Shape::Size => json!({ "type": "integer", "minimum": 1, "maximum": i64::MAX }),
        Shape::Count => json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
        Shape::Ratio => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Shape::Flag => json!({ "type": "boolean" }),
    }
}

fn key(field: &Field) -> Value {
    let mut schema = of(&(field.shape)());
    schema["description"] = json!(field.doc);
    if let Need::Default(default) = field.need {
        schema["description"] = json!(format!("{} Default: {default}.", field.doc));
    }
    schema
}
