//! What Redrive's own tests run on: clusters and databases that are really there.
//!
//! Where one is missing, its tests say that they are skipped and why; with `REDRIVE_REQUIRE` naming
//! it (`kafka,postgres`), its absence fails them.

mod real;
mod topics;

pub use real::{Cluster, kafka, postgres};
pub use topics::{delete_topic, new_name, new_topic, new_topic_with};
