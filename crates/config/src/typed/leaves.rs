//! The values that stand at the ends: texts with a grammar, choices, counts, switches.

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use redrive_core::classify::{Pattern, Statuses};
use redrive_core::lanes::Followers;
use redrive_core::mask::Pointer;
use redrive_core::route::Exhausted;
use redrive_core::settings::{
    BatchFormat, Blocking, Delay, Delivery, Endpoint, HttpVersion, LetterPartition, MaxLoss, OrderBy,
    Payload, Start, SurgeGuard, Tombstones,
};
use redrive_core::spelling::{Misspelt, nearest};
use redrive_core::{Class, Policy, Topic, duration};
use toml::de::{DeFloat, DeInteger, DeTable, DeValue};

use super::reader::Node;
use super::{At, Reader, Shape, Typed};
use crate::meant::{self, LogFormat, LogLevel, Property};
use crate::problem::Problem;

/// Any text but an empty one.
#[derive(Debug, Clone)]
pub(crate) struct Text(pub(crate) String);

/// Any text but an empty one, never shown.
pub(crate) type Secret = meant::Secret;

/// Names and their texts, none of which is shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named(pub(crate) Vec<At<Property>>);

/// A number from 1 on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub(crate) NonZeroU32);

/// A number of bytes from 1 on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) NonZeroU64);

/// A number from 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio(pub(crate) f64);

/// `true` or `false`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag(pub(crate) bool);

/// Properties of the client that are not the user's to set, and what to do instead.
const OURS: [(&str, &str); 7] = [
    ("bootstrap.servers", "write the addresses as brokers"),
    ("metadata.broker.list", "write the addresses as brokers"),
    ("group.id", "write the group of each subscription"),
    ("enable.auto.commit", "remove it: offsets are committed when their records are complete"),
    ("enable.auto.offset.store", "remove it: offsets are stored when their records are complete"),
    ("auto.offset.reset", "write where a new group starts as start"),
    ("transactional.id", "write delivery = \"exactly-once\""),
];

/// Names and values that are passed on as they are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Properties(pub(crate) Vec<Property>);

/// A value for some of the classes.
#[derive(Debug, Clone)]
pub(crate) struct ByClass<T>(pub(crate) Vec<(Class, At<T>)>);

/// `off`, or a guard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guarded(pub(crate) Option<SurgeGuard>);

/// Texts with a grammar: what they are, what they may look like, how they are read.
macro_rules! texts {
    ($($type:ty: $what:literal, [$($example:literal),+], $read:expr;)*) => {$(
        impl Typed for $type {
            fn shape() -> Shape {
                Shape::Text { what: $what, examples: vec![$($example.to_owned()),+] }
            }

            fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                let filled = reader.text(node, $what)?;
                let read: fn(&str) -> Result<Self, Misspelt> = $read;
                read(&filled.text).map_err(|mistake| reader.misspelt(&filled, $what, mistake)).ok()
            }
        }
    )*};
}

texts! {
    Text: "a text", ["text"], |text| match text {
        "" => Err(misspelt(text, "this cannot be empty")),
        _ => Ok(Self(text.to_owned())),
    };
    Secret: "a secret", ["${SECRET}"], |text| match text {
        "" => Err(misspelt(text, "this cannot be empty")),
        _ => Ok(Self(text.to_owned())),
    };
    Endpoint: "the address of an HTTP endpoint", ["http://localhost:9001/payments", "https://payments.example/records", "http+unix:///run/payments.sock:/records"], str::parse;
    Policy: "a policy", ["never", "exponential(1s..60s x2)", "exponential(1s..60s x2, 120) jitter 10%", "list(5s x3, 15s x5, 60s x10) for 1h"], str::parse;
    Duration: "a duration", ["900ms", "10s", "5m"], |text| {
        let wait = duration::parse(text)?;
        if wait.is_zero() { Err(misspelt(text, "this cannot be zero")) } else { Ok(wait) }
    };
    Topic: "the name of a topic", ["pre-order"], |text| text.parse().map_err(|error| misspelt(text, error));
    OrderBy: "something to order by", ["key", "header:order-id", "json:/order/id", "partition", "none"], str::parse;
    Start: "a place to start", ["earliest", "latest", "2026-11-01T06:00:00Z"], str::parse;
    Guarded: "a guard", ["50% of 20 keys in 30s", "off"], |text| match text {
        "off" => Ok(Self(None)),
        _ => text.parse().map(|guard| Self(Some(guard))),
    };
    SocketAddr: "an address", ["127.0.0.1:8790", "[::1]:8790"], |text| text.parse().map_err(|_| Misspelt {
        help: Some("write the numbers of the address and a port, such as 127.0.0.1:8790".to_owned()),
        ..misspelt(text, "this is not an address to listen on")
    });
    MaxLoss: "a limit", ["1% over 5m"], str::parse;
    Pattern: "a regular expression", ["^timeout after \\\\d+ ms$"], str::parse;
    Pointer: "a JSON pointer", ["/card/number"], str::parse;
    Statuses: "a status", ["404", "5xx", "500-599"], str::parse;
}

