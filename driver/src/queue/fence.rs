//! Fences, and the rules for their association with submissions.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use spelter_locks::Mutex;

use crate::device::Device;
use crate::error::{DeviceError, Error, require};
use crate::host_memory;
use crate::sync::{FenceState, TaskRegistration, Until, wait};

/// A fence (`VkFence`): signalled when the submission that it was passed to is done. A handle.
#[derive(Clone, Debug)]
pub struct Fence {
    inner: Arc<FenceInner>,
}

#[derive(Debug)]
struct FenceInner {
    device: Device,
    state: Arc<FenceState>,
    /// Whether it was passed to a submission and not reset since.
    associated: Mutex<bool>,
}

/// A task's registration with one fence ([`Fence::poll`]). Dropping it ends the registration.
#[derive(Debug, Default)]
pub struct FenceTask {
    registration: TaskRegistration,
}

impl Device {
    /// `vkCreateFence`.
    pub fn create_fence(&self, signaled: bool) -> Fence {
        Fence::new(self, signaled)
    }
}

impl Fence {
    fn new(device: &Device, signaled: bool) -> Self {
        let state = Arc::new(FenceState::new(signaled, device.loss()));
        Self { inner: Arc::new(FenceInner { device: device.clone(), state, associated: Mutex::new(false) }) }
    }

    /// `vkGetFenceStatus`.
    pub fn is_signaled(&self) -> bool {
        self.seen(self.inner.state.is_signaled())
    }

    /// Tells checked mode that the host has seen the fence signalled, if it is. Returns `signaled`.
    fn seen(&self, signaled: bool) -> bool {
        if signaled && let Some(checker) = self.inner.device.checker() {
            checker.commands().waited_for_fence(checker, &self.inner.state);
        }
        signaled
    }

    /// `vkWaitForFences`: whether the fence was signalled before the timeout; `None` is no timeout.
    /// [`Error::DeviceLost`] if the device is lost and the fence will not be signalled.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        Ok(self.seen(self.inner.state.wait(timeout)?))
    }

    /// `vkWaitForFences` without `waitAll`: whether one of the fences was signalled before the timeout.
    /// [`Error::DeviceLost`] if none was and the device is lost.
    pub fn wait_any(fences: &[&Fence], timeout: Option<Duration>) -> Result<bool, Error> {
        let Some((first, others)) = fences.split_first() else { return Ok(true) };
        let device = &first.inner.device;
        let same = others.iter().all(|fence| fence.inner.device.is(device));
        require(same, "vkWaitForFences", "VUID-vkWaitForFences-pFences-parent", || "a fence of another device".into())?;
        let states = host_memory::collect(fences.iter().map(|fence| Arc::clone(&fence.inner.state)))?;
        let settled = wait(&states, Until::Any, timeout, device.loss())?;
        if settled && !fences.iter().any(|fence| fence.is_signaled()) {
            device.check_alive()?;
        }
        Ok(settled)
    }

    /// For a future: whether the fence is signalled. If not, `waker` is woken when it may be, on a thread of the
    /// device, and no earlier waker of the same registration. [`Error::DeviceLost`] if the fence will never be
    /// signalled.
    pub fn poll(&self, task: &mut FenceTask, waker: &Waker) -> Poll<Result<(), Error>> {
        task.registration.poll(&self.inner.state, waker).map(|result| {
            self.seen(result.is_ok());
            Ok(result?)
        })
    }

    /// `vkResetFences`.
    pub fn reset(&self) -> Result<(), Error> {
        let mut associated = self.inner.associated.lock();
        // Not `is_signaled`: a reset does not tell the host that the submission is done.
        let pending = *associated && !self.inner.state.is_signaled() && !self.inner.device.is_lost();
        require(!pending, "vkResetFences", "VUID-vkResetFences-pFences-01123", || {
            "the fence belongs to a submission that is not done".into()
        })?;
        self.inner.state.reset();
        *associated = false;
        Ok(())
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Settles the fence of a submission that failed because the device is lost. A fence that belongs to another
    /// submission is left alone: its queue settles it.
    pub(super) fn lose(&self, lost: &DeviceError) {
        if let Ok(guard) = self.associate() {
            guard.state().settle(Err(lost.clone()));
        }
    }

    /// Associates the fence with a submission.
    pub(super) fn associate(&self) -> Result<Association<'_>, Error> {
        let at = "vkQueueSubmit";
        let mut associated = self.inner.associated.lock();
        require(!self.inner.state.is_signaled(), at, "VUID-vkQueueSubmit-fence-00063", || {
            "the fence is signalled".into()
        })?;
        require(!*associated, at, "VUID-vkQueueSubmit-fence-00064", || {
            "the fence belongs to another submission that is not done".into()
        })?;
        *associated = true;
        Ok(Association { fence: self, kept: false })
    }
}

/// An association of a fence with a submission that has not succeeded yet. Ends on drop, unless it is kept.
pub(super) struct Association<'a> {
    fence: &'a Fence,
    kept: bool,
}

impl Association<'_> {
    pub(super) fn state(&self) -> Arc<FenceState> {
        Arc::clone(&self.fence.inner.state)
    }

    /// The submission has succeeded.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Association<'_> {
    fn drop(&mut self) {
        if !self.kept {
            *self.fence.inner.associated.lock() = false;
        }
    }
}
