//! The group coordinator: members, generations, assignments and committed offsets.
//!
//! Comes in: requests as decoded, and whether a topic exists. Goes out: responses, for JoinGroup and
//! SyncGroup when the group is ready. What a response tells is in the journal before it is sent.
//! Decisions are in `group.rs` and its neighbours, as plain data; this file waits and keeps time.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use crate::clock;

mod admin;
mod book;
mod commit;
mod config;
mod entry;
mod fetch;
mod group;
mod join;
mod member;
mod membership;
mod offsets;
mod rebalance;
mod requests;
mod retention;
mod subscription;
#[cfg(test)]
mod tests;

pub(crate) use config::GroupsConfig;

use book::Book;
use group::{Effects, JoinAnswer, State, SyncAnswer};
use join::Limits;
use member::Ticket;

/// Who sends a request, as DescribeGroups will show it.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// From the request's header.
    pub client_id: String,
    /// The bare address.
    pub host: String,
}

/// The groups of the broker; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Groups(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: GroupsConfig,
    desk: Mutex<Desk>,
    /// Rung when a deadline comes before the one the timers wait for.
    timers: Notify,
    opened: Instant,
}

#[derive(Debug)]
struct Desk {
    book: Book,
    joins: HashMap<Ticket, oneshot::Sender<JoinAnswer>>,
    syncs: HashMap<Ticket, oneshot::Sender<SyncAnswer>>,
    last_ticket: u64,
    /// Until when the timers sleep.
    armed: Option<i64>,
    next_retention: i64,
}

impl Groups {
    /// Reads what was written down; members that survived have their whole session to come back.
    pub(crate) fn open(dir: Option<&Path>, config: GroupsConfig) -> io::Result<Self> {
        let mut book = Book::open(dir, config.compact_above_bytes)?;
        for group in book.groups.values_mut() {
            if !config.restore_members && group.state == State::Stable {
                group.dismiss(clock::now_ms());
            }
            for member in group.members.values_mut() {
                member.heard(0);
            }
        }
        let desk = Desk {
            book,
            joins: HashMap::new(),
            syncs: HashMap::new(),
            last_ticket: 0,
            armed: None,
            next_retention: 0,
        };
        let opened = clock::instant();
        Ok(Self(Arc::new(Shared { config, desk: Mutex::new(desk), timers: Notify::new(), opened })))
    }

    /// The timers: sessions, rebalances and retention. Runs until it is dropped and sleeps until there is work.
    pub(crate) async fn run(self) {
        loop {
            match self.fire() {
                None => self.0.timers.notified().await,
                Some(at) => {
                    let at = self.0.opened + Duration::from_millis(at.unsigned_abs());
                    // Either way the deadlines are looked at anew.
                    let _ = timeout_at(at, self.0.timers.notified()).await;
                }
            }
        }
    }

    /// Acts on what is due and says when there will be more.
    fn fire(&self) -> Option<i64> {
        let now = self.now();
        let mut desk = self.desk();
        let groups = desk.book.groups.values();
        let due = groups.filter(|group| group.next_deadline().is_some_and(|at| at <= now));
        for id in due.map(|group| group.id.clone()).collect::<Vec<_>>() {
            let mut fx = Effects::default();
            desk.book.group(&id).expire(now, &mut fx);
            self.settle(&mut desk, &id, fx, now);
        }
        let retention = self.sweep(&mut desk, now);
        let deadlines = desk.book.groups.values().filter_map(group::Group::next_deadline);
        desk.armed = deadlines.chain(retention).min();
        desk.armed
    }

    /// Writes down what must be, answers whom it concerns, and sees that the timers wake in time.
    fn settle(&self, desk: &mut Desk, group_id: &str, mut fx: Effects, now: i64) {
        if fx.record
            && let Err(error) = desk.book.write_generation(group_id, clock::now_ms())
        {
            warn!(group = group_id, %error, "cannot write down the generation");
            desk.book.group(group_id).assignment_lost(now, &mut fx);
        }
        // A receiver that is gone is a connection that was closed: the session will end by itself.
        for (ticket, answer) in fx.joins {
            if let Some(sender) = desk.joins.remove(&ticket) {
                let _ = sender.send(answer);
            }
        }
        for (ticket, answer) in fx.syncs {
            if let Some(sender) = desk.syncs.remove(&ticket) {
                let _ = sender.send(answer);
            }
        }
        let next = desk.book.groups.get(group_id).and_then(group::Group::next_deadline);
        if next.is_some_and(|next| desk.armed.is_none_or(|armed| next < armed)) {
            desk.armed = next;
            self.0.timers.notify_one();
        }
    }

    fn limits(&self) -> Limits {
        Limits {
            max_size: self.0.config.max_group_size,
            initial_delay_ms: i64::from(self.0.config.initial_rebalance_delay_ms),
        }
    }

    fn now(&self) -> i64 {
        let since = clock::instant().duration_since(self.0.opened);
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Forces what was written down onto the disk.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.desk().book.sync()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Desk {
    fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }
}
