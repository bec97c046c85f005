//! Addresses of logs and traces, filled with what a letter says.

use crate::Whole;

/// The address of a link for a letter; none if the letter does not say something that it needs.
pub(super) fn filled(template: &str, whole: &Whole) -> Option<String> {
    let mut address = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (place, after) = after.split_once('}')?;
        address.push_str(before);
        address.push_str(&encoded(&value(place, whole)?));
        rest = after;
    }
    address.push_str(rest);
    Some(address)
}

fn value(place: &str, whole: &Whole) -> Option<String> {
    let letter = &whole.letter;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match place {
        "topic" => Some(letter.source.topic.clone().unwrap_or_else(|| letter.at.topic.to_string())),
        "partition" => letter.source.partition.map(|partition| partition.to_string()),
        "offset" => letter.source.offset.map(|offset| offset.to_string()),
        "group" => letter.group.clone(),
        "key" => letter.key.as_deref().map(text),
        "service" => letter.service.clone(),
        "instance" => letter.instance.clone(),
        "handler" => letter.handler.clone(),
        "time" => Some(letter.time().to_string()),
        "error" => letter.error_type.clone(),
        place => {
            let name = place.strip_prefix("header:")?;
            whole.record.headers.last(name).map(|value| text(value))
        }
    }
}

/// As it may stand in an address.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Letter;
    use redrive_core::Record;

    #[test]
    fn a_link_is_filled_with_what_the_letter_says_or_left_out() {
        let headers =
            [("redrive-origin", "orders/3/1042"), ("redrive-service", "shop & co"), ("trace-id", "7f")];
        let record = Record {
            at: "orders.g.dlq/0/1".parse().unwrap(),
            timestamp: None,
            key: None,
            value: None,
            headers: headers.into_iter().map(|(name, value)| (name, Some(value))).collect(),
        };
        let whole = Whole { letter: Letter::read(&record), record };
        let link = |template: &str| filled(template, &whole);
        assert_eq!(
            link("https://logs/{service}?q={topic}/{offset}&t={header:trace-id}").as_deref(),
            Some("https://logs/shop%20%26%20co?q=orders/1042&t=7f")
        );
        assert_eq!(link("https://logs/{instance}"), None);
        assert_eq!(link("https://logs/").as_deref(), Some("https://logs/"));
    }
}
