//! What the invariants promise, kept through crashes, rebalances, faults and repairs.
//!
//! Each test runs workers as child processes, on the embedded broker and, where there is one, on Apache
//! Kafka: `-- ::embedded` or `-- ::kafka` runs one kind. The tests mostly wait, so they wait together.

mod calls;
mod claims;
mod crashes;
mod exactly_once;
mod faults;
mod gone;
mod last_record;
mod letters;
mod outages;
mod place;
mod rebalances;
mod send;
mod shelf_clock;
mod shelf_crashes;
mod shelf_faults;
mod shelf_lanes;
mod shelf_offsets;
mod shelf_replays;
mod shelf_restarts;
mod shelf_zombies;
mod slow;
mod stops;
mod subject;

/// Makes a test per broker of each function: `a_sentence::embedded` and `::kafka`.
macro_rules! on_both {
    ($($sentence:ident),+ $(,)?) => { $(
        mod $sentence {
            #[tokio::test(flavor = "multi_thread")]
            async fn embedded() {
                super::$sentence(crate::place::Place::embedded().await).await;
            }
            #[tokio::test(flavor = "multi_thread")]
            async fn kafka() {
                if let Some(place) = crate::place::Place::kafka() {
                    super::$sentence(place).await;
                }
            }
        }
    )+ };
}
pub(crate) use on_both;

/// Makes a test of each function that needs a broker which fails on order.
macro_rules! on_embedded {
    ($($sentence:ident),+ $(,)?) => { $(
        mod $sentence {
            #[tokio::test(flavor = "multi_thread")]
            async fn embedded() {
                super::$sentence(crate::place::Place::embedded().await).await;
            }
        }
    )+ };
}
pub(crate) use on_embedded;
