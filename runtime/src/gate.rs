//! Waits for host copies in progress: a thread whose access overlaps one blocks until any copy ends and then checks
//! again.
//!
//! A copy is noted under its resource's lock and made without a lock (`replace/backing.rs`). A thread that finds it
//! reads the count under the same lock; the copy is removed under that lock before the count changes. So no wakeup is
//! lost.

use crate::sync::{Condvar, Mutex};

/// The number of host copies that have ended on a device.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// A leaf lock.
    ended: Mutex<u64>,
    moved: Condvar,
}

impl Gate {
    /// The number of ended copies.
    pub(crate) fn count(&self) -> u64 {
        *self.ended.lock()
    }

    /// Counts a copy that has ended and was removed from its resource.
    pub(crate) fn end(&self) {
        *self.ended.lock() += 1;
        self.moved.notify_all();
    }

    /// Returns when more than `seen` copies have ended.
    pub(crate) fn wait(&self, seen: u64) {
        let mut ended = self.ended.lock();
        while *ended == seen {
            ended = self.moved.wait(ended);
        }
    }
}
