//! The library's allocator: the system's, with a reserve for small allocations that the system refuses.
//!
//! Lists whose length a program chooses are made by [`spelter_driver::host_memory`] and are errors where there is no memory for
//! them. All else is small: the handle of an object, a message, a node of a map. Rust aborts the process where such an
//! allocation is refused, which a driver must not do to a program. So some megabytes of addresses are set aside, untouched, and
//! given back to the system when it refuses a small allocation. From then on calls that make something fail with
//! `VK_ERROR_OUT_OF_HOST_MEMORY` ([`replenish`]) until the reserve could be set aside again; calls that destroy, wait and read
//! go on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use memmap2::MmapMut;

/// Bytes set aside: enough for the rest of one call, on every worker.
const RESERVE: usize = 8 << 20;

/// Larger allocations are refused where the system refuses them: `host_memory` makes them.
const MOST: usize = 1 << 20;

/// The system's allocator with a reserve.
struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

/// What is set aside: addresses of the system's own, since what is given back to an allocator may stay in the part of it
/// that one thread uses. The standard library's lock, which allocates nothing; nobody waits for it.
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
    // Another thread may be at it: then there is one soon.
    let Ok(mut reserve) = SET_ASIDE.try_lock() else { return true };
    if reserve.is_none() {
        *reserve = MmapMut::map_anon(RESERVE).ok();
    }
    IS_SET_ASIDE.store(reserve.is_some(), Ordering::Relaxed);
    reserve.is_some()
}

/// Gives the reserve back to the system.
fn release() {
    if let Ok(mut reserve) = SET_ASIDE.try_lock() {
        drop(reserve.take());
        IS_SET_ASIDE.store(false, Ordering::Relaxed);
    }
}

/// What an allocation gives, tried once more with the reserve given back if it is small and was refused. Another thread may
/// have given it back: the second try is made in any case.
fn with_reserve(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = allocate();
    if !memory.is_null() || size > MOST {
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
