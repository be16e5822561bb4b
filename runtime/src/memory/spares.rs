//! Storage that a resource gave up and may use again: streams of renames run in a few objects' memory.
//!
//! All spare storages of a device are in one pool of so many bytes. Where it is full those go that are spare for longest,
//! whoever left them: no resource keeps others from having spares.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::sync::Mutex;

/// The most storages kept in one place, whatever their size.
const KEPT: usize = 64;

/// What takes memory while it is spare.
pub(crate) trait Bytes {
    /// How much.
    fn bytes(&self) -> u64;
}

/// The spare storages of a device.
#[derive(Debug)]
pub(crate) struct SparePool<S> {
    /// The most bytes of them all.
    most: u64,
    /// A leaf lock.
    inner: Mutex<Inner<S>>,
}

#[derive(Debug)]
struct Inner<S> {
    bytes: u64,
    next: u64,
    /// By number, those spare for longest first, with the place that it belongs to.
    all: BTreeMap<u64, (u64, S)>,
    /// By place, the numbers of its storages, those spare for longest first; a place that is closed is not there.
    places: HashMap<u64, VecDeque<u64>, FixedState>,
}

impl<S: Bytes> SparePool<S> {
    /// An empty pool.
    pub(crate) fn new(most: u64) -> Arc<Self> {
        let inner = Inner { bytes: 0, next: 0, all: BTreeMap::new(), places: HashMap::default() };
        Arc::new(Self { most, inner: Mutex::new(inner) })
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

impl<S: Bytes> Inner<S> {
    /// Takes out the storage of that number.
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
    /// A place of its own; none are there yet.
    pub(crate) fn new(pool: &Arc<SparePool<S>>) -> Self {
        let mut inner = pool.inner.lock();
        inner.next += 1;
        let place = inner.next;
        inner.places.insert(place, VecDeque::new());
        Self { place, pool: Arc::clone(pool) }
    }

    /// The one that is spare for the shortest time.
    pub(crate) fn take(&self) -> Option<S> {
        let mut inner = self.pool.inner.lock();
        let number = *inner.places.get(&self.place)?.back()?;
        inner.remove(number)
    }

    /// Keeps a storage that nothing uses any more, or frees it.
    pub(crate) fn give(&self, storage: S) {
        let mut inner = self.pool.inner.lock();
        let mut gone = Vec::new();
        let number = inner.next + 1;
        match inner.places.get_mut(&self.place) {
            Some(numbers) if storage.bytes() <= self.pool.most => {
                numbers.push_back(number);
                let too_many = if numbers.len() > KEPT { numbers.front().copied() } else { None };
                inner.next = number;
                inner.bytes += storage.bytes();
                inner.all.insert(number, (self.place, storage));
                gone.extend(too_many.and_then(|oldest| inner.remove(oldest)));
                while inner.bytes > self.pool.most
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

    /// Frees all of them, and those that come later.
    pub(crate) fn close(&self) {
        let mut inner = self.pool.inner.lock();
        let numbers = inner.places.remove(&self.place).unwrap_or_default();
        let gone: Vec<_> = numbers.into_iter().filter_map(|number| inner.remove(number)).collect();
        drop(inner);
        drop(gone); // after the lock
    }
}
