//! Records that wait on shelves, as tools ask for them and tell of them.

mod document;
mod filter;

pub use document::{answer, closure, counts, deed, order, put, record};
pub use filter::Filter;
