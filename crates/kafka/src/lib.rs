//! Everything that touches librdkafka: settings, what is published, what is read.
//!
//! It carries out and reports back; it decides nothing.
#![warn(missing_docs)]

mod error;
mod publish;
mod read;
mod settings;

pub use error::Error;
pub use publish::{Outgoing, Publisher};
pub use read::Reader;
pub use settings::{Settings, check_property};
