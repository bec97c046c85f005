//! Faults on order, for tests: a fault names an API and which of its requests it strikes; the server
//! asks here before it answers. Compiled only with the feature `faults`; nothing here is ever at work
//! in a release build of the command line.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tracing::info;

pub use kafka_protocol::ResponseError;
pub use kafka_protocol::messages::ApiKey;

use crate::sync::lock;

/// What happens to the request that a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing is done; the answer is this error, in every place where the response has one.
    Fail(ResponseError),
    /// It is done and answered, this much later.
    Delay(Duration),
    /// Nothing is done; the connection closes.
    Drop,
    /// It is done; the connection closes without an answer, so the client does not know.
    Unanswered,
}

/// A fault that waits for its request.
#[derive(Clone, Debug)]
pub struct Fault {
    api: ApiKey,
    effect: Effect,
    /// Requests to let pass first.
    pass: u32,
    /// Requests to strike.
    strike: u32,
    mentions: Option<Bytes>,
    client: Option<String>,
}

impl Fault {
    /// Strikes the next request of this API, once.
    pub fn next(api: ApiKey, effect: Effect) -> Fault {
        Fault {
            api,
            effect,
            pass: 0,
            strike: 1,
            mentions: None,
            client: None,
        }
    }

    /// Strikes the n-th request from now on; the first is 1.
    pub fn nth(mut self, n: u32) -> Fault {
        self.pass = n.saturating_sub(1);
        self
    }

    /// Strikes so many in a row.
    pub fn times(mut self, times: u32) -> Fault {
        self.strike = times;
        self
    }

    /// Counts only requests whose body holds these bytes: a topic, a group, a transactional id.
    pub fn mentioning(mut self, bytes: impl AsRef<[u8]>) -> Fault {
        self.mentions = Some(Bytes::copy_from_slice(bytes.as_ref()));
        self
    }

    /// Counts only requests of the client with this id.
    pub fn from_client(mut self, id: impl Into<String>) -> Fault {
        self.client = Some(id.into());
        self
    }

    fn is_about(&self, api: ApiKey, client: &str, body: &[u8]) -> bool {
        let mentions =
            |wanted: &Bytes| wanted.is_empty() || body.windows(wanted.len()).any(|window| window == wanted);
        self.api == api
            && self.client.as_ref().is_none_or(|wanted| wanted == client)
            && self.mentions.as_ref().is_none_or(mentions)
    }
}

/// The faults of a broker. Clones are the same.
#[derive(Clone, Debug)]
pub struct Faults(Arc<Orders>);

#[derive(Debug)]
struct Orders {
    waiting: Mutex<Vec<Fault>>,
    frozen: watch::Sender<bool>,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults(Arc::new(Orders {
            waiting: Mutex::default(),
            frozen: watch::Sender::new(false),
        }))
    }
}

impl Faults {
    /// Orders a fault. Faults are asked in the order they were given; the first that strikes counts.
    pub fn order(&self, fault: Fault) {
        lock(&self.0.waiting).push(fault);
    }

    /// How many faults have not struck as often as they are to.
    pub fn waiting(&self) -> usize {
        lock(&self.0.waiting).len()
    }

    /// Forgets all that wait.
    pub fn clear(&self) {
        lock(&self.0.waiting).clear();
    }

    /// No request is begun until [`thaw`](Faults::thaw); connections stay.
    pub fn freeze(&self) {
        self.0.frozen.send_replace(true);
    }

    /// Goes on after a freeze.
    pub fn thaw(&self) {
        self.0.frozen.send_replace(false);
    }

    pub(crate) async fn thawed(&self) {
        let _ = self.0.frozen.subscribe().wait_for(|frozen| !*frozen).await;
    }

    /// What strikes this request, if anything does.
    pub(crate) fn strike(&self, api: ApiKey, client: &str, body: &[u8]) -> Option<Effect> {
        let mut waiting = lock(&self.0.waiting);
        let mut effect = None;
        for fault in waiting
            .iter_mut()
            .filter(|fault| fault.is_about(api, client, body))
        {
            if fault.pass > 0 {
                fault.pass -= 1;
            } else if effect.is_none() && fault.strike > 0 {
                fault.strike -= 1;
                effect = Some(fault.effect);
            }
        }
        waiting.retain(|fault| fault.strike > 0);
        if let Some(effect) = effect {
            info!(?api, client, ?effect, "a fault on order strikes");
        }
        effect
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_matching_request_is_struck_and_no_other() {
        let faults = Faults::default();
        faults.order(
            Fault::next(ApiKey::Produce, Effect::Drop)
                .nth(2)
                .mentioning("orders"),
        );
        assert_eq!(faults.strike(ApiKey::Produce, "", b"..orders.."), None);
        assert_eq!(faults.strike(ApiKey::Fetch, "", b"..orders.."), None);
        assert_eq!(faults.strike(ApiKey::Produce, "", b"..others.."), None);
        assert_eq!(
            faults.strike(ApiKey::Produce, "", b"..orders.."),
            Some(Effect::Drop)
        );
        assert_eq!(faults.strike(ApiKey::Produce, "", b"..orders.."), None);
        assert_eq!(faults.waiting(), 0);
    }

    #[test]
    fn a_fault_strikes_as_often_as_it_is_told_to() {
        let faults = Faults::default();
        faults.order(
            Fault::next(ApiKey::Heartbeat, Effect::Unanswered)
                .times(2)
                .from_client("a"),
        );
        assert_eq!(faults.strike(ApiKey::Heartbeat, "b", b""), None);
        assert_eq!(
            faults.strike(ApiKey::Heartbeat, "a", b""),
            Some(Effect::Unanswered)
        );
        assert_eq!(
            faults.strike(ApiKey::Heartbeat, "a", b""),
            Some(Effect::Unanswered)
        );
        assert_eq!(faults.strike(ApiKey::Heartbeat, "a", b""), None);
    }
}
