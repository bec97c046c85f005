//! The subscription that delivers: not ready until the time has come, then published.

use redrive_core::{Class, Classed, Failure};

use super::{GROUP, Scheduled, TOPIC};
use crate::{Clock, Cluster, Delivery, Handler, Received, Subscription, Worker};

/// Without end: each wait is what is left until the due time, be it months, and its own delays are used by
/// nobody.
const POLICY: &str = "exponential(1s..60s x2)";

/// A worker that delivers what is scheduled on a cluster, exactly once.
#[must_use]
pub fn deliverer(cluster: &Cluster) -> Worker {
    let clock = Clock::system();
    Worker::new(cluster).service("redrive send").subscribe(subscription(clock.clone())).going_by(clock)
}

/// The subscription that delivers, by this clock, which should be its worker's.
#[must_use]
pub fn subscription(clock: Clock) -> Subscription {
    Subscription::new(TOPIC, GROUP)
        .order_by("none")
        .delivery(Delivery::ExactlyOnce)
        .auto_create(true)
        .retry(Class::NotReady, POLICY)
        // Everything is too early when it comes: that is no outage.
        .surge_guard("off")
        // Nobody else reads it, and what is consumed is on the shelf or delivered.
        .clears_source()
        .handler_name("redrive send")
        .handler(Deliver { clock })
}

struct Deliver {
    clock: Clock,
}

#[derive(Debug, thiserror::Error)]
#[error("its time has not come")]
struct TooEarly;

impl Handler for Deliver {
    async fn handle(&self, received: Received) -> Result<(), Failure> {
        let Scheduled { due, outgoing } =
            Scheduled::read(&received).map_err(|error| Failure::undecodable(&error))?;
        let now = self.clock.now().wall;
        // Once it waits, the shelf says when: somebody may have had it released or rescheduled.
        if due > now && received.attempt() == 1 {
            return Err(Classed::not_ready(TooEarly).retry_after(due.since(now)).into());
        }
        received.send(outgoing);
        Ok(())
    }
}
