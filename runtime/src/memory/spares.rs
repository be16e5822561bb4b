//! Storage that a resource gave up and may use again: streams of renames run in a few objects' memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::Storage;

/// The most storages kept in one place, whatever their size.
const KEPT: usize = 64;

/// The bytes of all spare storages of a device.
#[derive(Debug)]
pub(crate) struct SpareBytes {
    now: AtomicU64,
    most: u64,
}

impl SpareBytes {
    pub(crate) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { now: AtomicU64::new(0), most })
    }

    /// Counts bytes more, unless that would be too many.
    fn add(&self, bytes: u64) -> bool {
        // Relaxed: a count that orders nothing.
        let more = |now: u64| now.checked_add(bytes).filter(|now| *now <= self.most);
        self.now.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn sub(&self, bytes: u64) {
        self.now.fetch_sub(bytes, Relaxed);
    }
}

/// Storages that have retired, all of one resource and so all alike.
#[derive(Clone, Debug)]
pub(crate) struct Spares {
    /// Nothing is kept any more once it is `None`. A leaf lock.
    list: Arc<Mutex<Option<Vec<Storage>>>>,
    all: Arc<SpareBytes>,
}

impl Spares {
    /// None yet.
    pub(crate) fn new(all: &Arc<SpareBytes>) -> Self {
        Self { list: Arc::new(Mutex::new(Some(Vec::new()))), all: Arc::clone(all) }
    }

    pub(crate) fn take(&self) -> Option<Storage> {
        let storage = self.list.lock().as_mut()?.pop()?;
        self.all.sub(storage.size());
        Some(storage)
    }

    /// Keeps a storage that nothing uses any more, or frees it.
    pub(crate) fn give(&self, storage: Storage) {
        let mut list = self.list.lock();
        match &mut *list {
            Some(spares) if spares.len() < KEPT && self.all.add(storage.size()) => spares.push(storage),
            _ => {
                drop(list);
                drop(storage);
            }
        }
    }

    /// Frees all of them; if `closed` those that come later, too.
    pub(crate) fn free(&self, closed: bool) {
        let mut list = self.list.lock();
        let old = if closed { list.take() } else { list.as_mut().map(std::mem::take) };
        drop(list);
        let old = old.unwrap_or_default();
        self.all.sub(old.iter().map(Storage::size).sum());
        drop(old); // after the lock
    }
}
