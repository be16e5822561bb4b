//! A device and its queue, as far as several of wgpu-hal's methods share them.

use std::time::Duration;

use spelter_driver::vk::QueryType;
use spelter_driver::{Error, Semaphore, SemaphoreSubmit, SubmitInfo};
use wgpu_types::BufferUses;

use crate::buffer::Buffer;
use crate::memory::MemoryPool;
use crate::recorder::QuerySet;

/// A device.
#[derive(Debug)]
pub struct Device {
    pub(crate) raw: spelter_driver::Device,
    pub(crate) memory: MemoryPool,
}

/// The queue of a device.
#[derive(Debug)]
pub struct Queue {
    pub(crate) raw: spelter_driver::Queue,
}

/// A fence of wgpu: a value that grows.
#[derive(Debug)]
pub struct Fence(pub(crate) Semaphore);

impl Device {
    pub(crate) fn open(options: spelter_driver::DeviceOptions) -> Result<(Self, Queue), Error> {
        let raw = spelter_driver::Device::new(options)?;
        let queue = Queue { raw: raw.queue() };
        Ok((Self { raw, memory: MemoryPool::default() }, queue))
    }

    pub(crate) fn buffer(&self, size: u64, uses: BufferUses) -> Result<Buffer, Error> {
        Buffer::new(&self.raw, &self.memory, size, uses)
    }

    pub(crate) fn timestamps(&self, count: u32) -> Result<QuerySet, Error> {
        Ok(QuerySet(self.raw.create_query_pool(QueryType::TIMESTAMP, count)?))
    }

    pub(crate) fn fence(&self) -> Fence {
        Fence(self.raw.create_timeline_semaphore(0))
    }
}

impl Fence {
    /// Whether it reached the value before the timeout. The thread helps with the work meanwhile.
    pub(crate) fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool, Error> {
        Semaphore::wait_all(&[(&self.0, value)], timeout)
    }
}

impl Queue {
    pub(crate) fn submit(
        &self,
        commands: &[&spelter_driver::CommandBuffer],
        fence: &Fence,
        value: u64,
    ) -> Result<(), Error> {
        let signals = [SemaphoreSubmit::new(&fence.0, value)];
        self.raw.submit_all(&[SubmitInfo { waits: &[], commands, signals: &signals }], None)?;
        Ok(())
    }
}
