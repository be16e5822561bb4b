//! Allocations of storage that fail because a test demands it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use spelter_locks::Mutex;

/// Allocations, by number from 1 on, that fail.
#[derive(Debug)]
pub(crate) struct Fault {
    numbers: RangeInclusive<u64>,
    seen: AtomicU64,
}

impl Fault {
    /// The number of allocations since it was made.
    pub(crate) fn seen(&self) -> u64 {
        // Relaxed: a count that orders nothing.
        self.seen.load(Relaxed)
    }

    /// The number of those that it failed.
    pub(crate) fn failed(&self) -> u64 {
        let (first, last) = (*self.numbers.start(), self.seen().min(*self.numbers.end()));
        last.saturating_add(1).saturating_sub(first)
    }

    /// Counts an allocation; whether it fails.
    fn fails(&self) -> bool {
        // Relaxed: as in `seen`.
        self.numbers.contains(&(self.seen.fetch_add(1, Relaxed) + 1))
    }
}

/// The faults of a memory.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// The number of `list`: programs have none, and pay for one load.
    count: AtomicUsize,
    /// A leaf lock.
    list: Mutex<Vec<Arc<Fault>>>,
}

impl Faults {
    /// From now on the allocations with these numbers fail, counted from 1 on.
    pub(crate) fn add(&self, numbers: RangeInclusive<u64>) -> Arc<Fault> {
        let fault = Arc::new(Fault { numbers, seen: AtomicU64::new(0) });
        let mut list = self.list.lock();
        list.push(Arc::clone(&fault));
        // Relaxed: a thread sees the faults that it added, and those of threads that it has synchronised with.
        self.count.store(list.len(), Relaxed);
        fault
    }

    pub(crate) fn remove(&self, fault: &Arc<Fault>) {
        let mut list = self.list.lock();
        list.retain(|other| !Arc::ptr_eq(other, fault));
        // Relaxed: as in `add`.
        self.count.store(list.len(), Relaxed);
    }

    /// Counts an allocation; whether it fails.
    pub(crate) fn fails(&self) -> bool {
        // Relaxed: as in `add`. Every fault counts it, whether an earlier one fails it or not.
        self.count.load(Relaxed) > 0 && self.list.lock().iter().fold(false, |fails, fault| fault.fails() | fails)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_fault_counts_from_its_beginning() {
        let faults = Faults::default();
        assert!(!faults.fails());
        let (second, two) = (faults.add(2..=2), faults.add(1..=2));
        assert_eq!([(); 4].map(|()| faults.fails()), [true, true, false, false]);
        assert_eq!((second.seen(), second.failed(), two.failed()), (4, 1, 2));
        faults.remove(&two);
        let rest = faults.add(1..=u64::MAX);
        assert!(faults.fails());
        faults.remove(&rest);
        assert!(!faults.fails());
        assert_eq!((rest.seen(), rest.failed(), second.seen()), (1, 1, 6));
    }
}
