//! The names of our headers: each once, here.

/// What all of them begin with.
pub const PREFIX: &str = "redrive-";

/// The header that makes a record an entry of a shelf.
pub const ENTRY: &str = "redrive-entry";
/// Where the log of a shelf begins, in its checkpoints.
pub(crate) const LOG: &str = "redrive-log";
/// All that is known of a record that waits, in one header of its entry.
pub(crate) const TRAIL: &str = "redrive-trail";

macro_rules! names {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// A header that Redrive writes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Name { $(#[doc = $doc] $variant,)* }

        impl Name {
            /// Every header that Redrive writes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As it stands in a record.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Ours of that name, if there is one.
            #[must_use]
            pub fn of(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

// On shelves they are known by their places here: a new one goes to the end.
names! {
    Origin = "redrive-origin", "Where the record was first consumed: `topic/partition/offset`.";
    OriginTimestamp = "redrive-origin-timestamp", "The timestamp it had there.";
    Group = "redrive-group", "The consumer group it failed in.";
    Attempt = "redrive-attempt", "Handler calls so far.";
    Retries = "redrive-retries", "Retries so far: in place/blocked/set aside.";
    FirstFailedAt = "redrive-first-failed-at", "When it failed first.";
    Due = "redrive-due", "The earliest time it may be handled.";
    Lane = "redrive-lane", "Its business key.";
    Class = "redrive-class", "The class of the last failure.";
    ErrorType = "redrive-error-type", "The type of the outermost error.";
    ErrorMessage = "redrive-error-message", "Its message.";
    ErrorChain = "redrive-error-chain", "All causes, as JSON.";
    ErrorStack = "redrive-error-stack", "The stack, where there is one.";
    History = "redrive-history", "The last attempts, as JSON.";
    Reason = "redrive-reason", "Why it is a dead letter.";
    Leader = "redrive-leader", "The record because of which it waits or is a letter.";
    Service = "redrive-service", "The service it failed in.";
    Instance = "redrive-instance", "The instance of it.";
    Handler = "redrive-handler", "The handler it failed in.";
    ContentType = "redrive-content-type", "The type of the payload.";
    BuriedAt = "redrive-buried-at", "When it became a dead letter.";
    Replay = "redrive-replay", "The job that sent it back.";
    Replays = "redrive-replays", "How often it was sent back.";
    ReplayedAt = "redrive-replayed-at", "When it was last sent back.";
    Pointer = "redrive-pointer", "Where the payload is, if it is not here.";
    PointerExpires = "redrive-pointer-expires", "When the payload is gone from there, if it is known.";
    Signature = "redrive-signature", "Proof of who asked for the delay.";
    Key = "redrive-key", "The original key, where letters are keyed by origin.";
}
