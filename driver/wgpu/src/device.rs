//! A device and its queue, as far as several of wgpu-hal's methods share them.

use std::time::Duration;

use spelter_driver::CheckedByEnvironment;
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
    /// Set if the environment turned checked mode on.
    checked: Option<CheckedByEnvironment>,
}

impl Drop for Device {
    /// Panics if checked mode, by the environment, found an error.
    fn drop(&mut self) {
        if let Some(by_environment) = &self.checked {
            by_environment.deny(&self.raw);
        }
    }
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
    /// A device, checked if the environment says so and may.
    pub(crate) fn open(
        mut options: spelter_driver::DeviceOptions,
        may_be_checked: bool,
    ) -> Result<(Self, Queue), Error> {
        let checked = match may_be_checked {
            true => CheckedByEnvironment::turn_on(&mut options).map_err(Error::Options)?,
            false => None,
        };
        let raw = spelter_driver::Device::new(options)?;
        let queue = Queue { raw: raw.queue() };
        Ok((Self { raw, memory: MemoryPool::default(), checked }, queue))
    }

    /// Waits until the fence has the value, or for the timeout; whether it has it. What checked mode found is printed.
    pub(crate) fn wait(&self, fence: &Fence, value: u64, timeout: Option<Duration>) -> Result<bool, Error> {
        let ended = fence.wait(value, timeout);
        if let Some(by_environment) = &self.checked {
            by_environment.print(&self.raw);
        }
        ended
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
    /// Waits until the semaphore has the value; `false` if the timeout expired first. Without a timeout the thread
    /// works on the queues meanwhile.
    fn wait(&self, value: u64, timeout: Option<Duration>) -> Result<bool, Error> {
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
