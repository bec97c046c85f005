//! What a replay would do: which letters, in which order, where to, and which are left out and why.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use redrive_core::{Origin, Topic};

use super::route::{Candidate, Route, Routes, Why};
use crate::jobs::{Hold, Options};

/// A letter that was sent back so often is not sent again, unless something else is said.
pub const MAX_REPLAYS: u32 = 5;

/// What a replay would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The letters in the order of sending.
    pub letters: Vec<Origin>,
    /// How many go where.
    pub routes: BTreeMap<Route, u64>,
    /// How many are left out, and why.
    pub left_out: BTreeMap<Why, u64>,
    /// Letters that have to go before others that were asked for, and do not.
    pub leaders: BTreeSet<Origin>,
    /// How many go though the letters that they followed do not.
    pub ahead: u64,
    /// How many go to topics that no worker of Redrive is known to consume, so that nothing is heard of them.
    pub silent: BTreeMap<Topic, u64>,
}

impl Plan {
    /// What becomes of these letters. `held` are those that a job has sent, or is going to send.
    #[must_use]
    pub fn of(
        mut candidates: Vec<Candidate>,
        held: &HashMap<Origin, Hold>,
        routes: &Routes,
        options: &Options,
    ) -> Self {
        let mut plan = Self::default();
        // Records of a key come from one partition, and their order is that of their origins, whenever each
        // became a letter.
        candidates.sort_by(|one, other| (&one.origin, &one.at).cmp(&(&other.origin, &other.at)));
        // Who is asked for twice, by itself and as a follower, is sent and counted once.
        candidates.dedup_by(|one, other| one.at == other.at);
        let leaders: BTreeSet<Origin> =
            candidates.iter().flat_map(|letter| letter.leaders.iter().cloned()).collect();
        // Who leads comes before who follows.
        let mut sent: BTreeSet<Origin> = BTreeSet::new();
        candidates.retain(|letter| {
            let route = route(letter, held.get(&letter.at), routes, options);
            let missing: Vec<&Origin> =
                letter.leaders.iter().filter(|leader| !sent.contains(*leader)).collect();
            let why = match route {
                Ok(_) if !missing.is_empty() && !options.ahead => {
                    plan.leaders.extend(missing.into_iter().cloned());
                    Why::Behind
                }
                Ok(route) => {
                    if !routes.is_heard(&route) {
                        *plan.silent.entry(route.topic().clone()).or_default() += 1;
                    }
                    *plan.routes.entry(route).or_default() += 1;
                    plan.ahead += u64::from(!missing.is_empty());
                    if leaders.contains(&letter.at) {
                        sent.insert(letter.at.clone());
                    }
                    return true;
                }
                Err(why) => why,
            };
            *plan.left_out.entry(why).or_default() += 1;
            false
        });
        plan.letters = match options.canary {
            Some(canary) => ahead(candidates, canary),
            None => candidates.into_iter().map(|letter| letter.at).collect(),
        };
        plan
    }

    /// Whether something is left out.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// How many were asked for.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.letters.len() as u64 + self.left_out.values().sum::<u64>()
    }
}

fn route(letter: &Candidate, hold: Option<&Hold>, routes: &Routes, options: &Options) -> Result<Route, Why> {
    match hold {
        Some(hold) if !hold.sent => return Err(Why::Held(hold.job.clone())),
        Some(hold) if !options.again => return Err(Why::Sent(hold.job.clone())),
        Some(_) | None => {}
    }
    let most = options.max_replays.unwrap_or(MAX_REPLAYS);
    if letter.replays >= most {
        return Err(Why::TooOften(letter.replays));
    }
    routes.route(letter)
}