macro_rules! choices {
    ($($type:ty: $what:literal, $names:expr;)*) => {$(
        impl Typed for $type {
            fn shape() -> Shape {
                Shape::Choice($names)
            }

            fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
                let filled = reader.text(node, $what)?;
                let read = <$type>::from_str(&filled.text).map_err(|error| choice_mistake(&filled.text, error));
                read.map_err(|mistake| reader.misspelt(&filled, $what, mistake)).ok()
            }
        }
    )*};
}

choices! {
    Class: "a class", Class::ALL.into_iter().flat_map(|class| [class.name(), class.alias()]).collect();
    Exhausted: "a choice for used-up tries", Self::NAMES.to_vec();
    Followers: "a choice for followers", Self::NAMES.to_vec();
    Delay: "a way to wait", Self::NAMES.to_vec();
    Delivery: "a delivery", Self::NAMES.to_vec();
    Blocking: "what an outage stops", Self::NAMES.to_vec();
    LetterPartition: "a choice of a partition", Self::NAMES.to_vec();
    Payload: "a choice of what is written", Self::NAMES.to_vec();
    LogFormat: "a format", Self::NAMES.to_vec();
    LogLevel: "a level", Self::NAMES.to_vec();
    HttpVersion: "a version of HTTP", Self::NAMES.to_vec();
    Tombstones: "a choice for tombstones", Self::NAMES.to_vec();
    BatchFormat: "a format", Self::NAMES.to_vec();
}

fn choice_mistake(text: &str, error: impl Into<ChoiceError>) -> Misspelt {
    match error.into() {
        ChoiceError::Misspelt(mistake) => mistake,
        ChoiceError::Class => {
            Misspelt { help: Some(class_help(text)), ..misspelt(text, format!("`{text}` is not a class")) }
        }
    }
}

const CLASSES: &str = "the classes are permanent (NRE), transient (SLE), outage (SBE) and not-ready (SNBE)";

fn class_help(typed: &str) -> String {
    let names = Class::ALL.into_iter().flat_map(|class| [class.name(), class.alias()]);
    nearest(typed, names).map_or(CLASSES.to_owned(), |near| format!("did you mean `{near}`? {CLASSES}"))
}

enum ChoiceError {
    Misspelt(Misspelt),
    Class,
}

impl From<Misspelt> for ChoiceError {
    fn from(mistake: Misspelt) -> Self {
        Self::Misspelt(mistake)
    }
}

impl From<redrive_core::class::UnknownClass> for ChoiceError {
    fn from(_: redrive_core::class::UnknownClass) -> Self {
        Self::Class
    }
}

fn misspelt(text: &str, message: impl fmt::Display) -> Misspelt {
    Misspelt { span: 0..text.len(), message: message.to_string(), help: None }
}

impl Typed for Count {
    fn shape() -> Shape {
        Shape::Count
    }

    fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let most = u32::MAX;
        whole(node, reader, most.into())
            .and_then(|number| u32::try_from(number.get()).ok())
            .and_then(NonZeroU32::new)
            .map(Self)
    }
}

impl Typed for Size {
    fn shape() -> Shape {
        Shape::Size
    }

    fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        whole(node, reader, i64::MAX.cast_unsigned()).map(Self)
    }
}

fn whole(node: Node<'_>, reader: &mut Reader<'_>, most: u64) -> Option<NonZeroU64> {
    let Some(number) = node.get_ref().as_integer() else {
        let help = match node.get_ref().as_float() {
            Some(_) => "write it without a point",
            None => "write it without quotes",
        };
        reader.wrong_type(node, "a whole number", help);
        return None;
    };
    let read = u64::from_str_radix(&number.as_str().replace('_', ""), number.radix());
    let number = read.ok().filter(|number| *number <= most).and_then(NonZeroU64::new);
    if number.is_none() {
        reader.note(Problem::error(node.span(), format!("expected a number from 1 to {most}")));
    }
    number
}

impl Typed for Ratio {
    fn shape() -> Shape {
        Shape::Ratio
    }

    fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let value = node.get_ref();
        let whole = value.as_integer().map(DeInteger::as_str);
        let Some(text) = whole.or_else(|| value.as_float().map(DeFloat::as_str)) else {
            reader.wrong_type(node, "a number", "write it without quotes");
            return None;
        };
        let ratio = text.replace('_', "").parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
        if ratio.is_none() {
            let problem = Problem::error(node.span(), "expected a number from 0 to 1");
            reader.note(problem.help("1 is all of them, 0.1 every tenth, 0 none"));
        }
        ratio.map(Self)
    }
}

impl Typed for Flag {
    fn shape() -> Shape {
        Shape::Flag
    }

    fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let flag = node.get_ref().as_bool();
        if flag.is_none() {
            reader.wrong_type(node, "true or false", "write true or false, without quotes");
        }
        flag.map(Self)
    }
}

impl<T: Typed> Typed for Vec<At<T>> {
    fn shape() -> Shape {
        Shape::List(Box::new(T::shape()))
    }

    fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(list) = node.get_ref().as_array() else {
            let help = match T::shape() {
                Shape::Table(_) => "begin each table of the list with its name in double brackets, [[...]]",
                _ => "write it in brackets, even if there is only one: [...]",
            };
            reader.wrong_type(node, "a list", help);
            return None;
        };
        let read = list.iter().filter_map(|node| At::read_at(node.span(), node, reader));
        Some(read.collect())
    }
}

impl<T: Typed> Typed for ByClass<T> {
    fn shape() -> Shape {
        Shape::ByClass(Box::new(T::shape()))
    }

    fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let table = reader.expect_table(node)?;
        let mut read: Vec<(Class, At<T>)> = Vec::new();
        let mut seen = Vec::new();
        for (key, value) in table {
            let Ok(class) = key.get_ref().parse::<Class>() else {
                let message = format!("`{}` is not a class", key.get_ref());
                reader.note_key(Problem::error(key.span(), message).help(class_help(key.get_ref())));
                continue;
            };
            if seen.contains(&class) {
                reader.note(Problem::error(key.span(), format!("the class {class} is given twice")));
            }
            seen.push(class);
            read.extend(At::read(key, value, reader).map(|value| (class, value)));
        }
        Some(Self(read))
    }
}

impl Typed for Named {
    fn shape() -> Shape {
        Shape::Named
    }

    fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let mut read = Self::default();
        for (key, node) in reader.expect_table(node)? {
            let Some(filled) = reader.text(node, "a text") else { continue };
            let value = Property { name: key.get_ref().clone().into_owned(), value: filled.text };
            read.0.push(At { value, span: node.span(), key: key.span(), hidden: true });
        }
        Some(read)
    }
}

impl Typed for Properties {
    fn shape() -> Shape {
        Shape::Properties
    }

    fn read(node: Node<'_>, reader: &mut Reader<'_>) -> Option<Self> {
        let mut read = Self::default();
        read.flatten("", reader.expect_table(node)?, reader);
        Some(read)
    }
}

impl Properties {
    /// `sasl.password` without quotes is a table in a table, and means the same. Problems are told at the
    /// key: the value may be a secret.
    fn flatten(&mut self, prefix: &str, table: &DeTable<'_>, reader: &mut Reader<'_>) {
        for (key, node) in table {
            let dot = if prefix.is_empty() { "" } else { "." };
            let name = format!("{prefix}{dot}{}", key.get_ref());
            let value = match node.get_ref() {
                DeValue::Table(table) => {
                    self.flatten(&name, table, reader);
                    continue;
                }
                DeValue::Boolean(flag) => Some(flag.to_string()),
                DeValue::Integer(number) => Some(number.as_str().to_owned()),
                DeValue::Float(number) => Some(number.as_str().to_owned()),
                DeValue::String(_) => reader.text(node, "a text").map(|filled| filled.text),
                DeValue::Datetime(_) | DeValue::Array(_) => {
                    reader.note(Problem::error(
                        key.span(),
                        format!("{name} must be a text, a number or a switch"),
                    ));
                    None
                }
            };
            let Some(value) = value else { continue };
            if let Err(problem) = self.check(&name, &value, key.span(), reader) {
                reader.note(problem);
            }
            self.0.push(Property { name, value });
        }
    }

    fn check(
        &self,
        name: &str,
        value: &str,
        place: Range<usize>,
        reader: &Reader<'_>,
    ) -> Result<(), Problem> {
        if let Some((_, instead)) = OURS.iter().find(|(ours, _)| *ours == name) {
            return Err(Problem::error(place, format!("Redrive sets {name} itself")).help(*instead));
        }
        if self.0.iter().any(|property| property.name == name) {
            return Err(Problem::error(place, format!("{name} is given twice")));
        }
        let refused = |why| Problem::error(place, format!("librdkafka does not accept {name}: {why}"));
        reader.accepts(name, value).map_err(refused)
    }
}
