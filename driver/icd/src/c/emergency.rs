//! The library's allocator: the system's, with a reserve for small allocations that the system refuses.
//!
//! Lists whose length a program chooses are allocated by [`spelter_driver::host_memory`], which returns an error if
//! there is no memory for them. Other allocations are small: the handle of an object, a message, a node of a map. Rust
//! aborts the process if such an allocation fails, which a driver must not do. So some megabytes of address space are
//! reserved, untouched, and returned to the system when it refuses a small allocation. From then on calls that create
//! something fail with `VK_ERROR_OUT_OF_HOST_MEMORY` ([`replenish`]) until the reserve is restored; calls that destroy,
//! wait or read work as before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use memmap2::MmapMut;
use spelter_locks::{Mutex, PerProcess};

/// Bytes of the reserve: enough for the rest of one call, on every worker.
const RESERVE: usize = 8 << 20;

/// The size up to which an allocation is small. Larger ones fail if the system refuses them: they come from
/// `host_memory`, which handles that.
const MAX_SMALL_ALLOCATION: usize = 1 << 20;

/// The system's allocator with a reserve.
struct WithReserve;

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

/// The reserve. It is mapped from the system, since an allocator may keep memory that is returned to it in the arena of
/// one thread. Only [`replenish`] fills it, since filling it allocates. A forked process fills its own with its first
/// instance.
///
/// The lock is the standard library's, which does not allocate. An allocation may wait for it without deadlock: the
/// thread that holds it makes one system call, which maps or unmaps memory, and neither allocates nor takes another
/// lock.
static RESERVE_POOL: PerProcess<Mutex<Option<MmapMut>>> = PerProcess::new(Mutex::default);

/// Whether `RESERVE_POOL` is filled: a hint that avoids the lock, so all accesses are relaxed.
static IS_RESERVED: AtomicBool = AtomicBool::new(false);

/// Whether the reserve is filled. False before the first call, and after an allocation used it.
pub(crate) fn is_reserved() -> bool {
    IS_RESERVED.load(Ordering::Relaxed)
}

/// Fills the reserve if it is empty. Returns false if the system refuses.
pub(crate) fn replenish() -> bool {
    let mut reserve = RESERVE_POOL.get().lock();
    if reserve.is_none() {
        *reserve = MmapMut::map_anon(RESERVE).ok();
    }
    IS_RESERVED.store(reserve.is_some(), Ordering::Relaxed);
    reserve.is_some()
}

/// Returns the reserve to the system. If another thread is returning it, waits until that is done: an allocation that
/// is retried earlier fails again.
fn release() {
    let mut reserve = RESERVE_POOL.existing().map(Mutex::lock);
    drop(reserve.as_mut().and_then(|reserve| reserve.take()));
    IS_RESERVED.store(false, Ordering::Relaxed);
}

/// How often a refused allocation is retried: for a second or two, since the scheduler of a busy machine may stop a
/// thread in the middle of its attempt.
const RETRIES: u32 = 200;

/// The pause before the retry of this number: 0.1 to 10 ms.
fn pause(retry: u32) -> Duration {
    Duration::from_micros((u64::from(retry) * 100).min(10_000))
}

/// Allocates; if a small allocation fails, releases the reserve and retries, even if another thread has released the
/// reserve already.
///
/// One retry is too few: a thread for which the GNU C library can create no arena attempts that with each allocation,
/// and for a moment maps 64 MiB, which may be all that the limit leaves to the other threads.
#[inline]
fn with_reserve(size: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let memory = allocate();
    if memory.is_null() && size <= MAX_SMALL_ALLOCATION { from_reserve(allocate) } else { memory }
}

/// Out of line, so that each allocation is little more than the system's.
#[cold]
#[inline(never)]
fn from_reserve(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    release();
    let retry = |number| {
        if number > 0 {
            thread::sleep(pause(number));
        }
        Some(allocate()).filter(|memory| !memory.is_null())
    };
    (0..RETRIES).find_map(retry).unwrap_or(std::ptr::null_mut())
}

// SAFETY: all memory comes from the system's allocator and returns to it with the layout that it was allocated with;
// nothing here allocates through this allocator, and nothing unwinds.
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
        // SAFETY: the caller's contract is the system's; a failed attempt leaves `memory` unchanged.
        with_reserve(size, || unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the system's.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn an_allocation_is_retried_while_another_thread_has_the_memory_for_a_moment() {
        let refusals = Cell::new(0);
        let allocate = || {
            refusals.set(refusals.get() + 1);
            if refusals.get() > 20 { std::ptr::dangling_mut() } else { std::ptr::null_mut() }
        };
        assert!(!with_reserve(1, allocate).is_null());
        refusals.set(0);
        assert!(with_reserve(MAX_SMALL_ALLOCATION + 1, allocate).is_null(), "its caller handles that");
        assert!(with_reserve(1, std::ptr::null_mut).is_null(), "where there is none, it ends");
    }

    #[test]
    fn an_allocation_is_retried_after_another_thread_released_the_reserve() {
        static IS_BACK: AtomicBool = AtomicBool::new(false);
        let reserve = RESERVE_POOL.get().lock();
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
        // Long enough for a retry that does not wait.
        thread::sleep(Duration::from_millis(100));
        IS_BACK.store(true, Ordering::SeqCst);
        drop(reserve);
        assert!(other.join().unwrap(), "the retry came before the reserve was released");
    }
}
