//! What the flow knows of one source partition.

use std::collections::VecDeque;

use super::Id;
use super::window::Window;
use crate::lanes::Lanes;
use crate::offsets::Offsets;

/// One source partition.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) offsets: Offsets,
    pub(super) lanes: Lanes,
    /// Every record in memory, by its offset.
    pub(super) records: Window,
    pub(super) bytes: usize,
    /// With the handler, or with a letter on its way.
    pub(super) active: usize,
    /// Ready, but the partition stands still.
    pub(super) stalled: VecDeque<Id>,
    /// A letter cannot be written.
    pub(super) held: bool,
    /// It is being given up: nothing new starts.
    pub(super) draining: bool,
    /// The source was asked not to deliver.
    pub(super) paused: bool,
}

impl Partition {
    pub(super) fn new(offsets: Offsets, lanes: Lanes) -> Self {
        Self {
            offsets,
            lanes,
            records: Window::default(),
            bytes: 0,
            active: 0,
            stalled: VecDeque::new(),
            held: false,
            draining: false,
            paused: false,
        }
    }
}
