//! Query pools and their values.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ash::vk;
use parking_lot::{Condvar, Mutex};

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::host_memory::{self, OutOfHostMemory};

/// How often a host that waits for a query looks whether the device is lost.
const LOOK: Duration = Duration::from_millis(20);

/// Timestamps (`VkQueryPool` with `VK_QUERY_TYPE_TIMESTAMP`), in nanoseconds of the system's monotonic clock, so
/// `timestampPeriod` is 1. A handle.
#[derive(Clone)]
pub struct QueryPool {
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    queries: Arc<Queries>,
}

/// The values of a pool.
#[derive(Debug)]
pub(crate) struct Queries {
    list: Box<[Query]>,
    /// Guards nothing but the sleep of those who wait for a value.
    waiting: Mutex<()>,
    written: Condvar,
}

#[derive(Debug)]
struct Query {
    value: AtomicU64,
    /// Written after the value.
    available: AtomicBool,
}

impl QueryPool {
    pub(crate) fn new(device: &Device, kind: vk::QueryType, count: u32) -> Result<Self, Error> {
        let at = "vkCreateQueryPool";
        require(count > 0, at, "VUID-VkQueryPoolCreateInfo-queryCount-02763", || "queryCount is 0".into())?;
        let known = kind == vk::QueryType::TIMESTAMP;
        require(known, at, "VUID-VkQueryPoolCreateInfo-queryType-parameter", || {
            format!("a device that only computes has timestamps, not {kind:?}")
        })?;
        // They are the host's memory, of which no more is taken than a quarter of what there is, or 1 GiB.
        let heap: u64 = device.memory_heaps().iter().map(|heap| heap.size).sum();
        if u64::from(count) * size_of::<Query>() as u64 > (heap / 4).min(1 << 30) {
            return Err(OutOfHostMemory { bytes: u64::from(count) * size_of::<Query>() as u64 }.into());
        }
        let mut list = host_memory::list(count as usize)?;
        list.resize_with(count as usize, || Query { value: AtomicU64::new(0), available: AtomicBool::new(false) });
        let queries = Queries { list: list.into(), waiting: Mutex::new(()), written: Condvar::new() };
        Ok(Self { inner: Arc::new(Inner { device: device.clone(), queries: Arc::new(queries) }) })
    }

    /// How many queries it has.
    pub fn count(&self) -> u32 {
        self.inner.queries.list.len() as u32
    }

    /// `vkResetQueryPool`: the queries have no value any more.
    pub fn reset(&self, first: u32, count: u32) -> Result<(), Error> {
        let vuids = ["VUID-vkResetQueryPool-firstQuery-09436", "VUID-vkResetQueryPool-firstQuery-09437"];
        self.check("vkResetQueryPool", vuids, first, count)?;
        self.inner.queries.reset(first, count);
        Ok(())
    }

    /// `vkGetQueryPoolResults`: the value of each query, `None` where there is none yet. With `wait` it returns when all are
    /// there; [`Error::DeviceLost`] if they never will be.
    pub fn results(&self, first: u32, count: u32, wait: bool) -> Result<Vec<Option<u64>>, Error> {
        let vuids = ["VUID-vkGetQueryPoolResults-firstQuery-09436", "VUID-vkGetQueryPoolResults-firstQuery-09437"];
        self.check("vkGetQueryPoolResults", vuids, first, count)?;
        self.inner.device.check_alive()?;
        if wait {
            self.wait(first, count)?;
        }
        Ok(host_memory::collect((first..first + count).map(|query| self.inner.queries.get(query)))?)
    }

    fn wait(&self, first: u32, count: u32) -> Result<(), Error> {
        let queries = &self.inner.queries;
        let mut sleep = queries.waiting.lock();
        while (first..first + count).any(|query| queries.get(query).is_none()) {
            self.inner.device.check_alive()?;
            queries.written.wait_until(&mut sleep, Instant::now() + LOOK);
        }
        Ok(())
    }

    /// Whether so many queries from the first on are in the pool; the ids are for the first and for the count.
    pub(crate) fn check(&self, at: &str, vuids: [&'static str; 2], first: u32, count: u32) -> Result<(), Misuse> {
        let all = self.count();
        require(first < all, at, vuids[0], || format!("query {first} of {all}"))?;
        require(count <= all - first, at, vuids[1], || format!("{count} queries from {first} on, of {all}"))
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(crate) fn queries(&self) -> &Arc<Queries> {
        &self.inner.queries
    }
}

impl fmt::Debug for QueryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueryPool({} timestamps)", self.count())
    }
}

impl Queries {
    /// The value of a query of the pool, if it has one.
    pub(crate) fn get(&self, query: u32) -> Option<u64> {
        let query = &self.list[query as usize];
        // Acquire: pairs with the Release in `set`; the value is there. What else the commands wrote is published by fences.
        query.available.load(Ordering::Acquire).then(|| query.value.load(Ordering::Relaxed))
    }

    /// A query gets its value.
    pub(super) fn set(&self, query: u32, value: u64) {
        let query = &self.list[query as usize];
        query.value.store(value, Ordering::Relaxed);
        // Release: pairs with the Acquire in `get`.
        query.available.store(true, Ordering::Release);
        // Under the lock, so that a waiter is before its test or asleep.
        let _waiting = self.waiting.lock();
        self.written.notify_all();
    }

    /// Queries lose their values.
    pub(super) fn reset(&self, first: u32, count: u32) {
        for query in &self.list[first as usize..][..count as usize] {
            // Relaxed: the caller orders a reset before what writes the query again.
            query.available.store(false, Ordering::Relaxed);
        }
    }
}
