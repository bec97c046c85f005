//! `${NAME}` and `${NAME:-default}` in a text; `$${` stands for `${` itself.

use std::ops::Range;

type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A text with its variables filled in, or what is wrong with it and where.
pub(crate) struct Filled {
    pub(crate) text: String,
    /// The variables that were filled in.
    pub(crate) names: Vec<String>,
}

pub(crate) struct BadVariable {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: String,
}

pub(crate) fn fill(text: &str, variables: Variables<'_>) -> Result<Filled, Vec<BadVariable>> {
    let mut filled = Filled { text: String::new(), names: Vec::new() };
    let mut bad = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${").map(|found| at + found) {
        if text[at..found].ends_with('$') {
            filled.text.push_str(&text[at..found - 1]);
            filled.text.push_str("${");
            at = found + 2;
            continue;
        }
        filled.text.push_str(&text[at..found]);
        let Some(end) = text[found..].find('}').map(|end| found + end + 1) else {
            bad.push(unclosed(found..text.len()));
            return Err(bad);
        };
        match value(&text[found + 2..end - 1], variables) {
            Ok((name, value)) => {
                filled.text.push_str(&value);
                filled.names.push(name);
            }
            Err((message, help)) => bad.push(BadVariable { span: found..end, message, help }),
        }
        at = end;
    }
    filled.text.push_str(&text[at..]);
    if bad.is_empty() { Ok(filled) } else { Err(bad) }
}

fn value(inside: &str, variables: Variables<'_>) -> Result<(String, String), (String, String)> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let legal = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !legal {
        return Err((
            "not the name of a variable".to_owned(),
            "write ${NAME} or ${NAME:-default}".to_owned(),
        ));
    }
    if default.is_some_and(|default| default.contains("${")) {
        let help = "write one variable, or the default itself".to_owned();
        return Err(("a default cannot hold another variable".to_owned(), help));
    }
    let value = variables(name).filter(|value| default.is_none() || !value.is_empty());
    match value.or_else(|| default.map(ToOwned::to_owned)) {
        Some(value) => Ok((name.to_owned(), value)),
        None => Err((
            format!("the environment variable `{name}` is not set"),
            format!("set {name}, or write ${{{name}:-default}}"),
        )),
    }
}

fn unclosed(span: Range<usize>) -> BadVariable {
    BadVariable {
        span,
        message: "`${` is not closed".to_owned(),
        help: "write ${NAME}, or $${ for the two characters themselves".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(text: &str) -> Result<String, Vec<Range<usize>>> {
        let variables = |name: &str| match name {
            "USER" => Some("ada".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let filled = fill(text, &variables).map(|filled| filled.text);
        filled.map_err(|bad| bad.into_iter().map(|bad| bad.span).collect())
    }

    #[test]
    fn variables_are_filled_in_and_missing_ones_are_all_named() {
        assert_eq!(filled("a ${USER} b"), Ok("a ada b".to_owned()));
        assert_eq!(filled("${GROUP:-g}${USER:-x}"), Ok("gada".to_owned()));
        assert_eq!(filled("${EMPTY}|${EMPTY:-d}"), Ok("|d".to_owned()));
        assert_eq!(filled("$${USER} $5 {x}"), Ok("${USER} $5 {x}".to_owned()));
        assert_eq!(filled("${ONE} and ${TWO}"), Err(vec![0..6, 11..17]));
        assert_eq!(filled("a ${USER"), Err(vec![2..8]));
        assert_eq!(filled("${}${a b}"), Err(vec![0..3, 3..9]));
        assert_eq!(filled("${PW:-${USER}}"), Err(vec![0..13]));
    }

    proptest! {
        #[test]
        fn any_text_is_filled_or_refused_at_places_in_it(text in "([$][{]|[}]|:-|\\PC){0,20}") {
            if let Err(spans) = filled(&text) {
                prop_assert!(spans.into_iter().all(|span| text.get(span).is_some()));
            }
        }
    }
}
