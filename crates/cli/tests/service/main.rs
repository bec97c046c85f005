//! What the service promises, end to end: the program `redrive run`, an endpoint in Python that answers by
//! script, and a broker, while one after the other is restarted, killed or stopped.
//!
//! Each on the embedded broker and, where there is one, on Apache Kafka: `-- ::embedded` or `-- ::kafka`
//! runs one kind.

mod bytes;
mod crashes;
mod fates;
mod instances;
mod place;
#[path = "../run/process.rs"]
#[allow(dead_code, reason = "these tests ask less of it")]
mod process;
mod reload;
mod story;
mod waits;

/// Makes a test per broker of each function: `a_sentence::embedded` and `::kafka`.
macro_rules! on_both {
    ($($sentence:ident),+ $(,)?) => { $(
        mod $sentence {
            #[tokio::test(flavor = "multi_thread")]
            async fn embedded() {
                if redrive_testkit::python::is_there() {
                    super::$sentence(crate::place::Place::embedded().await).await;
                }
            }
            #[tokio::test(flavor = "multi_thread")]
            async fn kafka() {
                if let Some(place) = crate::place::Place::kafka().await
                    && redrive_testkit::python::is_there()
                {
                    super::$sentence(place).await;
                }
            }
        }
    )+ };
}
pub(crate) use on_both;
