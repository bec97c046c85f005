//! One suite, two brokers: every test runs against the embedded broker, in memory and on disk, and
//! against Apache Kafka where there is one, with the same assertions.
//!
//! A test is a function of a [`Target`] that knows nothing of which one it is given; [`on_both!`] makes
//! a test of it per broker. Where brokers may rightly differ, the test says so and why.

mod by_hand;
mod calls;
mod clients;
mod clock;
mod embedded;
mod raw;
mod reading;
mod target;
mod transactions;

pub use by_hand::{Voice, joining};
pub use calls::{Appetite, Isolation, topic_ids};
pub use clients::{Delivery, Member, Rebalances, assigned, deliver, deliver_all, settle};
pub use clock::{PATIENCE, eventually, later, now_ms, timed};
pub use raw::{Connection, error, group_id, records, text, topic_name, transactional_id};
pub use reading::{next_error, next_message, offsets, values};
pub use target::Target;
pub use transactions::HandProducer;

/// Makes a test per broker of each function: `a_sentence::in_memory`, `::on_disk` and `::kafka`.
#[macro_export]
macro_rules! on_both {
    ($($sentence:ident),+ $(,)?) => { $(
        mod $sentence {
            #[test]
            fn in_memory() {
                super::$sentence(&$crate::Target::in_memory());
            }
            #[test]
            fn on_disk() {
                super::$sentence(&$crate::Target::on_disk());
            }
            #[test]
            fn kafka() {
                if let Some(kafka) = $crate::Target::kafka() {
                    super::$sentence(&kafka);
                }
            }
        }
    )+ };
}
