//! The file as typed: every value read that can be read, and a problem for every one that cannot.
//!
//! Each table is described once, by the macro `table!`; reading it, its JSON schema and its page of the
//! reference all come from that description.

#[macro_use]
mod table;

mod file;
mod leaves;
mod reader;
mod shape;

pub(crate) use file::{
    Classify, Command, Defaults, File, Handler, Http, Kafka, Letters, Log, Mask, Notify, Server, Shelf,
    Subscription, Traces,
};
pub(crate) use leaves::{ByClass, Count, Flag, Guarded, Named, Properties, Ratio, Secret, Size, Text};
pub(crate) use reader::{At, Reader};
pub(crate) use shape::{Field, Need, Shape, Table};

use toml::de::DeTable;

use crate::Surroundings;
use crate::problem::Problem;
use crate::secrets::{self, Value};

/// Something that can stand in the file.
pub(crate) trait Typed: Sized {
    /// What it looks like, for the schema and the reference.
    fn shape() -> Shape;

    /// Reads it, or notes what is wrong.
    fn read(node: reader::Node<'_>, reader: &mut Reader<'_>) -> Option<Self>;
}

/// Reads the whole file: what was typed, the places of its values if it is TOML, and the problems.
pub(crate) fn read(text: &str, surroundings: Surroundings<'_>) -> (File, Option<Vec<Value>>, Vec<Problem>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader::new(text, surroundings, errors.is_empty());
    for error in &errors {
        let message = error.message().lines().next().unwrap_or("this is not TOML").to_owned();
        reader.note(Problem::error(error.span().unwrap_or(0..0), message));
    }
    let file = reader.table(table.get_ref(), 0..0);
    let values = errors.is_empty().then(|| secrets::values(table.get_ref()));
    (file.unwrap_or_default(), values, reader.into_problems())
}
