//! A bound on open files: segments ask for their file, the longest unused one is closed for it.
//! The common lock is taken only when a file is opened, never to read or write one.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::sync::lock;

/// The files that are open now, at most `limit`.
#[derive(Debug)]
pub(crate) struct Handles {
    limit: usize,
    open: Mutex<VecDeque<Weak<Slot>>>,
}

/// The place of one segment's file, open or not.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    file: Mutex<Option<Arc<File>>>,
    used: AtomicBool,
}

impl Handles {
    pub(crate) fn new(limit: usize) -> Arc<Handles> {
        Arc::new(Handles {
            limit: limit.max(1),
            open: Mutex::default(),
        })
    }

    /// The file of a slot, opened (and made) if need be.
    pub(crate) fn file(&self, slot: &Arc<Slot>, path: &Path) -> io::Result<Arc<File>> {
        slot.used.store(true, Ordering::Relaxed);
        let file = {
            let mut held = lock(&slot.file);
            if let Some(file) = &*held {
                return Ok(file.clone());
            }
            let file = Arc::new(
                OpenOptions::new()
                    .read(true)
                    .append(true)
                    .create(true)
                    .open(path)?,
            );
            *held = Some(file.clone());
            file
        };
        self.admit(slot);
        Ok(file)
    }

    /// Takes the slot into the ring and closes others until the limit holds.
    fn admit(&self, slot: &Arc<Slot>) {
        let mut open = lock(&self.open);
        open.push_back(Arc::downgrade(slot));
        // Twice around at most: the first round takes back every second chance.
        for _ in 0..open.len() * 2 {
            if open.len() <= self.limit {
                return;
            }
            let Some(oldest) = open.pop_front() else { return };
            let Some(oldest) = oldest.upgrade() else { continue };
            if oldest.used.swap(false, Ordering::Relaxed) {
                open.push_back(Arc::downgrade(&oldest));
            } else {
                *lock(&oldest.file) = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_files_stay_open_than_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let handles = Handles::new(3);
        let slots: Vec<Arc<Slot>> = (0..10).map(|_| Arc::default()).collect();
        for (i, slot) in slots.iter().enumerate() {
            handles.file(slot, &dir.path().join(i.to_string())).unwrap();
        }
        let open = slots.iter().filter(|slot| lock(&slot.file).is_some()).count();
        assert_eq!(open, 3);
        assert!(
            handles.file(&slots[0], &dir.path().join("0")).is_ok(),
            "a closed one opens again"
        );
    }
}
