//! Functions that are called when fences are done, and the process's thread for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use spelter_locks::PerProcess;

use super::Fence;
use crate::callbacks::{Calls, Request};
use crate::error::Error;

/// A function to be called.
type Call = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// A fence and the function to be called when it is done.
struct FenceCall {
    fence: Fence,
    call: Option<Call>,
}

impl Request for FenceCall {
    fn poll(&mut self, waker: &Waker) -> Poll<()> {
        Pin::new(&mut self.fence).poll(&mut Context::from_waker(waker)).map(|result| {
            if let Some(call) = self.call.take() {
                // The panic is printed by the process's hook; other functions are called all the same.
                let _ = catch_unwind(AssertUnwindSafe(|| call(result)));
            }
        })
    }
}

/// Calls a function when a fence is done.
pub(super) fn call_when_done(fence: Fence, call: Call) -> Result<(), Error> {
    // In a forked process, the thread and what it would call are the parent's.
    static CALLS: PerProcess<Arc<Calls<FenceCall>>> = PerProcess::new(Calls::new);
    CALLS.get().enter(FenceCall { fence, call: Some(call) }, |calls| {
        let thread = std::thread::Builder::new().name("spelter-callbacks".into());
        match thread.spawn(move || calls.serve()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::OutOfMemory(format!("a thread for callbacks of fences: {error}"))),
        }
    })
}
