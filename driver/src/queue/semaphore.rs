//! Semaphores: what submissions wait for, and what hosts wait for by value.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::host_memory;
use crate::sync::{Counter, Target, Until, wait};

/// A semaphore (`VkSemaphore`), binary or timeline. A handle.
#[derive(Clone)]
pub struct Semaphore {
    inner: Arc<Inner>,
}

struct Inner {
    device: Device,
    /// A timeline's value; of a binary semaphore the count of signals that were executed.
    counter: Arc<Counter>,
    kind: Kind,
}

enum Kind {
    Binary(Mutex<Asked>),
    Timeline,
}

/// Operations that were submitted, of which no wait is for a signal that another wait has taken.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    signals: u64,
    waits: u64,
}

/// One side of a submission (`VkSemaphoreSubmitInfo`); the stages are always all commands.
#[derive(Clone, Copy, Debug)]
pub struct SemaphoreSubmit<'a> {
    /// The semaphore.
    pub semaphore: &'a Semaphore,
    /// The value to wait for, or to signal; ignored for a binary semaphore.
    pub value: u64,
}

impl Semaphore {
    pub(crate) fn binary(device: &Device) -> Self {
        Self::new(device, 0, Kind::Binary(Mutex::default()))
    }

    pub(crate) fn timeline(device: &Device, value: u64) -> Self {
        Self::new(device, value, Kind::Timeline)
    }

    fn new(device: &Device, value: u64, kind: Kind) -> Self {
        Self { inner: Arc::new(Inner { device: device.clone(), counter: Counter::new(value), kind }) }
    }

    /// Whether it has a value (`VK_SEMAPHORE_TYPE_TIMELINE`).
    pub fn is_timeline(&self) -> bool {
        matches!(self.inner.kind, Kind::Timeline)
    }

    /// `vkGetSemaphoreCounterValue`.
    pub fn value(&self) -> Result<u64, Error> {
        self.check_timeline("vkGetSemaphoreCounterValue", "VUID-vkGetSemaphoreCounterValue-semaphore-03255")?;
        self.inner.device.check_alive()?;
        Ok(self.inner.counter.value())
    }

    /// `vkSignalSemaphore`: the host sets a larger value.
    pub fn signal(&self, value: u64) -> Result<(), Error> {
        let at = "vkSignalSemaphore";
        self.check_timeline(at, "VUID-VkSemaphoreSignalInfo-semaphore-03257")?;
        let now = self.inner.counter.value();
        require(value > now, at, "VUID-VkSemaphoreSignalInfo-value-03258", || {
            format!("value {value} is not above the semaphore's value {now}")
        })?;
        self.inner.counter.raise(value);
        Ok(())
    }

    /// `vkWaitSemaphores`: whether each semaphore had its value before the time was over; no time means for ever.
    pub fn wait_all(semaphores: &[(&Semaphore, u64)], timeout: Option<Duration>) -> Result<bool, Error> {
        wait_for(semaphores, Until::All, timeout)
    }

