//! Storage that a resource gave up and may use again: streams of renames run in a few objects' memory.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Storage;

/// The most storages kept for one resource.
const KEPT: usize = 4;

/// Storages that have retired, all of one resource and so all alike.
#[derive(Clone, Debug)]
pub(crate) struct Spares {
    /// Nothing is kept any more once it is `None`. A leaf lock.
    list: Arc<Mutex<Option<Vec<Storage>>>>,
}

impl Spares {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { list: Arc::new(Mutex::new(Some(Vec::new()))) }
    }

    /// Keeps none.
    pub(crate) fn closed() -> Self {
        Self { list: Arc::new(Mutex::new(None)) }
    }

    pub(crate) fn take(&self) -> Option<Storage> {
        self.list.lock().as_mut()?.pop()
    }

    /// Keeps a storage that nothing uses any more, or frees it.
    pub(crate) fn give(&self, storage: Storage) {
        let mut list = self.list.lock();
        match &mut *list {
            Some(spares) if spares.len() < KEPT => spares.push(storage),
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
        drop(old); // after the lock
    }
}
