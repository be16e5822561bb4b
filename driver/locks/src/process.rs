//! Which process this is: what a forked process has of its parent is a copy that it must not wait for.
//!
//! Process numbers of the system do not tell that: a number is used again when its process has ended, and in a new
//! namespace a child may have its parent's. So a process has a number of its own in a page that the system empties in
//! forked processes (`MADV_WIPEONFORK`); a thread that finds the page empty is in a new process and takes the next
//! number. The last number is in memory that is copied, so a process and all that it comes from have different ones. A
//! process whose system has no such page has its number of the system.
//!
//! # Safety
//!
//! [`PAGE`] points to a static or to a page that is mapped before the pointer is stored and is never unmapped, also not
//! in forked processes, which have the same mappings. The page holds one [`AtomicU64`], for which all bits are valid,
//! and nothing but that is ever made of it.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A process, among those that it was forked from and that are forked from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId(u64);

/// The word with the number of this process; 0 if it has none yet.
static PAGE: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const NOT_ASKED).cast_mut());

/// The words in place of a page, always 0: before the first, and where the system empties no pages.
static NOT_ASKED: AtomicU64 = AtomicU64::new(0);
static NO_PAGE: AtomicU64 = AtomicU64::new(0);

/// The last number that this process or one that it comes from took.
static LAST: AtomicU64 = AtomicU64::new(0);

impl ProcessId {
    /// The calling process: two loads, after the first call. It waits for no other thread.
    #[inline]
    pub fn current() -> Self {
        // Relaxed: the number is compared with others, and orders nothing.
        match page().load(Ordering::Relaxed) {
            0 => first(),
            number => Self(number),
        }
    }

    /// Whether it is the calling process.
    #[inline]
    pub fn is_current(self) -> bool {
        self == Self::current()
    }

    /// How many processes before this one, of those that it comes from, asked for theirs. (Where the system empties no
    /// pages, any number that differs from theirs.)
    pub fn depth(self) -> u64 {
        self.0.wrapping_sub(1)
    }
}

#[inline]
fn page() -> &'static AtomicU64 {
    // Acquire: pairs with the exchange in `first`, before which the page is mapped.
    let page = PAGE.load(Ordering::Acquire);
    // SAFETY: it is valid for ever, see above.
    unsafe { &*page }
}

#[cold]
fn first() -> ProcessId {
    if std::ptr::eq(page(), &NOT_ASKED) {
        let not_asked = (&raw const NOT_ASKED).cast_mut();
        let made = std::ptr::from_ref(emptied_by_forks().unwrap_or(&NO_PAGE)).cast_mut();
        // Release: pairs with the load in `page`. If another thread was first, its page counts and this one stays
        // unused.
        let _ = PAGE.compare_exchange(not_asked, made, Ordering::Release, Ordering::Relaxed);
    }
    let page = page();
    if std::ptr::eq(page, &NO_PAGE) {
        return ProcessId(std::process::id().into());
    }
    // A thread that another one overtakes leaves a gap, which does no harm. All relaxed: see `current`.
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match page.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => ProcessId(next),
        Err(number) => ProcessId(number),
    }
}

/// A word that is 0 in every process that is forked; `None` if the system has no such pages.
#[cfg(target_os = "linux")]
fn emptied_by_forks() -> Option<&'static AtomicU64> {
    use rustix::mm::{Advice, MapFlags, ProtFlags};
    const BYTES: usize = size_of::<AtomicU64>();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the system chooses affects no other memory.
    let page = unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), BYTES, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the range is the mapping, rounded to pages as the mapping is.
    let advised = unsafe { rustix::mm::madvise(page, BYTES, Advice::LinuxWipeOnFork) };
    if advised.is_err() {
        // SAFETY: nothing has the address of the mapping.
        let _ = unsafe { rustix::mm::munmap(page, BYTES) };
        return None;
    }
    // SAFETY: a mapping is aligned, readable and writable, is zero at first, and this one is never unmapped.
    Some(unsafe { &*page.cast::<AtomicU64>() })
}

#[cfg(not(target_os = "linux"))]
fn emptied_by_forks() -> Option<&'static AtomicU64> {
    None
}
