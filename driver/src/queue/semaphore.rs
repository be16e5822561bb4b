//! Semaphores: binary ones order submissions, timeline ones also have a value that the host waits for and sets.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ash::vk::PipelineStageFlags2;
use spelter_locks::Mutex;

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::exec::SemaphoreSignal;
use crate::host_memory;
use crate::sync::{Counter, Target, Until, wait};

/// A semaphore (`VkSemaphore`), binary or timeline. A handle.
#[derive(Clone)]
pub struct Semaphore {
    inner: Arc<SemaphoreInner>,
}

struct SemaphoreInner {
    device: Device,
    /// The value of a timeline semaphore, or the number of executed signals of a binary one.
    counter: Arc<Counter>,
    kind: SemaphoreKind,
}

enum SemaphoreKind {
    Binary(Mutex<BinaryOperations>),
    Timeline,
}

/// Numbers of submitted operations of a binary semaphore. Each wait consumes one signal, so `signals` is `waits` or
/// `waits + 1`.
#[derive(Clone, Copy, Debug, Default)]
struct BinaryOperations {
    signals: u64,
    waits: u64,
}

/// A wait or signal operation of a submission (`VkSemaphoreSubmitInfo`).
#[derive(Clone, Copy, Debug)]
pub struct SemaphoreSubmit<'a> {
    /// The semaphore.
    pub semaphore: &'a Semaphore,
    /// The value to wait for, or to signal; ignored for a binary semaphore.
    pub value: u64,
    /// The stages that wait, or that the signal waits for. All commands wait in any case; checked mode reports a
    /// program that relies on stages that are not named here.
    pub stages: PipelineStageFlags2,
}

impl<'a> SemaphoreSubmit<'a> {
    /// An operation of all commands.
    pub fn new(semaphore: &'a Semaphore, value: u64) -> Self {
        Self { semaphore, value, stages: PipelineStageFlags2::ALL_COMMANDS }
    }
}

impl Device {
    /// `vkCreateSemaphore`: a binary semaphore, not signalled.
    pub fn create_semaphore(&self) -> Semaphore {
        Semaphore::binary(self)
    }

    /// `vkCreateSemaphore` with `VK_SEMAPHORE_TYPE_TIMELINE`.
    pub fn create_timeline_semaphore(&self, initial_value: u64) -> Semaphore {
        Semaphore::timeline(self, initial_value)
    }
}

impl Semaphore {
    fn binary(device: &Device) -> Self {
        Self::new(device, 0, SemaphoreKind::Binary(Mutex::default()))
    }

    fn timeline(device: &Device, value: u64) -> Self {
        Self::new(device, value, SemaphoreKind::Timeline)
    }

    fn new(device: &Device, value: u64, kind: SemaphoreKind) -> Self {
        Self { inner: Arc::new(SemaphoreInner { device: device.clone(), counter: Counter::new(value), kind }) }
    }

    /// Whether it is a timeline semaphore (`VK_SEMAPHORE_TYPE_TIMELINE`).
    pub fn is_timeline(&self) -> bool {
        matches!(self.inner.kind, SemaphoreKind::Timeline)
    }

    /// `vkGetSemaphoreCounterValue`.
    pub fn value(&self) -> Result<u64, Error> {
        self.check_timeline("vkGetSemaphoreCounterValue", "VUID-vkGetSemaphoreCounterValue-semaphore-03255")?;
        self.inner.device.check_alive()?;
        let value = self.inner.counter.value();
        self.host_knows(value);
        Ok(value)
    }

    /// The host has seen that the semaphore has at least a value.
    fn host_knows(&self, value: u64) {
        let checker = self.inner.device.checker();
        checker.inspect(|checker| checker.commands().waited_for_counter(checker, &self.inner.counter, value));
    }

    /// `vkSignalSemaphore`: the host sets a larger value.
    pub fn signal(&self, value: u64) -> Result<(), Error> {
        let at = "vkSignalSemaphore";
        self.check_timeline(at, "VUID-VkSemaphoreSignalInfo-semaphore-03257")?;
        let now = self.inner.counter.value();
        require(value > now, at, "VUID-VkSemaphoreSignalInfo-value-03258", || {
            format!("value {value} is not above the semaphore's value {now}")
        })?;
        let checker = self.inner.device.checker();
        checker.inspect(|checker| checker.commands().host_signals(&self.inner.counter, value));
        let semaphore = self.inner.counter.serial();
        let observer = self.inner.device.observer();
        observer.inspect(|observer| observer.host_signals(SemaphoreSignal { semaphore, before: now, value }));
        self.inner.counter.raise(value);
        Ok(())
    }

    /// `vkWaitSemaphores`: whether all semaphores reached their values before the timeout; `None` is no timeout.
    pub fn wait_all(semaphores: &[(&Semaphore, u64)], timeout: Option<Duration>) -> Result<bool, Error> {
        wait_for(semaphores, Until::All, timeout)
    }

