//! What the file may contain, as data.

/// What a value looks like.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Keys that are known by name.
    Table(Table),
    /// Any names, with text, numbers or switches as values.
    Properties,
    /// Any names, with text as values.
    Named,
    /// A value for each class.
    ByClass(Box<Self>),
    /// Several of the same.
    List(Box<Self>),
    /// A text with a grammar of its own.
    Text {
        /// What it is, with its article.
        what: &'static str,
        /// What one may look like.
        examples: Vec<String>,
    },
    /// One of these words.
    Choice(Vec<&'static str>),
    /// A whole number from 1 on.
    Count,
    /// A number of bytes from 1 on.
    Size,
    /// A number from 0 to 1.
    Ratio,
    /// `true` or `false`.
    Flag,
}

/// A table of the file.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// What it is for.
    pub(crate) doc: String,
    /// Its keys, in the order in which they are explained.
    pub(crate) fields: Vec<Field>,
}

/// A key of a table.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) doc: String,
    pub(crate) need: Need,
    pub(crate) shape: fn() -> Shape,
}

/// What happens when a key is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// That is a problem.
    Required,
    /// It means this.
    Default(&'static str),
    /// It means nothing.
    Optional,
}
