//! Waiters: threads, tasks and queues that are woken when what they wait for may have happened.

use std::fmt::Debug;
use std::sync::{Arc, Weak};

/// A sleeping thread, a pending task, or a suspended queue. A spurious wake-up is harmless: the waiter tests its
/// condition again.
pub(crate) trait Wake: Debug + Send + Sync {
    /// What it waits for may have happened, or the device is lost. The caller must hold no lock.
    fn wake(self: Arc<Self>);
}

/// A queue that a waiting thread can work on.
pub(crate) trait Helper: Debug + Send + Sync {
    /// Works on the queue until `done`. `false` if there was no work for this thread: it may sleep.
    fn help(self: Arc<Self>, done: &dyn Fn() -> bool) -> bool;
}

/// The waiters for one counter, fence or loss. Does not keep them alive.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    list: Vec<(u64, Weak<dyn Wake>)>,
}

impl Watchers {
    /// Adds a waiter for a value.
    pub(crate) fn add(&mut self, value: u64, waiter: &Arc<dyn Wake>) {
        self.list.retain(|(_, listed)| listed.strong_count() > 0);
        self.list.push((value, Arc::downgrade(waiter)));
    }

    /// Removes one entry of a waiter: to be called once per [`Watchers::add`].
    pub(crate) fn remove(&mut self, waiter: &Arc<dyn Wake>) {
        let is_waiter = |listed: &Weak<dyn Wake>| std::ptr::addr_eq(listed.as_ptr(), Arc::as_ptr(waiter));
        if let Some(at) = self.list.iter().position(|(_, listed)| is_waiter(listed)) {
            self.list.swap_remove(at);
        }
    }

    /// Removes and returns the waiters for this value or a lower one: the caller wakes them after it has released its
    /// lock.
    pub(crate) fn take(&mut self, value: u64) -> Vec<Arc<dyn Wake>> {
        if self.list.is_empty() {
            return Vec::new();
        }
        let (ready, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.list).into_iter().partition(|(wanted, _)| *wanted <= value);
        self.list = others;
        ready.iter().filter_map(|(_, waiter)| waiter.upgrade()).collect()
    }
}
