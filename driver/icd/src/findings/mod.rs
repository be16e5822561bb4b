//! Output of the findings of checked mode: text on standard error, lines of JSON, and debug messengers.
//!
//! A finding is taken from its device when the dispatch has run, on the thread that ran it, or in the next call that
//! waits, submits, maps or destroys. Text and JSON are written at once, so that a program that is killed later loses
//! none. Messengers are called only on threads that are inside of such a call, at its end, and without any lock: a
//! callback may call Vulkan, or take a lock of the program that a waiting thread has.
//!
//! Lock order: the state of the process, then a device's list of submissions; no other lock is taken under these two. A
//! forked process has neither the threads nor the findings of its parent: see [`Process::current`].

mod device;
mod lines;
mod process;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::current_call::{self, Owner};
pub(crate) use device::{DeviceFindings, Submitting, is_on};
use process::Process;

/// Whether there was a checked device: calls in processes without one read this and nothing else.
///
/// Relaxed: a thread gets the handle of a checked device by synchronization that also orders this store.
static ANY: AtomicBool = AtomicBool::new(false);

/// Calls at whose end findings are delivered: those that wait, ask, signal, submit, or give memory to the host.
const CALLS: [&str; 14] = [
    "vkQueueSubmit",
    "vkQueueWaitIdle",
    "vkQueueBindSparse",
    "vkDeviceWaitIdle",
    "vkWaitForFences",
    "vkGetFenceStatus",
    "vkWaitSemaphores",
    "vkSignalSemaphore",
    "vkGetSemaphoreCounterValue",
    "vkGetEventStatus",
    "vkGetQueryPoolResults",
    "vkMapMemory",
    "vkInvalidateMappedMemoryRanges",
    "vkDestroyDevice",
];

/// The end of a call: delivers what was found since.
pub(crate) fn after(call: &str) {
    if ANY.load(Ordering::Relaxed) && CALLS.iter().any(|name| call.starts_with(name)) {
        // The call has its result, which a fault of reporting must not change.
        let _ = catch_unwind(AssertUnwindSafe(|| deliver(current_call::owner())));
    }
}

/// Delivers what was found on devices of an instance. Before a messenger is destroyed, too.
pub(crate) fn deliver(owner: Owner) {
    if let Some(process) = Process::current() {
        process.collect();
        process.call_messengers(owner);
    }
}