    /// `vkWaitSemaphores` with `VK_SEMAPHORE_WAIT_ANY_BIT`: whether one of the semaphores reached its value before the
    /// timeout.
    pub fn wait_any(semaphores: &[(&Semaphore, u64)], timeout: Option<Duration>) -> Result<bool, Error> {
        wait_for(semaphores, Until::Any, timeout)
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    fn check_timeline(&self, at: &str, vuid: &'static str) -> Result<(), Misuse> {
        require(self.is_timeline(), at, vuid, || "the semaphore is binary".into())
    }

    /// Submits a wait operation. Returns the counter value to wait for.
    fn submit_wait(&self, value: u64) -> Result<Target, Misuse> {
        let value = match &self.inner.kind {
            SemaphoreKind::Timeline => value,
            SemaphoreKind::Binary(submitted) => {
                let mut submitted = submitted.lock();
                let vuid = "VUID-vkQueueSubmit2-semaphore-03873";
                require(submitted.waits < submitted.signals, "pWaitSemaphoreInfos", vuid, || {
                    "a binary semaphore that no submitted operation signals".into()
                })?;
                submitted.waits += 1;
                submitted.waits
            }
        };
        Ok((Arc::clone(&self.inner.counter), value))
    }

    /// Submits a signal operation. Returns the counter value to raise it to.
    fn submit_signal(&self, value: u64) -> Result<Target, Misuse> {
        let value = match &self.inner.kind {
            SemaphoreKind::Timeline => {
                let now = self.inner.counter.value();
                require(value > now, "pSignalSemaphoreInfos", "VUID-VkSubmitInfo2-semaphore-03882", || {
                    format!("value {value} is not above the semaphore's value {now}")
                })?;
                value
            }
            SemaphoreKind::Binary(submitted) => {
                let mut submitted = submitted.lock();
                let vuid = "VUID-vkQueueSubmit2-semaphore-03868";
                // Counted when they are submitted, since signals and waits must take turns in that order, whenever they
                // run.
                require(submitted.waits == submitted.signals, "pSignalSemaphoreInfos", vuid, || {
                    "a binary semaphore that is signalled and that no submitted operation waits for".into()
                })?;
                submitted.signals += 1;
                submitted.signals
            }
        };
        Ok((Arc::clone(&self.inner.counter), value))
    }

    fn undo(&self, operation: Operation) {
        if let SemaphoreKind::Binary(submitted) = &self.inner.kind {
            match operation {
                Operation::Wait => submitted.lock().waits -= 1,
                Operation::Signal => submitted.lock().signals -= 1,
            }
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner.kind {
            SemaphoreKind::Timeline => write!(f, "Semaphore({})", self.inner.counter.value()),
            SemaphoreKind::Binary(submitted) => write!(f, "Semaphore({:?})", *submitted.lock()),
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
    let waited = wait(&targets, until, timeout, device.loss())?;
    if waited && device.is_checked() {
        let reached = semaphores.iter().filter(|(semaphore, value)| semaphore.inner.counter.reached(*value));
        reached.for_each(|(semaphore, value)| semaphore.host_knows(*value));
    }
    Ok(waited)
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Wait,
    Signal,
}

/// Submitted operations on semaphores, in order. Dropping them before [`Operations::keep`] undoes them.
#[derive(Debug, Default)]
pub(super) struct Operations {
    submitted: Vec<(Semaphore, Operation)>,
}

impl Operations {
    /// Submits wait operations.
    pub(super) fn waits(&mut self, submits: &[SemaphoreSubmit<'_>]) -> Result<Vec<Target>, Error> {
        self.submit(submits, Operation::Wait)
    }

    /// Submits signal operations.
    pub(super) fn signals(&mut self, submits: &[SemaphoreSubmit<'_>]) -> Result<Vec<Target>, Error> {
        self.submit(submits, Operation::Signal)
    }

    fn submit(&mut self, submits: &[SemaphoreSubmit<'_>], operation: Operation) -> Result<Vec<Target>, Error> {
        host_memory::reserve(&mut self.submitted, submits.len())?;
        let submit_one = |submit: &SemaphoreSubmit<'_>| {
            let target = match operation {
                Operation::Wait => submit.semaphore.submit_wait(submit.value)?,
                Operation::Signal => submit.semaphore.submit_signal(submit.value)?,
            };
            self.submitted.push((submit.semaphore.clone(), operation));
            Ok(target)
        };
        host_memory::try_collect(submits.iter().map(submit_one))
    }

    /// The submission has succeeded: the operations stay.
    pub(super) fn keep(mut self) {
        self.submitted.clear();
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        // In reverse: a later operation was valid only because of an earlier one.
        self.submitted.drain(..).rev().for_each(|(semaphore, operation)| semaphore.undo(operation));
    }
}
