//! What holds for all machines, in the compacted topic `redrive.state`: jobs about letters, what became of each
//! letter, what people made of failure groups.
//!
//! Records come in, [`State`] is what they come to. It is a fold: whoever reads the topic comes to the same,
//! whatever compaction has removed.
//! What it means is decided here and nowhere else; [`Followed`] reads the topic.

mod fold;
mod follow;
mod forget;
mod hand_over;
mod job;
mod key;
mod moves;
mod selection;
mod story;
#[cfg(test)]
mod tests;
mod topics;
mod turns;
mod value;

pub use fold::{LetterState, State, state};
pub(crate) use follow::packed;
pub use follow::{Followed, outgoing};

pub(crate) use forget::forget_when_possible;
pub use forget::{REMEMBERED, forget_old};
pub(crate) use job::ALIVE;
pub use job::{Counts, Job, Standing};
pub use key::{BadJobId, JobId, Key};
pub use moves::{Moved, Moves};
pub use selection::{BadSelection, Selection};
pub use story::{Chapter, story};
pub use topics::{Since, TopicIds};
pub use turns::Unread;
pub(crate) use turns::{NoTurn, READ_BACK, take_turn};
pub use value::{
    Begun, End, Ending, GroupState, Head, Hold, Kind, Mark, Options, Outcome, Standing as GroupStanding,
    Turn, Want, What, Whereto, Wish,
};
