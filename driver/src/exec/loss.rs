//! The loss of a device: the reason, the flag that ends kernels, and who has to be woken.
//!
//! Whoever waits for a fence that is in no line has nobody to wake it on a lost device, so it is written down here.
//! See README.md, "loss and sleeper".

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Weak};

use super::sync::{Mutex, Ordering};
use crate::error::DeviceError;
use crate::sync::FenceState;

/// Whether and why a device is lost. It stays so.
#[derive(Debug, Default)]
pub(crate) struct Loss {
    /// What kernels poll. Written once, under the lock of `inner`.
    stop: AtomicU32,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    why: Option<String>,
    /// Fences that threads sleep for, once for each thread.
    awaited: Vec<Weak<FenceState>>,
}

impl Loss {
    /// Loses the device and wakes who waits for a fence; the first reason stays.
    pub(crate) fn lose(&self, why: String) {
        let awaited = {
            let mut inner = self.inner.lock();
            inner.why.get_or_insert(why);
            // Release: pairs with the Acquire in `is_lost`. Kernels read it relaxed and do not ask why.
            self.stop.store(1, Ordering::Release);
            std::mem::take(&mut inner.awaited)
        };
        awaited.iter().filter_map(Weak::upgrade).for_each(|fence| fence.wake());
    }

    /// Whether the device is lost: all threads leave what they do.
    pub(crate) fn is_lost(&self) -> bool {
        // Acquire: pairs with the Release in `lose`; the reason is there.
        self.stop.load(Ordering::Acquire) != 0
    }

    /// The error that says why the device is lost, if it is.
    pub(crate) fn check(&self) -> Result<(), DeviceError> {
        if !self.is_lost() {
            return Ok(());
        }
        Err(DeviceError::DeviceLost(self.inner.lock().why.clone().unwrap_or_default()))
    }

    /// The flag that kernels poll.
    pub(super) fn stop(&self) -> &AtomicU32 {
        &self.stop
    }

    /// From now to `forget` the loss wakes this fence's waiters. To be called before they test the loss and sleep.
    pub(crate) fn watch(&self, fence: &Arc<FenceState>) {
        self.inner.lock().awaited.push(Arc::downgrade(fence));
    }

    /// A waiter of this fence sleeps no more.
    pub(crate) fn forget(&self, fence: &Arc<FenceState>) {
        let mut inner = self.inner.lock();
        // After a loss it may be gone already.
        if let Some(at) = inner.awaited.iter().position(|awaited| std::ptr::eq(awaited.as_ptr(), Arc::as_ptr(fence))) {
            inner.awaited.swap_remove(at);
        }
    }
}
