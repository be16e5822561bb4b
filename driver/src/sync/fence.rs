//! Fences: signalled by a queue, waited for by the host.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::DeviceError;

#[derive(Debug)]
pub(crate) struct FenceState {
    signaled: Mutex<bool>,
    changed: Condvar,
}

impl FenceState {
    pub(crate) fn new(signaled: bool) -> Self {
        Self { signaled: Mutex::new(signaled), changed: Condvar::new() }
    }
    pub(crate) fn is_signaled(&self) -> bool {
        *self.signaled.lock()
    }
    pub(crate) fn reset(&self) {
        *self.signaled.lock() = false;
    }
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Result<bool, DeviceError> {
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        let mut signaled = self.signaled.lock();
        while !*signaled {
            match deadline {
                Some(at) => {
                    if self.changed.wait_until(&mut signaled, at).timed_out() {
                        break;
                    }
                }
                None => self.changed.wait(&mut signaled),
            }
        }
        Ok(*signaled)
    }
    pub(crate) fn signal(&self) {
        *self.signaled.lock() = true;
        self.changed.notify_all();
    }
}
