//! Who still has something to do when the handlers are gone: programs that end, events that are posted.

use std::sync::LazyLock;

use tokio::sync::watch;

static COUNT: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// Someone who has; counted as long as this lives, however that ends.
pub(crate) struct Leaving(());

impl Leaving {
    pub(crate) fn new() -> Self {
        COUNT.send_modify(|count| *count += 1);
        Self(())
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        COUNT.send_modify(|count| *count -= 1);
    }
}

/// Waits until nobody has.
pub(crate) async fn nobody() {
    // The sender is never dropped.
    let _ = COUNT.subscribe().wait_for(|count| *count == 0).await;
}
