//! Sending dead letters back: what a tool appends to the shelf of a subscription, and what it hears of it.
//!
//! A [`Shelf`] makes the records that a tool publishes, inside a transaction of its own if it has one: a letter
//! to be tried again ([`Shelf::replay`]), and for lanes whose followers are letters too an announcement before
//! the first ([`Shelf::announce`]) and an order that opens the lane after the last ([`Shelf::resolve`]). The
//! owner of the partition answers each; [`Answers`] reads that. What became of a letter in the end is a
//! [`Report`], written by workers to `redrive.state`.
//!
//! ```no_run
//! # use redrive::replay::{Answers, Letter, Shelf};
//! # use redrive::{Clock, Publisher, Record, Settings, Timestamp};
//! # async fn send(settings: &Settings, publisher: &Publisher, letters: &[Record]) -> Result<(), Box<dyn std::error::Error>> {
//! let shelf = Shelf::of(&"orders".parse()?, "billing")?;
//! let (clock, wait) = (Clock::system(), std::time::Duration::from_secs(10));
//! let letters: Vec<_> = letters.iter().map(Letter::read).collect::<Result<_, _>>()?;
//! let leader = &letters[0].origin;
//! let mut answers = Answers::open(settings, shelf.topic().clone(), &[leader.partition]).await?;
//! if answers.closes(leader) {
//!     let deadline = clock.now().wall.plus(std::time::Duration::from_secs(60));
//!     let announce = shelf.announce(leader, "job-7", deadline, ("ann", "fixed in 1.4"));
//!     publisher.publish(announce.outgoing).await?;
//!     answers.wait([(leader.partition, announce.id)], wait, &clock).await?;
//! }
//! for (number, letter) in letters.iter().enumerate() {
//!     publisher.publish(shelf.replay(letter, "job-7", number as u64, clock.now().wall)).await?;
//! }
//! publisher.publish(shelf.resolve(leader, "job-7", ("ann", "fixed in 1.4")).outgoing).await?;
//! # Ok(())
//! # }
//! ```

mod answers;
mod letter;
mod report;
mod shelf;

pub use answers::Answers;
pub use letter::{Letter, NotOurs, mark};
pub use report::{Report, What};
pub use shelf::{Ordered, Shelf};

pub use redrive_core::shelf::{Announced, Outcome, Verdict};