    /// `vkWaitSemaphores` with `VK_SEMAPHORE_WAIT_ANY_BIT`: whether one of the semaphores had its value before the time was over.
    pub fn wait_any(semaphores: &[(&Semaphore, u64)], timeout: Option<Duration>) -> Result<bool, Error> {
        wait_for(semaphores, Until::Any, timeout)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    fn check_timeline(&self, at: &str, vuid: &'static str) -> Result<(), Misuse> {
        require(self.is_timeline(), at, vuid, || "the semaphore is binary".into())
    }

    /// A submission waits for it: for what?
    fn ask_wait(&self, value: u64) -> Result<Target, Misuse> {
        let value = match &self.inner.kind {
            Kind::Timeline => value,
            Kind::Binary(asked) => {
                let mut asked = asked.lock();
                let vuid = "VUID-vkQueueSubmit2-semaphore-03873";
                require(asked.waits < asked.signals, "pWaitSemaphoreInfos", vuid, || {
                    "a binary semaphore that nothing submitted signals".into()
                })?;
                asked.waits += 1;
                asked.waits
            }
        };
        Ok((Arc::clone(&self.inner.counter), value))
    }

    /// A submission signals it: how?
    fn ask_signal(&self, value: u64) -> Result<Target, Misuse> {
        let value = match &self.inner.kind {
            Kind::Timeline => {
                let now = self.inner.counter.value();
                require(value > now, "pSignalSemaphoreInfos", "VUID-VkSubmitInfo2-semaphore-03882", || {
                    format!("value {value} is not above the semaphore's value {now}")
                })?;
                value
            }
            Kind::Binary(asked) => {
                let mut asked = asked.lock();
                let vuid = "VUID-vkQueueSubmit2-semaphore-03868";
                require(asked.waits == asked.signals, "pSignalSemaphoreInfos", vuid, || {
                    "a binary semaphore that is signalled, and nothing submitted waits for it".into()
                })?;
                asked.signals += 1;
                asked.signals
            }
        };
        Ok((Arc::clone(&self.inner.counter), value))
    }

    fn take_back(&self, operation: Operation) {
        if let Kind::Binary(asked) = &self.inner.kind {
            match operation {
                Operation::Wait => asked.lock().waits -= 1,
                Operation::Signal => asked.lock().signals -= 1,
            }
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.kind {
            Kind::Timeline => write!(f, "Semaphore({})", self.inner.counter.value()),
            Kind::Binary(asked) => write!(f, "Semaphore({:?})", *asked.lock()),
        }
    }
}

fn wait_for(semaphores: &[(&Semaphore, u64)], until: Until, timeout: Option<Duration>) -> Result<bool, Error> {
    let Some(((first, _), _)) = semaphores.split_first() else { return Ok(true) };
    let device = &first.inner.device;
    for (index, (semaphore, _)) in semaphores.iter().enumerate() {
        let at = format!("pSemaphores[{index}]");
        semaphore.check_timeline(&at, "VUID-VkSemaphoreWaitInfo-pSemaphores-03256")?;
        let vuid = "VUID-VkSemaphoreWaitInfo-pSemaphores-parameter";
        require(semaphore.inner.device.is(device), &at, vuid, || "a semaphore of another device".into())?;
    }
    let target = |(semaphore, value): &(&Semaphore, u64)| (Arc::clone(&semaphore.inner.counter), *value);
    let targets: Vec<Target> = host_memory::collect(semaphores.iter().map(target))?;
    device.check_alive()?;
    Ok(wait(&targets, until, timeout, device.loss())?)
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Wait,
    Signal,
}

/// What submissions do to semaphores, in the order in which they do it; taken back if it is dropped before
/// [`Operations::keep`].
#[derive(Debug, Default)]
pub(super) struct Operations {
    done: Vec<(Semaphore, Operation)>,
}

impl Operations {
    /// A submission waits for these.
    pub(super) fn waits(&mut self, submits: &[SemaphoreSubmit<'_>]) -> Result<Vec<Target>, Error> {
        self.ask(submits, Operation::Wait)
    }

    /// A submission signals these.
    pub(super) fn signals(&mut self, submits: &[SemaphoreSubmit<'_>]) -> Result<Vec<Target>, Error> {
        self.ask(submits, Operation::Signal)
    }

    fn ask(&mut self, submits: &[SemaphoreSubmit<'_>], operation: Operation) -> Result<Vec<Target>, Error> {
        host_memory::reserve(&mut self.done, submits.len())?;
        let ask = |submit: &SemaphoreSubmit<'_>| {
            let target = match operation {
                Operation::Wait => submit.semaphore.ask_wait(submit.value)?,
                Operation::Signal => submit.semaphore.ask_signal(submit.value)?,
            };
            self.done.push((submit.semaphore.clone(), operation));
            Ok(target)
        };
        host_memory::try_collect(submits.iter().map(ask))
    }

    /// The queue has them.
    pub(super) fn keep(mut self) {
        self.done.clear();
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        self.done.drain(..).rev().for_each(|(semaphore, operation)| semaphore.take_back(operation));
    }
}
