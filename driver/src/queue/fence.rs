//! Fences: what the host waits for, and which submission they wait for.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::device::Device;
use crate::error::{DeviceError, Error, require};
use crate::host_memory;
use crate::sync::{FenceState, Until, wait};

/// A fence (`VkFence`): signalled when the submission that it was given to is done. A handle.
#[derive(Clone, Debug)]
pub struct Fence {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: Device,
    state: Arc<FenceState>,
    /// Whether a submission has it that was not reset since.
    taken: Mutex<bool>,
}

impl Fence {
    pub(crate) fn new(device: &Device, signaled: bool) -> Self {
        let state = Arc::new(FenceState::new(signaled, device.loss()));
        Self { inner: Arc::new(Inner { device: device.clone(), state, taken: Mutex::new(false) }) }
    }

    /// `vkGetFenceStatus`.
    pub fn is_signaled(&self) -> bool {
        self.inner.state.is_signaled()
    }

    /// `vkWaitForFences`: whether the fence was signalled before the time was over; no time means for ever.
    /// [`Error::DeviceLost`] if it never will be.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        Ok(self.inner.state.wait(timeout)?)
    }

    /// `vkWaitForFences` without `waitAll`: whether one of the fences was signalled before the time was over.
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

    /// `vkResetFences`.
    pub fn reset(&self) -> Result<(), Error> {
        let mut taken = self.inner.taken.lock();
        let pending = *taken && !self.is_signaled() && !self.inner.device.is_lost();
        require(!pending, "vkResetFences", "VUID-vkResetFences-pFences-01123", || {
            "the fence belongs to a submission that is not done".into()
        })?;
        self.inner.state.reset();
        *taken = false;
        Ok(())
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    /// The device is lost, and a submission that was to have the fence failed. A fence of a submission in line is left
    /// alone: its queue tells it.
    pub(super) fn lose(&self, lost: &DeviceError) {
        if let Ok(guard) = self.associate() {
            guard.state().settle(Err(lost.clone()));
        }
    }

    /// Takes the fence for a submission.
    pub(super) fn associate(&self) -> Result<Association<'_>, Error> {
        let at = "vkQueueSubmit";
        let mut taken = self.inner.taken.lock();
        require(!self.is_signaled(), at, "VUID-vkQueueSubmit-fence-00063", || "the fence is signalled".into())?;
        require(!*taken, at, "VUID-vkQueueSubmit-fence-00064", || {
            "the fence belongs to another submission that is not done".into()
        })?;
        *taken = true;
        Ok(Association { fence: self, kept: false })
    }
}

/// A fence on its way into a submission; free again if that fails.
pub(super) struct Association<'a> {
    fence: &'a Fence,
    kept: bool,
}

impl Association<'_> {
    pub(super) fn state(&self) -> Arc<FenceState> {
        Arc::clone(&self.fence.inner.state)
    }

    /// The submission has it.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Association<'_> {
    fn drop(&mut self) {
        if !self.kept {
            *self.fence.inner.taken.lock() = false;
        }
    }
}
