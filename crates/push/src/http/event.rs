//! A record as the headers of a request: a CloudEvent in binary mode, and what Redrive says besides.

use std::borrow::Cow;

use hyper::header::HeaderValue;
use redrive::headers::Name;
use redrive::{Origin, Record, Timestamp};

use super::fields::Fields;
use crate::escape;

/// Trace context passes under its own names (W3C).
const TRACE: [&str; 3] = ["traceparent", "tracestate", "baggage"];
/// What the attributes of a CloudEvent begin with, in a record and in a request.
const IN_RECORD: &str = "ce_";
const IN_REQUEST: &str = "ce-";

/// A request cannot carry more headers than this, nor longer names.
const MOST_HEADERS: usize = 10_000;
const LONGEST_NAME: usize = 10_000;

/// Whether a request can carry the headers of this record.
pub(super) fn fits(record: &Record) -> bool {
    let headers = &record.headers;
    headers.iter().len() <= MOST_HEADERS && headers.iter().all(|header| header.name.len() <= LONGEST_NAME)
}

/// Where a record was first consumed by this group: where it stands, unless it was sent back since and says so.
pub(crate) fn origin(record: &Record, group: &str) -> Origin {
    let headers = &record.headers;
    let is_ours = headers.text(Name::Group.as_str()) == Some(group);
    let told = headers.text(Name::Origin.as_str()).filter(|_| is_ours);
    told.and_then(|origin| origin.parse().ok()).unwrap_or_else(|| record.at.clone())
}

/// The attributes of the CloudEvent that a record is, or is taken for, without the prefix; the first is its id.
pub(crate) fn attributes<'a>(record: &'a Record, origin: &Origin) -> Vec<(&'a str, Cow<'a, str>)> {
    let mut attributes = Vec::with_capacity(8);
    attributes.push(("id", Cow::Owned(origin.to_string())));
    if record.headers.text("ce_specversion").is_some() {
        let own = record.headers.iter().filter_map(|header| {
            let name = header.name.strip_prefix(IN_RECORD).filter(|name| is_attribute(name))?;
            Some((name, Cow::Borrowed(std::str::from_utf8(header.value.as_deref()?).ok()?)))
        });
        attributes.extend(own.filter(|(name, _)| *name != "id"));
    }
    let mut otherwise = |name: &'static str, value: Option<Cow<'a, str>>| {
        let Some(value) = value else { return };
        if !attributes.iter().any(|(taken, _)| *taken == name) {
            attributes.push((name, value));
        }
    };
    otherwise("specversion", Some("1.0".into()));
    otherwise("source", Some(["/kafka/", origin.topic.as_str()].concat().into()));
    otherwise("type", Some("redrive.record".into()));
    otherwise("time", record.timestamp.and_then(rfc3339).map(Cow::Owned));
    let key = record.key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
    otherwise("subject", key.filter(|key| !key.is_empty()).map(Cow::Borrowed));
    attributes
}

/// The name of an attribute in a request.
fn in_request(attribute: &str) -> Cow<'static, str> {
    Cow::Borrowed(match attribute {
        "id" => "ce-id",
        "source" => "ce-source",
        "specversion" => "ce-specversion",
        "subject" => "ce-subject",
        "time" => "ce-time",
        "type" => "ce-type",
        other => return [IN_REQUEST, other].concat().into(),
    })
}

/// Adds the headers of the request that carries this record alone.
pub(super) fn headers(record: &Record, origin: &Origin, attempt: u32, headers: &mut Fields) {
    for (name, value) in attributes(record, origin) {
        headers.put_escaped(&in_request(name), value.as_bytes());
    }
    headers.put("redrive-topic", origin.topic.as_str().as_bytes());
    headers.put_number("redrive-partition", origin.partition);
    headers.put_number("redrive-offset", origin.offset);
    headers.put_number("redrive-attempt", attempt);
    if let Some(key) = &record.key {
        headers.put_escaped("redrive-key", key);
    }
    match &record.value {
        Some(_) => headers.put("content-type", content_type(record).as_bytes()),
        None => headers.put("redrive-tombstone", b"true"),
    }
    if record.headers.iter().len() > 0 {
        users(record, headers);
    }
}

