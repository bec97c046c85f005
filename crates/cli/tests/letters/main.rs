//! Commands about letters, as processes on a real broker: killed, run at the same time, asked for nonsense.

mod asked;
mod cleaned;
mod compacted;
mod erased;
mod ground;
mod groups;
mod killed;
mod lanes;
mod replayed;
mod told;
