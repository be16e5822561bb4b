//! Tasks of async programs that wait for a fence: polled instead of sleeping.
//!
//! The protocol. A poll (1) stores the task's latest waker in its [`TaskWaker`], (2) registers that with the fence and
//! the loss, and (3) tests the fence. Settling (4) stores the state and takes the registrations in one step under the
//! fence's lock, and (5) wakes each outside of the lock, with the waker that is stored then. Registration (2) tests the
//! state under the same lock: either (4) comes later and finds the registration, with the latest waker of (1), or (2)
//! comes later and the test (3) sees the state, so that the poll is ready. A waker that is replaced after (4) took the
//! registration belongs to a poll that is ready, too.
//!
//! All steps are under locks, except the test (3): its Acquire pairs with the Release of (4) in `fence.rs`.

use std::sync::Arc;
use std::task::{Poll, Waker};

use super::fence::FenceState;
use super::primitives::Mutex;
use super::wait::Awaited;
use super::wake::Wake;
use crate::error::DeviceError;

/// The waker of the task's latest poll.
#[derive(Debug)]
struct TaskWaker {
    waker: Mutex<Waker>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        // Not under the lock: the program's waker may poll at once, on this thread.
        let waker = self.waker.lock().clone();
        waker.wake();
    }
}

/// A task's registration with a fence. Dropping it ends the registration.
#[derive(Debug, Default)]
pub(crate) struct TaskRegistration {
    waker: Option<Arc<TaskWaker>>,
}

impl TaskRegistration {
    /// Whether the fence is settled, and how; otherwise `waker` is woken when it may be. Only the waker of the latest
    /// poll is. [`DeviceError::DeviceLost`] if the fence will never be signalled.
    pub(crate) fn poll(&mut self, fence: &Arc<FenceState>, waker: &Waker) -> Poll<Result<(), DeviceError>> {
        // Before any lock: in a child another thread of the parent may hold it for ever.
        if let Err(forked) = fence.loss().check_not_forked() {
            return Poll::Ready(Err(forked));
        }
        if let Some(result) = fence.outcome() {
            return Poll::Ready(result);
        }
        let task = match &self.waker {
            Some(task) => {
                task.waker.lock().clone_from(waker);
                Arc::clone(task)
            }
            None => Arc::clone(self.waker.insert(Arc::new(TaskWaker { waker: Mutex::new(waker.clone()) }))),
        };
        let task = task as Arc<dyn Wake>;
        // Once each, however often the task polls.
        fence.forget(&task);
        fence.watch(&task);
        fence.loss().forget(&task);
        fence.loss().watch(&task);
        fence.outcome().map_or(Poll::Pending, Poll::Ready)
    }
}
