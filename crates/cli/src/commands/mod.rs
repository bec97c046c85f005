//! The commands, a file each.

pub(crate) mod acls;
pub(crate) mod broker;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod delayed;
pub(crate) mod demo;
pub(crate) mod dlq;
pub(crate) mod explain;
pub(crate) mod journal;
pub(crate) mod pause;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod send;
pub(crate) mod status;
pub(crate) mod topics;
