//! Blanks out what must not be shown when a line of the file is printed.
//!
//! Works on the text, not on what was read from it, because a file with a syntax error is shown too.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Parts of names whose values are secret.
const SECRET: &str = r"password|passwd|passphrase|secret|token|credential|jaas|private|authorization|api-?key|key[._-]pem|ssl\.key";

static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| {
    let name = format!(r#"(?i)(?:["']?[\w.-]*(?:{SECRET})[\w.-]*["']?)"#);
    let value = r#"(?s:"""(?:.*?""")|'''(?:.*?'''))|"(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|[^,}\n]*"#;
    Regex::new(&format!(r"{name}\s*=\s*(?<secret>{value})")).expect("a constant expression")
});

static IN_URL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"://[^/@\s"':]*:(?<secret>[^/@\s"']+)@"#).expect("a constant expression"));

static ONE_VARIABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"^["']?\$\{\w+\}["']?\s*$"#).expect("a constant expression"));

/// The text with every secret replaced, byte for byte, so that places stay what they are.
pub(crate) fn blank(text: &str) -> String {
    let blanked = ASSIGNED.replace_all(text, blank_capture);
    IN_URL.replace_all(&blanked, blank_capture).into_owned()
}

fn blank_capture(found: &Captures<'_>) -> String {
    let (whole, secret) = (found.get_match(), &found["secret"]);
    // A variable is only named, not spelt out; seeing which one helps.
    if ONE_VARIABLE.is_match(secret) {
        return whole.as_str().to_owned();
    }
    let stars: String = secret.bytes().map(|byte| if byte == b'\n' { '\n' } else { '*' }).collect();
    let start = found.name("secret").map_or(0, |secret| secret.start() - whole.start());
    let end = start + secret.len();
    format!("{}{stars}{}", &whole.as_str()[..start], &whole.as_str()[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_blanked_wherever_they_stand() {
        let texts = [
            r#"properties = { "sasl.password" = "hunter2", x = 1 }"#,
            r#""sasl.password" = 'hunter2'"#,
            r#""ssl.key.password" = "hunter2"#,
            "\"ssl.key.pem\" = \"\"\"\n-----BEGIN\nhunter2\n\"\"\"",
            r#"url = "http://user:hunter2@localhost/""#,
            r#"sasl.password = hunter2"#,
            r#"token = "${T:-hunter2}""#,
            r#""sasl.jaas.config" = "x \"hunter2\" y""#,
        ];
        for text in texts {
            let blanked = blank(text);
            assert!(!blanked.contains("hunter2"), "{blanked}");
            assert_eq!(blanked.len(), text.len());
        }
        let other = r#"properties = { "sasl.password" = "p", "client.id" = "shown" }"#;
        assert!(blank(other).contains("shown"));
        assert_eq!(blank(r#""sasl.password" = "${PW}""#), r#""sasl.password" = "${PW}""#);
    }
}
