//! What endpoints and the topic of the letters tell together: nothing lost, the order of each key kept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive::Clock;
use redrive_testkit::Stored;
use redrive_testkit::guarantees::{LaneOrder, NothingLost, Spot};
use redrive_testkit::python::Told;

use crate::place::{Place, Sent};
use crate::process::PATIENCE;

/// All that is known when everything has ended.
pub(crate) struct Story {
    /// How often each record was given to the endpoint.
    pub(crate) calls: BTreeMap<Spot, usize>,
    pub(crate) handled: BTreeSet<Spot>,
    /// The letters of each record: more than one where a crash repeats it.
    pub(crate) letters: BTreeMap<Spot, Vec<Stored>>,
}

/// Waits until each record was handled or is a letter, and judges how that came about.
pub(crate) async fn judged(place: &Place, sent: &[Sent], told: impl Fn() -> Vec<Told>) -> Story {
    let clock = Clock::system();
    let deadline = clock.now().steady + PATIENCE;
    loop {
        // The letters first: what was called for one of them has been told by then.
        let letters = place.letters().await;
        let story = Story::read(&told(), letters);
        let lost = story.lost(sent);
        if lost.missing().is_empty() {
            lost.check();
            story.order(sent, &told()).check();
            return story;
        }
        assert!(clock.now().steady < deadline, "not in time: {:?}", lost.missing());
        clock.sleep(Duration::from_millis(200)).await;
    }
}

impl Story {
    fn read(told: &[Told], letters: Vec<Stored>) -> Self {
        let mut story = Self { calls: BTreeMap::new(), handled: BTreeSet::new(), letters: BTreeMap::new() };
        for one in told {
            match one {
                Told::Asked(call) => {
                    *story.calls.entry(spot(call.header("ce-id").unwrap())).or_default() += 1;
                }
                Told::Answered { id, status } if is_done(*status) => {
                    story.handled.insert(spot(id));
                }
                Told::Answered { .. } => {}
            }
        }
        for letter in letters {
            story.letters.entry(spot(&letter.headers["redrive-origin"])).or_default().push(letter);
        }
        story
    }

    fn lost(&self, sent: &[Sent]) -> NothingLost {
        let mut lost = NothingLost::default();
        sent.iter().for_each(|one| lost.sent(one.spot));
        self.handled.iter().for_each(|spot| lost.handled(*spot));
        self.letters.keys().for_each(|spot| lost.buried(*spot));
        lost
    }

    /// The endpoint does not know who calls, so each call is a reader of its own: nothing may start before
    /// all that is ahead of it in its lane was done.
    fn order(&self, sent: &[Sent], told: &[Told]) -> LaneOrder {
        let keys: BTreeMap<Spot, &str> = sent.iter().map(|one| (one.spot, one.key.as_str())).collect();
        let mut order = LaneOrder::default();
        sent.iter().for_each(|one| order.sent(one.spot, &one.key));
        for (reader, one) in (0_u32..).zip(told) {
            match one {
                Told::Asked(call) => {
                    let spot = spot(call.header("ce-id").unwrap());
                    order.starts(reader, spot, keys[&spot]);
                }
                Told::Answered { id, status } => {
                    let spot = spot(id);
                    if is_done(*status) || self.letters.contains_key(&spot) {
                        order.done(spot);
                    }
                }
            }
        }
        order
    }
}

fn is_done(status: u64) -> bool {
    (200..300).contains(&status)
}

/// The place of a record in its source, from its origin as text.
pub(crate) fn spot(origin: &str) -> Spot {
    let parts: Vec<&str> = origin.rsplitn(3, '/').collect();
    let [offset, partition, _] = parts[..] else { panic!("{origin} is an origin") };
    (partition.parse().unwrap(), offset.parse().unwrap())
}
