//! What somebody who waits looks like to those that it waits for.

use std::fmt::Debug;
use std::sync::{Arc, Weak};

/// A sleeping thread, or a queue that is parked. Waking it once too often costs a look; it looks again by itself.
pub(crate) trait Wake: Debug + Send + Sync {
    /// What it waits for may have happened, or the device is lost. No lock may be held by the caller.
    fn wake(self: Arc<Self>);
}

/// Those who wait for one thing; each may be gone by now.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    list: Vec<(u64, Weak<dyn Wake>)>,
}

impl Watchers {
    /// Writes somebody down who waits for a value.
    pub(crate) fn add(&mut self, value: u64, who: &Arc<dyn Wake>) {
        self.list.retain(|(_, who)| who.strong_count() > 0);
        self.list.push((value, Arc::downgrade(who)));
    }

    /// Somebody waits no more; once for each time that it was added.
    pub(crate) fn remove(&mut self, who: &Arc<dyn Wake>) {
        if let Some(at) = self.list.iter().position(|(_, listed)| std::ptr::addr_eq(listed.as_ptr(), Arc::as_ptr(who)))
        {
            self.list.swap_remove(at);
        }
    }

    /// Takes those out who wait for this value or a lower one, to be woken when the lock is free again.
    pub(crate) fn take(&mut self, value: u64) -> Vec<Arc<dyn Wake>> {
        if self.list.is_empty() {
            return Vec::new();
        }
        let (ripe, others) = std::mem::take(&mut self.list).into_iter().partition(|(wanted, _)| *wanted <= value);
        self.list = others;
        let ripe: Vec<(u64, Weak<dyn Wake>)> = ripe;
        ripe.iter().filter_map(|(_, who)| who.upgrade()).collect()
    }
}
