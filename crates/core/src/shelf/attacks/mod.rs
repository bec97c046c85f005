//! Every way that is known in which a shelf could lose, repeat or reorder records, staged.
//!
//! What cannot be staged in pure code is covered elsewhere, or said in the documentation:
//!
//! - a cooperative former owner whose late commit the coordinator accepts, transactions without offsets or
//!   with metadata captured too late: whoever commits sees to that; the simulation refuses such commits and
//!   fences such transactions, in its three variants with exactly-once;
//! - sources that are compacted, sizes that exceed a topic's limit, a clock that is ahead, the
//!   retention of the shelf: facts of the broker, in the crate that talks to it;
//! - keys that move when a topic grows, and handlers still running in a paused process: said in the docs;
//! - two keys with one hash: lanes compare whole keys (`lanes`), and tags only ever make a record wait;
//! - letters that are purged or expire, bitmaps in commit metadata: of the letters, and not done.
//!
//! Whatever else may come in whatever order is the simulation's (`flow::simulation`).

mod bench;
mod cuts;
mod lanes;
mod logs;
mod orders;
mod owners;
mod pointers;
mod replays;
mod undecodable;
