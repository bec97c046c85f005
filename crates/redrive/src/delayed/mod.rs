//! What waits on a shelf, seen from outside: read from Kafka itself, whether or not a worker runs.
//!
//! [`View::read`] folds the log of each partition as its owner does, and keeps what a person wants to see of
//! every waiting record, not its payload. [`View::give`] appends orders and follows the log until the owner's
//! answers count. Nothing here owns a partition, and nothing changes but by the owner's word.

mod attendance;
mod error;
mod orders;
mod part;
mod record;
mod view;

pub use attendance::{Attendance, attendance};
pub use error::Error;
pub use orders::{Answer, Wish};
pub use record::{Closure, Counts, Delayed, Standing};
pub use view::{Keep, Progress, View};

pub use redrive_core::shelf::{Deed, Identity, Order, Verdict, Wait};
