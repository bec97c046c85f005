//! The reference page, from the same description that reads the file.

use std::fmt::Write;

use redrive_core::Class;

use crate::typed::{Field, File, Need, Shape, Table, Typed};

const HEAD: &str = "# Configuration\n\n\
    <!-- Made by `redrive schema --format markdown`; a test fails when it is stale. -->\n\n\
    One TOML file, named by `-c FILE`, else by `REDRIVE_CONFIG`, else `redrive.toml` in the current folder. \
    `redrive check` reports every problem at once, each at its place. `redrive schema` prints a JSON schema for editors.\n\n\
    In every text `${NAME}` stands for an environment variable and `${NAME:-default}` for one that may be unset or empty; \
    `$${` stands for `${` itself. Wherever a class is named, its acronym is read too: ";

/// The reference page in Markdown.
#[must_use]
pub fn reference() -> String {
    let aliases: Vec<_> = Class::ALL.iter().map(|c| format!("`{}` ({})", c.name(), c.alias())).collect();
    let mut page = format!("{HEAD}{}.\n", aliases.join(", "));
    if let Shape::Table(file) = File::shape() {
        for field in &file.fields {
            section(&mut page, field.key, field);
        }
    }
    page.push_str(GRAMMARS);
    page
}

const GRAMMARS: &str = "\n## Policies\n\n\
    | written | meaning |\n|---|---|\n\
    | `never` | not tried again |\n\
    | `exponential(1s..60s x2)` | 1 s, then twice as long each time up to 60 s, without end |\n\
    | `exponential(1s..60s x2, 120)` | the same, 120 delays |\n\
    | `list(5s x3, 15s x5, 60s)` | these delays, each as often as it says |\n\
    | `... for 1h` | given up when the next try would come later than this after the first failure |\n\
    | `... jitter 10%` | each delay up to 10% longer or shorter, the same for the same record |\n\n\
    Durations are `250ms`, `5s`, `2m`, `1h`, `3d`. The spellings `UnlimitedExponentialRetryPolicy(1,60,2)` and \
    `LimitedExponentialRetryPolicy(1,60,2,120)` (seconds) and `FixedDelayRetryPolicy(5000x3, 15000x5)` (milliseconds) \
    are read too. `redrive explain 'POLICY'` shows the schedule.\n";

fn section(page: &mut String, path: &str, field: &Field) {
    let (table, path) = match (field.shape)() {
        Shape::Table(table) => (table, path.to_owned()),
        Shape::List(inner) => match *inner {
            Shape::Table(table) => (table, format!("[{path}]")),
            _ => return,
        },
        _ => return,
    };
    let _ = write!(
        page,
        "\n## `[{path}]`\n\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
        table.doc
    );
    rows(page, "", &table);
    let plain = path.trim_matches(['[', ']']).to_owned();
    for inner in table.fields.iter().filter(|inner| inner.key == "classify") {
        // Both levels have the same rules; they are explained once.
        if plain == "defaults" {
            section(page, &format!("{plain}.{}", inner.key), inner);
        }
    }
}

fn rows(page: &mut String, prefix: &str, table: &Table) {
    for field in &table.fields {
        let key = format!("{prefix}{}", field.key);
        let shape = (field.shape)();
        if let Shape::Table(inner) = &shape {
            rows(page, &format!("{key}."), inner);
            continue;
        }
        let need = match field.need {
            Need::Required => "required".to_owned(),
            Need::Default(default) if default.starts_with("that of") => default.to_owned(),
            Need::Default(default) => format!("`{default}`"),
            Need::Optional => String::new(),
        };
        let key = if matches!(shape, Shape::ByClass(_)) { format!("{key}.CLASS") } else { key };
        let _ = writeln!(page, "| `{key}` | {} | {need} | {} |", value(&shape), field.doc);
    }
}

fn value(shape: &Shape) -> String {
    match shape {
        Shape::Table(_) => "a table".to_owned(),
        Shape::Properties | Shape::Named => "names and values".to_owned(),
        Shape::ByClass(inner) => value(inner),
        Shape::List(inner) if matches!(**inner, Shape::Table(_)) => "a list of tables".to_owned(),
        Shape::List(inner) => format!("a list, each {}", value(inner)),
        Shape::Text { what: "a text", .. } => "a text".to_owned(),
        Shape::Text { what, examples } => format!("{what}, such as {}", quoted(examples)),
        Shape::Choice(names) => {
            let plain = names.iter().filter(|name| !name.chars().all(char::is_uppercase));
            quoted(&plain.map(ToString::to_string).collect::<Vec<_>>())
        }
        Shape::Count => "a number from 1 on".to_owned(),
        Shape::Size => "a number of bytes from 1 on".to_owned(),
        Shape::Ratio => "a number from 0 to 1".to_owned(),
        Shape::Flag => "`true` or `false`".to_owned(),
    }
}

fn quoted(texts: &[String]) -> String {
    let quoted: Vec<_> = texts.iter().map(|text| format!("`\"{text}\"`")).collect();
    quoted.join(", ")
}
