//! How much of what there is now, for metrics and people. Asked for now and then, never for each record.

use hashbrown::HashSet;

use super::{Flow, Now};
use crate::histogram::Histogram;
use crate::shelf::{LaneTag, Phase, Stage, Waiting};
use crate::time::Timestamp;

/// More waiting records than this are not looked at one by one: their due times are estimated.
const LOOKED_AT: usize = 200_000;

/// How much there is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Partitions that are read.
    pub reading: u32,
    /// Partitions whose shelf is being taken over.
    pub taking_over: u32,
    /// Records that wait on shelves.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// Lanes that a letter closed.
    pub lanes_closed: u64,
    /// Bytes of the shelves' logs, what is done with included.
    pub log_bytes: u64,
}

/// Waiting records by when they are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByDue {
    /// Their time has come, and they wait for another of their lane, or for a letter that closed it.
    pub held: u64,
    /// Their time has come.
    pub overdue: u64,
    /// Within a minute.
    pub minute: u64,
    /// Within an hour.
    pub hour: u64,
    /// Within a day.
    pub day: u64,
    /// Later.
    pub later: u64,
}

impl Flow {
    /// How much there is now. It takes as long as there are partitions.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges::default();
        for (_, partition) in self.partitions.iter() {
            let Some(aside) = &partition.aside else {
                gauges.reading += 1;
                continue;
            };
            match aside.owner.phase() {
                Phase::Running => gauges.reading += 1,
                Phase::Claiming | Phase::Proving | Phase::Locating | Phase::Beginning => {
                    gauges.taking_over += 1;
                }
            }
            let shelf = &aside.owner.shelf;
            gauges.waiting += shelf.waiting.len() as u64;
            gauges.waiting_bytes += shelf.waiting.bytes();
            gauges.lanes_closed += shelf.closed_lanes() as u64;
            gauges.log_bytes += aside.owner.log_bytes();
        }
        gauges
    }

    /// Waiting records by when they are due: exact up to some hundred thousand, an estimate above.
    #[must_use]
    pub fn waiting_by_due(&self, now: Now) -> ByDue {
        let asides = || self.partitions.iter().filter_map(|(_, partition)| partition.aside.as_ref());
        let total: usize = asides().map(|aside| aside.owner.shelf.waiting.len()).sum();
        let mut by_due = ByDue::default();
        if total == 0 {
            return by_due;
        }
        let share = LOOKED_AT.min(total) as f64 / total as f64;
        for aside in asides() {
            let shelf = &aside.owner.shelf;
            let closed: HashSet<LaneTag> =
                shelf.closures().map(|(_, closure)| shelf.tag(&closure.lane)).collect();
            let is_held = |one: &Waiting| match one.lane {
                Some(lane) => closed.contains(&lane) || shelf.waiting.first_of(lane) != Some(one.origin),
                None => false,
            };
            let looked_at = (shelf.waiting.len() as f64 * share).ceil() as usize;
            for one in shelf.waiting.iter().take(looked_at) {
                match one.stage {
                    Stage::Waiting | Stage::Held if one.due <= now.wall && is_held(&one) => by_due.held += 1,
                    Stage::Waiting | Stage::Held => *by_due.bucket(one.due, now.wall) += 1,
                    Stage::Out | Stage::Finished => {}
                }
            }
        }
        by_due.scaled(1.0 / share)
    }

    /// How long after their due times records came back from the shelf.
    #[must_use]
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }
}

impl ByDue {
    fn bucket(&mut self, due: Timestamp, now: Timestamp) -> &mut u64 {
        match due.since(now).as_secs() {
            _ if due <= now => &mut self.overdue,
            0..60 => &mut self.minute,
            60..3_600 => &mut self.hour,
            3_600..86_400 => &mut self.day,
            _ => &mut self.later,
        }
    }

    fn scaled(self, by: f64) -> Self {
        let scale = |count: u64| (count as f64 * by).round() as u64;
        let Self { held, overdue, minute, hour, day, later } = self;
        Self {
            held: scale(held),
            overdue: scale(overdue),
            minute: scale(minute),
            hour: scale(hour),
            day: scale(day),
            later: scale(later),
        }
    }
}
