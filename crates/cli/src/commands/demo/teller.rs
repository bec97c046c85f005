//! Tells what happens as it happens: slowly for someone who watches, at once for a script.

use std::time::Duration;

use crate::screen;

#[derive(Clone)]
pub(super) struct Teller {
    is_slow: bool,
}

impl Teller {
    pub(super) fn new(is_slow: bool) -> Self {
        Self { is_slow }
    }

    pub(super) fn say(&self, text: &str) {
        screen::say(text);
    }

    pub(super) fn title(&self, name: &str, about: &str) {
        let name = if screen::is_coloured() { format!("\x1b[1m{name}\x1b[0m") } else { name.to_owned() };
        screen::say(&format!("\n{name}: {about}"));
    }

    /// A breath for someone who reads along.
    pub(super) async fn pause(&self, seconds: u64) {
        if self.is_slow {
            redrive::Clock::system().sleep(Duration::from_secs(seconds)).await;
        }
    }
}
