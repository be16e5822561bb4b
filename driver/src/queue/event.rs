//! Events: set and reset by command buffers or the host, and waited for by command buffers.

use std::fmt;
use std::sync::Arc;

use crate::device::Device;
use crate::sync::Counter;

/// An event (`VkEvent`), not set at first. A handle.
#[derive(Clone)]
pub struct Event {
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    /// 1 while it is set.
    counter: Arc<Counter>,
}

impl Event {
    pub(crate) fn new(device: &Device) -> Self {
        Self { inner: Arc::new(Inner { device: device.clone(), counter: Counter::new(0) }) }
    }

    /// `vkGetEventStatus`.
    pub fn is_set(&self) -> bool {
        self.inner.counter.reached(1)
    }

    /// `vkSetEvent`: command buffers that wait for it go on.
    pub fn set(&self) {
        self.inner.counter.raise(1);
    }

    /// `vkResetEvent`. A command buffer that waits for it and has not gone on yet waits for the next time.
    pub fn reset(&self) {
        self.inner.counter.reset();
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(crate) fn counter(&self) -> &Arc<Counter> {
        &self.inner.counter
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", if self.is_set() { "set" } else { "not set" })
    }
}
