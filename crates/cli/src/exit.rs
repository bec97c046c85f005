//! How a command ended, as scripts see it.

/// The exit codes of every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok,
    /// Failed.
    Failed,
    /// The command line is wrong.
    Usage,
    /// Some of it is done and some is not, or a check found something to do.
    Partly,
    /// Nothing is as asked for.
    NothingMatched,
    /// The configuration is invalid.
    Config,
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Partly => 3,
            Self::NothingMatched => 4,
            Self::Config => 78,
        }
    }
}
