//! Random lives of a group: whatever members do and leave undone, the promises hold.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use crate::groups::group::{Effects, Group, State};
use crate::groups::join::{Join, Limits};
use crate::groups::member::Ticket;
use crate::groups::membership::Sync;

const CLIENTS: usize = 4;
const LIMITS: Limits = Limits {
    max_size: usize::MAX,
    initial_delay_ms: 0,
};
const SLOW_LIMITS: Limits = Limits {
    max_size: usize::MAX,
    initial_delay_ms: 3_000,
};

#[derive(Debug, Clone, Copy)]
enum Step {
    Join {
        client: usize,
        forget_id: bool,
        sticky: bool,
    },
    Sync(usize),
    Heartbeat(usize),
    Leave(usize),
    Pass(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let client = 0..CLIENTS;
    let step = prop_oneof![
        4 => (client.clone(), prop::bool::weighted(0.1), any::<bool>())
            .prop_map(|(client, forget_id, sticky)| Step::Join { client, forget_id, sticky }),
        4 => client.clone().prop_map(Step::Sync),
        2 => client.clone().prop_map(Step::Heartbeat),
        1 => client.prop_map(Step::Leave),
        2 => prop_oneof![Just(1i64), 100..20_000i64].prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..80)
}

/// Clients 0 and 1 are dynamic; the others have an instance.
#[derive(Debug, Clone, Default)]
struct Client {
    id: String,
    generation: i32,
    leads: Vec<String>,
}

struct World {
    group: Group,
    limits: Limits,
    now: i64,
    clients: Vec<Client>,
    asked: BTreeMap<Ticket, usize>,
    open: BTreeSet<Ticket>,
    next: u64,
    /// What was handed out, by generation and member.
    assigned: BTreeMap<(i32, String), Bytes>,
    syncs: BTreeMap<Ticket, (i32, String)>,
    generation_seen: i32,
}

impl World {
    fn new(limits: Limits) -> Self {
        Self {
            group: Group::new("g"),
            limits,
            now: 0,
            clients: vec![Client::default(); CLIENTS],
            asked: BTreeMap::new(),
            open: BTreeSet::new(),
            next: 0,
            assigned: BTreeMap::new(),
            syncs: BTreeMap::new(),
            generation_seen: 0,
        }
    }

    fn ticket(&mut self, client: usize) -> Ticket {
        self.next += 1;
        let ticket = Ticket(self.next);
        self.asked.insert(ticket, client);
        self.open.insert(ticket);
        ticket
    }

    fn step(&mut self, step: Step) {
        let mut fx = Effects::default();
        match step {
            Step::Join {
                client,
                forget_id,
                sticky,
            } => self.join(client, forget_id, sticky, &mut fx),
            Step::Sync(client) => self.sync(client, &mut fx),
            Step::Heartbeat(client) => {
                let known = &self.clients[client];
                let _ = self.group.heartbeat(&known.id, None, known.generation, self.now);
            }
            Step::Leave(client) => {
                let id = std::mem::take(&mut self.clients[client].id);
                let _ = self.group.leave(&id, None, self.now, &mut fx);
            }
            Step::Pass(ms) => {
                let until = self.now + ms;
                self.run_timers(until);
                self.now = until;
            }
        }
        self.take(fx);
        self.check();
    }

    fn join(&mut self, client: usize, forget_id: bool, sticky: bool, fx: &mut Effects) {
        if forget_id {
            self.clients[client].id.clear();
        }
        let ticket = self.ticket(client);
        let range = ("range".to_owned(), Bytes::from_static(b"r"));
        let more = ("sticky".to_owned(), Bytes::from_static(b"s"));
        let join = Join {
            ticket,
            member_id: self.clients[client].id.clone(),
            fresh_id: format!("{client}-{}", self.next),
            instance: (client >= 2).then(|| format!("instance-{client}")),
            client_id: String::new(),
            client_host: String::new(),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 15_000,
            protocol_type: "consumer".to_owned(),
            protocols: if sticky { vec![more, range] } else { vec![range] },
            id_first: client == 0,
            can_skip_assignment: client == 3,
        };
        self.group.join(join, self.limits, self.now, fx);
    }

