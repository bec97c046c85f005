//! What can be told to users' code while records are set aside or dead-lettered.

use std::fmt;

use redrive_core::headers::Headers;
use redrive_core::route::Reason;
use redrive_core::{Class, Failure, Record, Topic};

/// Hears of every record that is set aside or dead-lettered, before and after, and of what cannot be
/// published. It is called in the worker's loop: it must return quickly, and what it does or panics
/// with never affects the record.
pub trait Listener: Send + Sync + 'static {
    /// Something happens to a record.
    fn hear(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Listener for F {
    fn hear(&self, event: &Event<'_>) {
        self(event);
    }
}

/// Something that happens to a record.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// It failed and will be tried again later, its neighbours going on.
    BeforeAside(Told<'a>),
    /// It waits.
    AfterAside(Told<'a>),
    /// Its letter is about to be written.
    BeforeLetter {
        /// The record and its failure.
        told: Told<'a>,
        /// Why it becomes a letter.
        reason: Reason,
    },
    /// Its letter is confirmed.
    AfterLetter {
        /// The record and its failure.
        told: Told<'a>,
        /// Why it became a letter.
        reason: Reason,
        /// Where the letter is.
        topic: &'a Topic,
        /// The headers of the letter.
        headers: &'a Headers,
    },
    /// Its letter could not be written; its partition waits until it can be.
    LetterRefused {
        /// The record and its failure.
        told: Told<'a>,
        /// Where the letter was to go.
        topic: &'a Topic,
        /// Why not.
        error: &'a (dyn std::error::Error + 'static),
    },
}

/// A record and how it failed.
#[derive(Clone, Copy)]
pub struct Told<'a> {
    /// The record.
    pub record: &'a Record,
    /// Its last failure; none for a follower that was never tried.
    pub failure: Option<&'a Failure>,
    /// The class of it.
    pub class: Option<Class>,
    /// How often it was tried.
    pub attempts: u32,
}

impl fmt::Debug for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told")
            .field("origin", &self.record.at)
            .field("class", &self.class)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
