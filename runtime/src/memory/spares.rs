//! Spare storage that a resource gave up and may use again: a stream of renames needs the memory of a few objects only.
//!
//! All spare storages of a device are in one pool with a limit in bytes. If it is full the oldest spares are freed, of
//! any resource: no resource prevents others from having spares.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::sync::Mutex;

/// The largest number of spares of one resource, whatever their size.
const KEPT: usize = 64;

/// Storage that takes memory while it is spare.
pub(crate) trait Bytes {
    /// Its size in bytes.
    fn bytes(&self) -> u64;
}

/// The spare storages of a device.
#[derive(Debug)]
pub(crate) struct SparePool<S> {
    /// The limit for the bytes of all spares.
    max_bytes: u64,
    /// A leaf lock.
    inner: Mutex<Pool<S>>,
}

#[derive(Debug)]
struct Pool<S> {
    bytes: u64,
    next: u64,
    /// By number, oldest first, with the place of the resource that it belongs to.
    all: BTreeMap<u64, (u64, S)>,
    /// By place, the numbers of its storages, oldest first; closed places are removed.
    places: HashMap<u64, VecDeque<u64>, FixedState>,
}

impl<S: Bytes> SparePool<S> {
    /// An empty pool.
    pub(crate) fn new(max_bytes: u64) -> Arc<Self> {
        let inner = Pool { bytes: 0, next: 0, all: BTreeMap::new(), places: HashMap::default() };
        Arc::new(Self { max_bytes, inner: Mutex::new(inner) })
    }

    /// Frees all of them.
    pub(crate) fn free(&self) {
        let mut inner = self.inner.lock();
        inner.places.values_mut().for_each(VecDeque::clear);
        inner.bytes = 0;
        let old = std::mem::take(&mut inner.all);
        drop(inner);
        drop(old); // after the lock
    }
}

impl<S: Bytes> Pool<S> {
    /// Removes the storage with that number.
    fn remove(&mut self, number: u64) -> Option<S> {
        let (place, storage) = self.all.remove(&number)?;
        self.bytes -= storage.bytes();
        if let Some(numbers) = self.places.get_mut(&place) {
            numbers.retain(|other| *other != number);
        }
        Some(storage)
    }
}

/// The spare storages of one resource, which are all alike.
#[derive(Debug)]
pub(crate) struct Spares<S> {
    place: u64,
    pool: Arc<SparePool<S>>,
}

impl<S> Clone for Spares<S> {
    fn clone(&self) -> Self {
        Self { place: self.place, pool: Arc::clone(&self.pool) }
    }
}

impl<S: Bytes> Spares<S> {
    /// A new place without spares.
    pub(crate) fn new(pool: &Arc<SparePool<S>>) -> Self {
        let mut inner = pool.inner.lock();
        inner.next += 1;
        let place = inner.next;
        inner.places.insert(place, VecDeque::new());
        Self { place, pool: Arc::clone(pool) }
    }

    /// The newest spare.
    pub(crate) fn take(&self) -> Option<S> {
        let mut inner = self.pool.inner.lock();
        let number = *inner.places.get(&self.place)?.back()?;
        inner.remove(number)
    }

    /// Keeps an unused storage, or frees it.
    pub(crate) fn give(&self, storage: S) {
        let mut inner = self.pool.inner.lock();
        let mut gone = Vec::new();
        let number = inner.next + 1;
        match inner.places.get_mut(&self.place) {
            Some(numbers) if storage.bytes() <= self.pool.max_bytes => {
                numbers.push_back(number);
                let too_many = if numbers.len() > KEPT { numbers.front().copied() } else { None };
                inner.next = number;
                inner.bytes += storage.bytes();
                inner.all.insert(number, (self.place, storage));
                gone.extend(too_many.and_then(|oldest| inner.remove(oldest)));
                while inner.bytes > self.pool.max_bytes
                    && let Some((&oldest, _)) = inner.all.first_key_value()
                {
                    gone.extend(inner.remove(oldest));
                }
            }
            _ => gone.push(storage),
        }
        drop(inner);
        drop(gone); // after the lock
    }

    /// Frees all spares, and those that come later.
    pub(crate) fn close(&self) {
        let mut inner = self.pool.inner.lock();
        let numbers = inner.places.remove(&self.place).unwrap_or_default();
        let gone: Vec<_> = numbers.into_iter().filter_map(|number| inner.remove(number)).collect();
        drop(inner);
        drop(gone); // after the lock
    }
}
