//! Waiting for the host's own copies: who finds one in his way waits until any has ended, and looks again.
//!
//! A copy is written down under its resource's lock and made without a lock (`replace/backing.rs`). Who finds it there reads
//! the count under the same lock; the copy is taken off under that lock before the count moves. So nobody sleeps through it.

use crate::sync::{Condvar, Mutex};

/// How many copies of the host have ended on a device.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// A leaf lock.
    ended: Mutex<u64>,
    moved: Condvar,
}

impl Gate {
    /// How many have ended.
    pub(crate) fn count(&self) -> u64 {
        *self.ended.lock()
    }

    /// One has ended, and is not written down any more.
    pub(crate) fn end(&self) {
        *self.ended.lock() += 1;
        self.moved.notify_all();
    }

    /// Returns when more than so many have ended.
    pub(crate) fn wait(&self, seen: u64) {
        let mut ended = self.ended.lock();
        while *ended == seen {
            ended = self.moved.wait(ended);
        }
    }
}
