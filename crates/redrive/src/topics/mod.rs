//! The topics of subscriptions: what they must be, what they are, and the steps from one to the other.
//!
//! A configuration and what was [`Found`] go in, a [`Plan`] comes out: pure, with a reason for every
//! step. [`look`] asks the cluster, [`carry_out()`] changes it, [`ensure`] is all of it for a worker that
//! starts. Nothing is ever made smaller, shorter or less safe.

mod acls;
mod carry_out;
mod found;
mod left_behind;
mod plan;
mod pointers;
mod state;
#[cfg(test)]
mod tests;
mod verify;
mod wanted;

pub use acls::{Acl, Operation, Pattern, Resource, acls, process_acls, transactional_prefix};
pub use carry_out::{Ready, Unready, carry_out, ensure, settle};
pub use found::{Found, is_compacted, look, look_around};
pub use plan::{Change, Note, Plan, Step, plan};
pub use pointers::originals;
pub use state::plan_state;
pub use verify::{Mender, Mismatch, verify};
pub use wanted::{HEADER_ROOM, Role, Use, uses};
