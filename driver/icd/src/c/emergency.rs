//! The library's allocator: the system's, with a reserve for small allocations that the system refuses.
//!
//! Lists whose length a program chooses are made by [`spelter_driver::host_memory`] and are errors where there is no memory for
//! them. All else is small: the handle of an object, a message, a node of a map. Rust aborts the process where such an
//! allocation is refused, which a driver must not do to a program. So some megabytes of addresses are set aside, untouched, and
//! given back to the system when it refuses a small allocation. From then on calls that make something fail with
//! `VK_ERROR_OUT_OF_HOST_MEMORY` ([`replenish`]) until the reserve could be set aside again; calls that destroy, wait and read
//! go on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use memmap2::MmapMut;

/// Bytes set aside: enough for the rest of one call, on every worker.
const RESERVE: usize = 8 << 20;

/// Larger allocations are refused where the system refuses them: `host_memory` makes them.
const MAX_RESERVE_BYTES: usize = 1 << 20;

/// The system's allocator with a reserve.
struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

/// What is set aside: addresses of the system's own, since what is given back to an allocator may stay in the part of it
/// that one thread uses.
///
/// The standard library's lock, which allocates nothing. To wait for it is no deadlock, though an allocation waits: a thread that has it
/// makes one system call, which maps or unmaps memory, and neither allocates nor takes another lock before it lets go.
static SET_ASIDE: Mutex<Option<MmapMut>> = Mutex::new(None);

/// Whether `SET_ASIDE` holds something: a hint that spares the lock, so all accesses are relaxed.
static IS_SET_ASIDE: AtomicBool = AtomicBool::new(false);

/// Whether the reserve is there. False before the first call, and after an allocation took it.
pub(crate) fn is_set_aside() -> bool {
    IS_SET_ASIDE.load(Ordering::Relaxed)
}

/// Sets the reserve aside where it is not. False if the system refuses.
pub(crate) fn replenish() -> bool {
    if is_set_aside() {
        return true;
    }
    let mut reserve = SET_ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
    if reserve.is_none() {
        *reserve = MmapMut::map_anon(RESERVE).ok();
    }
    IS_SET_ASIDE.store(reserve.is_some(), Ordering::Relaxed);
    reserve.is_some()
}

/// The system has the reserve when this returns. Another thread may be giving it back: that is waited for, since an allocation
/// that is tried again before the system has it is refused again.
fn release() {
    let mut reserve = SET_ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
    drop(reserve.take());
    IS_SET_ASIDE.store(false, Ordering::Relaxed);
}

/// What an allocation gives, tried once more with the reserve given back if it is small and was refused. Another thread may
/// have given it back: the second try is made in any case.
fn with_reserve(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = allocate();
    if !memory.is_null() || size > MAX_RESERVE_BYTES {
        return memory;
    }
    release();
    allocate()
}

// SAFETY: all memory comes from the system's allocator and goes back to it with the layout that it was allocated with; nothing
// here allocates through this allocator, and nothing unwinds.
unsafe impl GlobalAlloc for WithReserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the system's.
        with_reserve(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is the system's.
        with_reserve(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract is the system's; what is refused leaves `memory` as it was.
        with_reserve(size, || unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the system's.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_allocation_is_tried_again_when_another_thread_has_given_the_reserve_back() {
        static IS_BACK: AtomicBool = AtomicBool::new(false);
        let reserve = SET_ASIDE.lock().unwrap_or_else(PoisonError::into_inner);
        let (refused, is_refused) = mpsc::channel();
        let other = thread::spawn(move || {
            let allocate = || {
                let is_back = IS_BACK.load(Ordering::SeqCst);
                let _ = refused.send(());
                if is_back { std::ptr::dangling_mut() } else { std::ptr::null_mut() }
            };
            !with_reserve(1, allocate).is_null()
        });
        is_refused.recv().unwrap();
        // Long enough for a second try that waits for nothing.
        thread::sleep(Duration::from_millis(100));
        IS_BACK.store(true, Ordering::SeqCst);
        drop(reserve);
        assert!(other.join().unwrap(), "the second try came before the reserve was given back");
    }
}
