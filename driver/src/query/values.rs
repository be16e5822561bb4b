//! Values of the queries of a pool: written by commands, read by commands and the host.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use spelter_locks::{Condvar, Mutex};

use crate::host_memory::{self, OutOfHostMemory};

/// The values of a pool.
#[derive(Debug)]
pub(crate) struct Queries {
    list: Box<[Query]>,
    /// Guards only the sleep of threads that wait for a value.
    waiting: Mutex<()>,
    written: Condvar,
}

#[derive(Debug)]
struct Query {
    value: AtomicU64,
    /// Written after the value.
    available: AtomicBool,
}

impl Queries {
    /// `count` queries without a value.
    pub(crate) fn new(count: u32) -> Result<Self, OutOfHostMemory> {
        let mut list = host_memory::list(count as usize)?;
        list.resize_with(count as usize, || Query { value: AtomicU64::new(0), available: AtomicBool::new(false) });
        Ok(Self { list: list.into(), waiting: Mutex::new(()), written: Condvar::new() })
    }

    /// Bytes of host memory that `count` queries need.
    pub(crate) fn bytes(count: u32) -> u64 {
        u64::from(count) * size_of::<Query>() as u64
    }

    /// Number of queries.
    pub(crate) fn len(&self) -> u32 {
        self.list.len() as u32
    }

    /// Waits until all these queries have values. Calls `check` before each sleep and at least once per `period`, and
    /// returns its error.
    pub(crate) fn wait<E>(
        &self,
        queries: Range<u32>,
        period: Duration,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut sleep = self.waiting.lock();
        while queries.clone().any(|query| self.get(query).is_none()) {
            check()?;
            (sleep, _) = self.written.wait_for(sleep, period);
        }
        Ok(())
    }

    /// The value of a query, if it is available.
    pub(crate) fn get(&self, query: u32) -> Option<u64> {
        let query = &self.list[query as usize];
        // Acquire: pairs with the Release in `set`, so the value is visible. Fences publish what else the commands
        // wrote.
        query.available.load(Ordering::Acquire).then(|| query.value.load(Ordering::Relaxed))
    }

    /// Makes a query available with a value.
    pub(crate) fn set(&self, query: u32, value: u64) {
        let query = &self.list[query as usize];
        query.value.store(value, Ordering::Relaxed);
        // Release: pairs with the Acquire in `get`.
        query.available.store(true, Ordering::Release);
        // Under the lock, so that a waiter has either not tested yet or is asleep.
        let _waiting = self.waiting.lock();
        self.written.notify_all();
    }

    /// Makes queries unavailable.
    pub(crate) fn reset(&self, first: u32, count: u32) {
        for query in &self.list[first as usize..][..count as usize] {
            // Relaxed: the program orders a reset before the next write of the query.
            query.available.store(false, Ordering::Relaxed);
        }
    }
}
