//! `SPELTER_TRACE`: a timeline of the workers and queues of all devices, in the format of `chrome://tracing` and
//! Perfetto.

use std::ops::Deref;
use std::sync::Arc;

use spelter_driver::Observer;
use spelter_driver::timeline::DeviceTimelineFile;

use crate::current_call::Owner;
use crate::message;
use crate::options::Options;

/// The events of a device on the timeline of its process.
#[derive(Debug)]
pub(crate) struct Trace(Arc<DeviceTimelineFile>);

impl Deref for Trace {
    type Target = DeviceTimelineFile;

    fn deref(&self) -> &DeviceTimelineFile {
        &self.0
    }
}

impl Trace {
    /// For a device of the instance, if the environment asks for a timeline. Each device warns if it cannot be written,
    /// which fails no call.
    pub(crate) fn of_device(owner: Owner) -> Option<Self> {
        let path = Options::get().trace.as_ref()?;
        DeviceTimelineFile::new(path).map(|file| Self(Arc::new(file))).map_err(|problem| warn(owner, &problem)).ok()
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.0) as Arc<dyn Observer>
    }

    /// Writes the remaining events of a destroyed device, and warns if the timeline could not be written.
    pub(crate) fn finish(&self, owner: Owner) {
        // Without a lock: a messenger may call Vulkan, which adds events.
        if let Err(problem) = self.0.finish() {
            warn(owner, &problem);
        }
    }
}

fn warn(owner: Owner, problem: &str) {
    message::warn(owner, "spelter-trace", format!("SPELTER_TRACE: {problem}"));
}
