//! What Redrive's own tests run on: clusters and databases that are really there, and objects that
//! watch what the invariants promise.
//!
//! Where one is missing, its tests say that they are skipped and why; with `REDRIVE_REQUIRE` naming
//! it (`kafka,postgres`), its absence fails them.

pub mod guarantees;
pub mod python;
mod reading;
mod real;
mod topics;
mod writing;

pub use reading::Stored;
pub use real::{Cluster, is_required, kafka, postgres};
pub use topics::{delete_group, delete_topic, new_name, new_topic, new_topic_with};
