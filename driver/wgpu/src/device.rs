//! A device and its queue, as far as several of wgpu-hal's methods share them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use log::Level;
use spelter_driver::timeline::DeviceTimelineFile;
use spelter_driver::vk::QueryType;
use spelter_driver::{CheckedByEnvironment, Error, Observer, Semaphore, SemaphoreSubmit, SubmitInfo};
use wgpu_types::BufferUses;

use crate::buffer::Buffer;
use crate::error::report;
use crate::memory::MemoryPool;
use crate::recorder::QuerySet;

/// A device.
#[derive(Debug)]
pub struct Device {
    pub(crate) raw: spelter_driver::Device,
    pub(crate) memory: MemoryPool,
    /// Set if the environment turned checked mode on.
    checked: Option<CheckedByEnvironment>,
    timeline: Option<Arc<DeviceTimelineFile>>,
}

/// What the environment of the process asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// Whether `SPELTER_CHECK` turns checked mode on.
    pub(crate) may_check: bool,
    /// The file of the timeline.
    pub(crate) trace: Option<PathBuf>,
}

impl Drop for Device {
    /// Panics if checked mode, by the environment, found an error.
    fn drop(&mut self) {
        if let Some(Err(problem)) = self.timeline.as_ref().map(|timeline| timeline.finish()) {
            not_traced(&problem);
        }
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

fn not_traced(problem: &str) {
    report(Level::Warn, format_args!("SPELTER_TRACE: {problem}"));
}

impl Device {
    /// A device, checked and on a timeline if the environment says so. A timeline that cannot be written is reported,
    /// and fails nothing.
    pub(crate) fn open(
        mut options: spelter_driver::DeviceOptions,
        environment: &Environment,
    ) -> Result<(Self, Queue), Error> {
        let checked = match environment.may_check {
            true => CheckedByEnvironment::turn_on(&mut options).map_err(Error::Options)?,
            false => None,
        };
        let timeline = environment
            .trace
            .as_deref()
            .and_then(|path| DeviceTimelineFile::new(path).map(Arc::new).map_err(|problem| not_traced(&problem)).ok());
        let observer = timeline.as_ref().map(|timeline| Arc::clone(timeline) as Arc<dyn Observer>);
        let raw = match observer {
            None => spelter_driver::Device::new(options)?,
            Some(observer) => spelter_driver::Device::with_observer(options, observer)?,
        };
        timeline.iter().for_each(|timeline| timeline.name_workers(raw.properties().workers));
        let queue = Queue { raw: raw.queue() };
        Ok((Self { raw, memory: MemoryPool::default(), checked, timeline }, queue))
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
