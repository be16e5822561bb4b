//! Events: command buffers and the host set and reset them, command buffers wait for them.

use std::fmt;
use std::sync::Arc;

use crate::device::Device;
use crate::sync::Counter;

/// An event (`VkEvent`), initially not set. A handle.
#[derive(Clone)]
pub struct Event {
    inner: Arc<EventInner>,
}

struct EventInner {
    device: Device,
    /// 1 while it is set.
    counter: Arc<Counter>,
}

impl Device {
    /// `vkCreateEvent`.
    pub fn create_event(&self) -> Event {
        Event::new(self)
    }
}

impl Event {
    fn new(device: &Device) -> Self {
        Self { inner: Arc::new(EventInner { device: device.clone(), counter: Counter::new(0) }) }
    }

    /// `vkGetEventStatus`.
    pub fn is_set(&self) -> bool {
        self.inner.counter.reached(1)
    }

    /// `vkSetEvent`: command buffers that wait for it continue.
    pub fn set(&self) {
        let checker = self.inner.device.checker();
        checker.inspect(|checker| checker.commands().host_sets(&self.inner.counter));
        let observer = self.inner.device.observer().filter(|_| !self.is_set());
        observer.inspect(|observer| observer.sets_event(None, self.inner.counter.serial()));
        self.inner.counter.raise(1);
    }

    /// `vkResetEvent`. A command buffer that waits and has not continued yet waits until the event is set again.
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
