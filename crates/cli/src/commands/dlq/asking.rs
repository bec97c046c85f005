//! What every change of many letters has in common: a reason, a person's yes, a line in the journal.

use std::io;

use redrive::{Clock, Settings};
use redrive_letters::journal::{self, Deed};

use crate::exit::Exit;
use crate::screen;

/// Refuses many letters without a reason.
pub(super) fn reason(is_bulk: bool, reason: &str) -> Result<(), Exit> {
    if is_bulk && reason.is_empty() {
        screen::say("error: why?\nhelp: --reason 'fixed in 1.4' is written into the journal");
        return Err(Exit::Usage);
    }
    Ok(())
}

/// Asks where a person is; elsewhere only `--yes` will do.
pub(super) fn is_agreed(yes: bool, question: &str) -> io::Result<bool> {
    if yes {
        return Ok(true);
    }
    if !screen::has_person() {
        screen::say(&format!(
            "error: there is no terminal to ask on: {question}\nhelp: --yes does it; --dry-run says what would happen"
        ));
        return Ok(false);
    }
    let agreed = screen::is_wanted(&format!("{question}?"))?;
    if !agreed {
        screen::say("nothing was changed");
    }
    Ok(agreed)
}

/// Writes into the journal what is about to be done; nothing is done that cannot be written down.
pub(super) async fn write_down(
    settings: &Settings,
    what: &str,
    selection: &str,
    counts: &[(&str, u64)],
    why: &str,
) -> Result<(), Exit> {
    let deed = Deed {
        who: journal::writer(),
        at: Clock::system().now().wall.millis(),
        what: what.to_owned(),
        selection: selection.to_owned(),
        job: None,
        counts: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        why: why.to_owned(),
    };
    journal::append(settings, deed).await.map(drop).map_err(|error| {
        screen::say(&format!("error: {}; nothing was done", screen::told(&error)));
        Exit::Failed
    })
}