/// Puts so many first: some of each partition, so that a few of one key do not stand for all. What is of one
/// partition keeps its order.
fn ahead(candidates: Vec<Candidate>, canary: u64) -> Vec<Origin> {
    let mut partitions: BTreeMap<Option<(Topic, i32)>, Vec<Origin>> = BTreeMap::new();
    for letter in candidates {
        let partition = letter.origin.map(|origin| (origin.topic, origin.partition));
        partitions.entry(partition).or_default().push(letter.at);
    }
    let mut rests: Vec<_> = partitions.into_values().map(Vec::into_iter).collect();
    let canary = usize::try_from(canary).unwrap_or(usize::MAX);
    let mut order = Vec::new();
    while order.len() < canary {
        let before = order.len();
        let turn = rests.iter_mut().filter_map(Iterator::next).take(canary - before);
        order.extend(turn);
        if order.len() == before {
            break;
        }
    }
    order.extend(rests.into_iter().flatten());
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Dialect;
    use crate::jobs::{JobId, Whereto};

    fn topic(name: &str) -> Topic {
        name.parse().unwrap()
    }

    fn letter(at: i64, partition: i32, origin: i64) -> Candidate {
        Candidate {
            at: Origin { topic: topic("orders.g.dlq"), partition: 0, offset: at },
            dialect: Dialect::Redrive,
            origin: Some(Origin { topic: topic("orders"), partition, offset: origin }),
            source: Some((topic("orders"), Some(partition))),
            group: Some("g".to_owned()),
            replays: 0,
            others: Vec::new(),
            is_empty: false,
            leaders: Vec::new(),
        }
    }

    fn routes(to: Whereto) -> Routes {
        Routes {
            to: Some(to),
            shelves: BTreeMap::from([((topic("orders"), "g".to_owned()), Some(topic("orders.g.shelf")))]),
            partitions: ["orders", "orders.g.shelf", "other"].map(|name| (topic(name), Some(3))).into(),
            consumed: BTreeSet::from([topic("orders")]),
        }
    }

    fn planned(candidates: Vec<Candidate>, to: Whereto, options: &Options) -> Plan {
        Plan::of(candidates, &HashMap::new(), &routes(to), options)
    }

    fn only(plan: &Plan) -> (&Route, u64) {
        let mut all = plan.routes.iter();
        let (route, count) = all.next().unwrap();
        assert_eq!(all.next(), None);
        (route, *count)
    }

    #[test]
    fn each_letter_goes_where_it_belongs() {
        let shelf = Route::Shelf { shelf: topic("orders.g.shelf"), group: "g".to_owned() };
        let plan = planned(vec![letter(0, 0, 0)], Whereto::Usual, &Options::default());
        assert_eq!(only(&plan), (&shelf, 1));

        let foreign = Candidate { dialect: Dialect::Spring, ..letter(0, 0, 0) };
        let plan = planned(vec![foreign.clone()], Whereto::Usual, &Options::default());
        assert_eq!(only(&plan), (&Route::Origin(topic("orders")), 1), "said plainly");
        let plan = planned(vec![foreign], Whereto::Retry, &Options::default());
        assert_eq!(plan.left_out, BTreeMap::from([(Why::NoShelf, 1)]));

        let lost = Candidate { origin: None, source: None, ..letter(0, 0, 0) };
        let plan = planned(vec![lost.clone()], Whereto::Usual, &Options::default());
        assert_eq!(plan.left_out, BTreeMap::from([(Why::NoOrigin, 1)]));
        let plan = planned(vec![lost], Whereto::Topic(topic("other")), &Options::default());
        assert_eq!(only(&plan), (&Route::Topic(topic("other")), 1));
    }

    #[test]
    fn it_is_known_of_which_letters_nothing_will_be_heard() {
        let silent = |to| planned(vec![letter(0, 0, 0)], to, &Options::default()).silent;
        assert_eq!(silent(Whereto::Usual), BTreeMap::new());
        assert_eq!(silent(Whereto::Origin), BTreeMap::new(), "a group of Redrive consumes it");
        assert_eq!(silent(Whereto::Topic(topic("other"))), BTreeMap::from([(topic("other"), 1)]));
    }

    #[test]
    fn what_cannot_or_must_not_go_is_left_out_with_the_reason() {
        let id = JobId::by(1);
        let held =
            |sent| HashMap::from_iter([(letter(0, 0, 0).at, Hold { job: id.clone(), number: 0, sent })]);
        let why = |candidate: Candidate, held: &HashMap<Origin, Hold>, options: &Options| {
            let plan = Plan::of(vec![candidate], held, &routes(Whereto::Usual), options);
            plan.left_out.into_keys().next()
        };
        let (none, usual) = (HashMap::new(), Options::default());
        let again = Options { again: true, ..Options::default() };
        assert_eq!(why(letter(0, 0, 0), &held(true), &usual), Some(Why::Sent(id.clone())));
        assert_eq!(why(letter(0, 0, 0), &held(true), &again), None, "if somebody asks for it");
        assert_eq!(
            why(letter(0, 0, 0), &held(false), &again),
            Some(Why::Held(id.clone())),
            "never twice at once"
        );
        let worn = Candidate { replays: 5, ..letter(0, 0, 0) };
        assert_eq!(why(worn.clone(), &none, &usual), Some(Why::TooOften(5)));
        let more = Options { max_replays: Some(6), ..Options::default() };
        assert_eq!(why(worn, &none, &more), None);
        let deleted = Candidate { is_empty: true, ..letter(0, 0, 0) };
        assert_eq!(why(deleted, &none, &usual), Some(Why::Empty));
        let elsewhere = letter(0, 7, 0);
        assert_eq!(why(elsewhere, &none, &usual), Some(Why::NoPartition(topic("orders.g.shelf"))));
        let nowhere = Candidate { dialect: Dialect::Spring, ..letter(0, -5, 0) };
        assert_eq!(why(nowhere, &none, &usual), Some(Why::BadPartition), "no topic has such a partition");
    }

    #[test]
    fn a_letter_that_says_its_topic_alone_goes_where_its_key_leads_and_that_is_said() {
        let seed = Candidate {
            dialect: Dialect::Seeds,
            origin: None,
            source: Some((topic("orders"), None)),
            ..letter(0, 0, 0)
        };
        for to in [Whereto::Usual, Whereto::Origin] {
            let plan = planned(vec![seed.clone()], to, &Options::default());
            assert_eq!(only(&plan), (&Route::ByKey(topic("orders")), 1));
            assert!(only(&plan).0.to_string().contains("their keys lead to"), "{:?}", plan.routes);
        }
        let plan = planned(vec![seed.clone()], Whereto::Retry, &Options::default());
        assert_eq!(plan.left_out, BTreeMap::from([(Why::NoOrigin, 1)]));
        let gone = Candidate { source: Some((topic("gone"), None)), ..seed };
        let plan = planned(vec![gone], Whereto::Usual, &Options::default());
        assert_eq!(plan.left_out, BTreeMap::from([(Why::NoTopic(topic("gone")), 1)]));
    }

    #[test]
    fn a_letter_that_is_asked_for_twice_is_counted_once() {
        let worn = Candidate { replays: 5, ..letter(3, 0, 3) };
        let asked = vec![letter(0, 0, 0), letter(1, 0, 1), worn.clone(), letter(0, 0, 0), worn];
        let plan = planned(asked, Whereto::Usual, &Options::default());
        assert_eq!((only(&plan).1, plan.letters.len(), plan.asked()), (2, 2, 3));
    }

    #[test]
    fn a_follower_is_never_ahead_of_the_letter_that_it_followed_unless_somebody_asks_for_it() {
        let leader = letter(5, 0, 0);
        let follower = Candidate { leaders: vec![leader.at.clone()], ..letter(1, 0, 1) };
        let usual = Options::default();
        let plan = planned(vec![follower.clone(), leader.clone()], Whereto::Usual, &usual);
        assert_eq!((plan.letters.len(), plan.letters.first()), (2, Some(&leader.at)), "after it");
        let worn = Candidate { replays: 5, ..leader.clone() };
        for asked in [vec![follower.clone()], vec![worn, follower.clone()]] {
            let plan = planned(asked, Whereto::Origin, &usual);
            assert!(plan.letters.is_empty() && plan.left_out.contains_key(&Why::Behind), "{plan:?}");
            assert_eq!(plan.leaders, BTreeSet::from([leader.at.clone()]));
        }
        let ahead = Options { ahead: true, ..Options::default() };
        let plan = planned(vec![follower], Whereto::Usual, &ahead);
        assert_eq!((plan.letters.len(), plan.ahead), (1, 1));
    }

    proptest! {
        #[test]
        fn letters_of_a_partition_go_in_the_order_of_their_origins(
            origins in prop::collection::btree_set((0..3_i32, 0..50_i64), 0..60),
            canary in proptest::option::of(0..70_u64),
        ) {
            // They became letters in whichever order.
            let candidates: Vec<_> = origins.iter().enumerate()
                .map(|(n, (partition, origin))| letter((n as i64 * 37) % 61, *partition, *origin)).collect();
            let options = Options { canary, ..Options::default() };
            let by_place: HashMap<Origin, Origin> =
                candidates.iter().map(|letter| (letter.at.clone(), letter.origin.clone().unwrap())).collect();
            let plan = planned(candidates, Whereto::Usual, &options);
            prop_assert_eq!(plan.letters.len(), origins.len());
            let sent: Vec<_> = plan.letters.iter().map(|at| by_place[at].clone()).collect();
            for partition in 0..3 {
                prop_assert!(sent.iter().filter(|one| one.partition == partition).map(|one| one.offset).is_sorted());
            }
        }
    }
}