    fn sync(&mut self, client: usize, fx: &mut Effects) {
        let known = self.clients[client].clone();
        let ticket = self.ticket(client);
        self.syncs.insert(ticket, (known.generation, known.id.clone()));
        // Every sync of a leader assigns anew: only one of them may ever be handed out.
        let share = |id: &String| (id.clone(), Bytes::from(format!("{id} by {ticket:?}")));
        let sync = Sync {
            ticket,
            generation: known.generation,
            member_id: known.id,
            instance: None,
            protocol_type: None,
            protocol: None,
            assignments: known.leads.iter().map(share).collect(),
        };
        self.group.sync(sync, self.now, fx);
    }

    fn run_timers(&mut self, until: i64) {
        while let Some(at) = self.group.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            let before = self.group.next_deadline();
            let mut fx = Effects::default();
            self.group.expire(self.now, &mut fx);
            self.take(fx);
            self.check();
            assert_ne!(
                self.group.next_deadline(),
                before,
                "a timer that fires changes something"
            );
        }
    }

    fn take(&mut self, fx: Effects) {
        for (ticket, answer) in fx.joins {
            assert!(self.open.remove(&ticket), "answered once");
            let client = &mut self.clients[self.asked[&ticket]];
            match answer {
                Ok(joined) => {
                    assert!(joined.generation >= client.generation, "generations grow");
                    assert!(joined.members.is_empty() || joined.leader == joined.member_id);
                    client.leads = joined.members.into_iter().map(|(id, _, _)| id).collect();
                    client.id = joined.member_id;
                    client.generation = joined.generation;
                }
                Err(refused) => client.id = refused.member_id,
            }
        }
        for (ticket, answer) in fx.syncs {
            assert!(self.open.remove(&ticket), "answered once");
            let Ok(synced) = answer else { continue };
            let whose = self.syncs[&ticket].clone();
            assert_eq!(
                whose.0, self.group.generation,
                "an assignment is of the generation asked for"
            );
            let first = self
                .assigned
                .entry(whose)
                .or_insert_with(|| synced.assignment.clone());
            assert_eq!(
                *first, synced.assignment,
                "one assignment per member and generation"
            );
        }
    }

    fn check(&mut self) {
        let group = &self.group;
        assert!(group.generation >= self.generation_seen, "generations grow");
        self.generation_seen = group.generation;
        let waiting = group
            .members
            .values()
            .flat_map(|member| [member.joining, member.syncing]);
        let waiting: BTreeSet<Ticket> = waiting.flatten().collect();
        assert_eq!(waiting, self.open, "who is not answered is waited for");
        match group.state {
            State::Empty => assert!(group.members.is_empty() && group.leader.is_none()),
            State::Preparing { .. } => assert!(group.members.values().all(|member| member.syncing.is_none())),
            State::Completing | State::Stable => {
                assert!(group.members.contains_key(group.leader.as_deref().unwrap()));
                assert!(group.members.values().all(|member| member.joining.is_none()));
                let protocol = group.protocol.as_deref().unwrap();
                assert!(group.members.values().all(|member| member.supports(protocol)));
            }
        }
        for (instance, id) in &group.instances {
            assert_eq!(group.members[id].instance.as_ref(), Some(instance));
        }
    }

    /// Everyone falls silent: the timers alone must bring every wait to an end.
    fn fall_silent(&mut self) {
        for _ in 0..1_000 {
            let Some(at) = self.group.next_deadline() else {
                break;
            };
            self.run_timers(at);
        }
        assert_eq!(self.group.next_deadline(), None, "timers come to an end");
        assert!(self.open.is_empty(), "nobody waits for ever");
        assert_eq!(self.group.state, State::Empty, "the silent are given up");
    }
}

proptest! {
    #[test]
    fn whatever_members_do_generations_grow_and_every_wait_ends(steps in steps(), slow in any::<bool>()) {
        let mut world = World::new(if slow { SLOW_LIMITS } else { LIMITS });
        for step in steps {
            world.step(step);
        }
        world.fall_silent();
    }
}
