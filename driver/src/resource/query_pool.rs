//! Query pools.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ash::vk;

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::host_memory::{self, OutOfHostMemory};
use crate::query::{Queries, now};

/// How often a host that waits for a query checks whether the device is lost.
const CHECK_PERIOD: Duration = Duration::from_millis(20);

/// Timestamps (`VkQueryPool` with `VK_QUERY_TYPE_TIMESTAMP`), in nanoseconds of the system's monotonic clock, so
/// `timestampPeriod` is 1. A handle.
#[derive(Clone)]
pub struct QueryPool {
    inner: Arc<QueryPoolInner>,
}

struct QueryPoolInner {
    device: Device,
    queries: Arc<Queries>,
}

impl Device {
    /// The value of a timestamp taken now: nanoseconds of the system's monotonic clock.
    pub fn timestamp(&self) -> u64 {
        now()
    }

    /// `vkCreateQueryPool`: a pool of `count` timestamps.
    pub fn create_query_pool(&self, kind: vk::QueryType, count: u32) -> Result<QueryPool, Error> {
        QueryPool::new(self, kind, count)
    }
}

impl QueryPool {
    fn new(device: &Device, kind: vk::QueryType, count: u32) -> Result<Self, Error> {
        let at = "vkCreateQueryPool";
        require(count > 0, at, "VUID-VkQueryPoolCreateInfo-queryCount-02763", || "queryCount is 0".into())?;
        let known = kind == vk::QueryType::TIMESTAMP;
        require(known, at, "VUID-VkQueryPoolCreateInfo-queryType-parameter", || {
            format!("a compute device supports timestamp queries, not {kind:?}")
        })?;
        // Queries use host memory: at most a quarter of the device's heap size, and at most 1 GiB.
        let heap: u64 = device.memory_heaps().iter().map(|heap| heap.size).sum();
        let bytes = Queries::bytes(count);
        if bytes > (heap / 4).min(1 << 30) {
            return Err(OutOfHostMemory { bytes }.into());
        }
        Ok(Self { inner: Arc::new(QueryPoolInner { device: device.clone(), queries: Arc::new(Queries::new(count)?) }) })
    }

    /// Number of queries.
    pub fn count(&self) -> u32 {
        self.inner.queries.len()
    }

    /// `vkResetQueryPool`: makes queries unavailable.
    pub fn reset(&self, first: u32, count: u32) -> Result<(), Error> {
        let vuids = ["VUID-vkResetQueryPool-firstQuery-09436", "VUID-vkResetQueryPool-firstQuery-09437"];
        self.check("vkResetQueryPool", vuids, first, count)?;
        self.inner.queries.reset(first, count);
        Ok(())
    }

    /// `vkGetQueryPoolResults`: the value of each query, `None` for an unavailable one. With `wait`, returns when all
    /// are available, or [`Error::DeviceLost`] if the device is lost before.
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
        self.inner.queries.wait(first..first + count, CHECK_PERIOD, || self.inner.device.check_alive())
    }

    /// Checks that `count` queries from `first` are in the pool. `vuids` are the rules for the first query and for the
    /// count.
    pub(crate) fn check(&self, at: &str, vuids: [&'static str; 2], first: u32, count: u32) -> Result<(), Misuse> {
        let all = self.count();
        require(first < all, at, vuids[0], || format!("query {first} of {all}"))?;
        require(count <= all - first, at, vuids[1], || format!("{count} queries from query {first}, of {all}"))
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