/// The record's own headers. A request keeps neither the order of different names nor their case, so a list of
/// the names says both.
fn users(record: &Record, headers: &mut Fields) {
    let (mut names, mut own) = (Vec::new(), Vec::new());
    for (number, header) in record.headers.iter().enumerate() {
        if number > 0 {
            names.push(b',');
        }
        let start = names.len();
        escape::append_name(&header.name, &mut names);
        match &header.value {
            Some(value) => {
                own.clear();
                own.extend_from_slice(b"redrive-header-");
                own.extend_from_slice(&names[start..]);
                headers.put_escaped(&String::from_utf8_lossy(&own), value);
            }
            None => names.extend_from_slice(b";null"),
        }
    }
    headers.put("redrive-headers", &names);
    for name in TRACE {
        for value in record.headers.all(name).flatten() {
            headers.put(name, value);
        }
    }
}

/// What the record says its value is.
pub(super) fn content_type(record: &Record) -> HeaderValue {
    let own = record.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("content-type")).last();
    let own = own.and_then(|header| header.value.as_deref()).filter(|value| !value.is_empty());
    own.and_then(|value| HeaderValue::from_bytes(value).ok())
        .unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

/// Attributes have letters and digits; what else begins with the prefix is a header like any other.
fn is_attribute(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// A time as CloudEvents writes it.
pub(crate) fn rfc3339(time: Timestamp) -> Option<String> {
    jiff::Timestamp::from_millisecond(time.millis()).ok().map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hyper::HeaderMap;
    use proptest::prelude::*;
    use redrive::headers::Headers;

    fn record(headers: Headers) -> Record {
        Record {
            at: "orders/3/7".parse().unwrap(),
            timestamp: Some(Timestamp::from_millis(1_800_000_000_123)),
            key: Some(Bytes::from_static("Köln 1".as_bytes())),
            value: Some(Bytes::from_static(b"{}")),
            headers,
        }
    }

    fn sent(record: &Record) -> HeaderMap {
        let mut fields = Fields::behind(b"", 0);
        headers(record, &origin(record, "g"), 2, &mut fields);
        fields.map()
    }

    fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
        headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[test]
    fn a_record_is_a_cloud_event() {
        let sent = sent(&record(Headers::default()));
        for (name, value) in [
            ("ce-specversion", "1.0"),
            ("ce-id", "orders/3/7"),
            ("ce-source", "/kafka/orders"),
            ("ce-type", "redrive.record"),
            ("ce-time", "2027-01-15T08:00:00.123Z"),
            ("ce-subject", "K%C3%B6ln%201"),
            ("redrive-topic", "orders"),
            ("redrive-partition", "3"),
            ("redrive-offset", "7"),
            ("redrive-key", "K%C3%B6ln%201"),
            ("redrive-attempt", "2"),
            ("content-type", "application/octet-stream"),
        ] {
            assert_eq!(text(&sent, name), Some(value), "{name}");
        }
        assert_eq!(sent.len(), 12, "{sent:?}");
    }

    #[test]
    fn a_record_that_is_a_cloud_event_keeps_all_but_its_id() {
        let own = [
            ("ce_specversion", "1.0"),
            ("ce_id", "theirs"),
            ("ce_source", "/shop"),
            ("ce_type", "order.made"),
            ("ce_tenant", "a b"),
            ("ce_Not_One", "x"),
            ("content-type", "application/json"),
        ];
        let sent = sent(&record(own.into_iter().map(|(name, value)| (name, Some(value))).collect()));
        for (name, value) in [
            ("ce-id", "orders/3/7"),
            ("ce-source", "/shop"),
            ("ce-type", "order.made"),
            ("ce-tenant", "a%20b"),
            ("content-type", "application/json"),
            ("redrive-header-ce_id", "theirs"),
        ] {
            assert_eq!(text(&sent, name), Some(value), "{name}");
        }
        assert_eq!(sent.get("ce-Not_One"), None);
    }

    #[test]
    fn headers_can_be_told_apart_and_put_in_order_again() {
        let mut own = Headers::default();
        for (name, value) in [
            ("b", Some(&b"1"[..])),
            ("a", Some(b"")),
            ("b", None),
            ("B", Some(b"\xff\x00")),
            ("b", Some(b"2, 3")),
            ("x y,z;", Some(b"odd")),
        ] {
            own.push(name, value.map(Bytes::from_static));
        }
        let sent = sent(&record(own));
        assert_eq!(text(&sent, "redrive-headers"), Some("b,a,b;null,B,b,x%20y%2Cz%3B"));
        let all: Vec<_> =
            sent.get_all("redrive-header-b").iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(all, ["1", "%FF%00", "2,%203"]);
        assert_eq!(text(&sent, "redrive-header-a"), Some(""));
        assert_eq!(text(&sent, "redrive-header-x%20y%2cz%3b"), Some("odd"));
    }

    #[test]
    fn null_is_not_empty_and_traces_pass() {
        let traced: Headers =
            [("traceparent", Some("00-1-2-01")), ("baggage", Some("k=v"))].into_iter().collect();
        let tombstone = Record { value: None, key: None, ..record(traced) };
        let sent = sent(&tombstone);
        assert_eq!(text(&sent, "redrive-tombstone"), Some("true"));
        assert_eq!((text(&sent, "content-type"), text(&sent, "redrive-key")), (None, None));
        assert_eq!((text(&sent, "traceparent"), text(&sent, "baggage")), (Some("00-1-2-01"), Some("k=v")));
        let empty = Record { value: Some(Bytes::new()), key: Some(Bytes::new()), ..tombstone };
        assert_eq!(text(&self::sent(&empty), "redrive-tombstone"), None);
        assert_eq!(text(&self::sent(&empty), "redrive-key"), Some(""));
    }

    fn unescaped(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut parts = text.split('%');
        bytes.extend_from_slice(parts.next().unwrap_or_default().as_bytes());
        for part in parts {
            bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
            bytes.extend_from_slice(&part.as_bytes()[2..]);
        }
        bytes
    }

    /// The headers of the record, as docs/http.md says to put them together.
    fn put_together(sent: &HeaderMap) -> Headers {
        let mut taken = std::collections::HashMap::<String, usize>::new();
        let mut headers = Headers::default();
        let names = text(sent, "redrive-headers").map(|names| names.split(',').collect::<Vec<_>>());
        for listed in names.unwrap_or_default() {
            let name = listed.strip_suffix(";null").unwrap_or(listed);
            let own = format!("redrive-header-{name}").to_lowercase();
            let value = (name == listed).then(|| {
                let next = taken.entry(own.clone()).or_default();
                *next += 1;
                let value = sent.get_all(&own).iter().nth(*next - 1).unwrap();
                Bytes::from(unescaped(value.to_str().unwrap()))
            });
            headers.push(String::from_utf8(unescaped(name)).unwrap(), value);
        }
        headers
    }

    proptest! {
        #[test]
        fn any_headers_survive(
            all in prop::collection::vec(
                ("[aA, ;%]{0,2}|\\PC{0,8}", prop::option::of(prop::collection::vec(any::<u8>(), 0..8))),
                0..12,
            ),
            key in prop::option::of(prop::collection::vec(any::<u8>(), 0..8)),
        ) {
            let own: Headers = all.into_iter().collect();
            let key = key.map(Bytes::from);
            let record = Record { key: key.clone(), ..record(own.clone()) };
            let sent = sent(&record);
            prop_assert_eq!(put_together(&sent), own);
            prop_assert_eq!(text(&sent, "redrive-key").map(unescaped), key.map(|key| key.to_vec()));
        }
    }

    #[test]
    fn more_than_a_request_can_carry_is_known_before() {
        let many: Headers = (0..=MOST_HEADERS).map(|number| (number.to_string(), Some("x"))).collect();
        assert!(!fits(&record(many)));
        let long: Headers = [("n".repeat(LONGEST_NAME + 1), Some("x"))].into_iter().collect();
        assert!(!fits(&record(long)));
        let most: Headers = (0..MOST_HEADERS).map(|number| (format!("{number}"), Some("x"))).collect();
        let most = record(most);
        assert!(fits(&most));
        assert_eq!(put_together(&sent(&most)), most.headers);
    }

    #[test]
    fn a_record_that_was_sent_back_to_its_topic_keeps_its_origin() {
        let told = |group| {
            let headers = [("redrive-origin", Some("orders/3/2")), ("redrive-group", Some(group))];
            origin(&record(headers.into_iter().collect()), "g").to_string()
        };
        assert_eq!((told("g"), told("other")), ("orders/3/2".to_owned(), "orders/3/7".to_owned()));
    }
}
