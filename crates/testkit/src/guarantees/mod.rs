//! Objects that watch the invariants: they are told what was sent, started, handled and stored, and
//! fail the test that breaks one.

mod lane_order;
mod never_early;
mod nothing_lost;
mod once;

pub use lane_order::LaneOrder;
pub use never_early::NeverEarly;
pub use nothing_lost::NothingLost;
pub use once::Once;

/// A record by its place in the source: partition and offset.
pub type Spot = (i32, i64);

/// The first few of many, for a message.
fn some<T: std::fmt::Debug>(all: &[T]) -> String {
    let shown = &all[..all.len().min(10)];
    format!("{} in all, such as {shown:?}", all.len())
}
