//! A second mapping of a heap, for the host: pages of it can be closed, and an access of the host to a closed page is
//! reported while it waits. Commands use the first mapping, whose pages are always open.
//!
//! # Safety
//!
//! `mprotect` and `sigaction` are called as their manuals say, on mappings that exist as long as a [`HostView`]. The
//! handlers run on a thread of the program, in the middle of an instruction of it that accesses the view. Such an
//! instruction is neither in this library nor in an allocator or a lock, none of which has memory of a view; so the
//! handlers may allocate and take locks. A thread of the driver never accesses a view, except to copy what the program
//! passed by a pointer, and it holds no lock of checked mode then. What the handlers change in the state of the thread
//! is the trap flag.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Weak};

use foldhash::fast::FixedState;
use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::{MprotectFlags, mprotect};
use spelter_locks::{Mutex, ProcessId};

use super::fault;

/// Bytes of a page.
const PAGE: usize = 4096;

/// What the host may do with a page without being reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Closed {
    /// Everything.
    #[default]
    Open,
    /// It may read.
    ForWrites,
    /// Nothing.
    ForAll,
}

impl Closed {
    /// Whether an access is reported.
    pub(crate) fn is_for(self, writes: bool) -> bool {
        self == Self::ForAll || writes && self == Self::ForWrites
    }

    fn flags(self) -> MprotectFlags {
        match self {
            Self::Open => MprotectFlags::READ | MprotectFlags::WRITE,
            Self::ForWrites => MprotectFlags::READ,
            Self::ForAll => MprotectFlags::empty(),
        }
    }
}

/// Receives the accesses of the host to closed pages, on the thread that makes them, before they happen.
pub(crate) trait HostObserver: fmt::Debug + Send + Sync {
    /// An access to the byte at this offset of the heap, by the instruction at this address. Returns how much of its
    /// page stays closed; the access itself happens in any case.
    fn accessed(&self, offset: u64, writes: bool, instruction: usize) -> Closed;
}

/// The mapping.
#[derive(Debug)]
pub(crate) struct HostView {
    map: MmapRaw,
    /// Bytes skipped at the front, as in the first mapping.
    skip: usize,
    len: usize,
    /// The pages that are not open, by their number.
    closed: Mutex<HashMap<usize, Closed, FixedState>>,
    observer: Mutex<Option<Weak<dyn HostObserver>>>,
    /// In a forked process nothing is observed, and the locks may be held by threads that are not there.
    process: ProcessId,
}

impl HostView {
    /// A view of `len` bytes of a file from `skip` on.
    pub(super) fn new(file: &File, skip: usize, len: usize) -> io::Result<Arc<Self>> {
        let map = MmapOptions::new().len(skip + len).map_raw(file)?;
        let (closed, observer) = Default::default();
        let view = Arc::new(Self { map, skip, len, closed, observer, process: ProcessId::current() });
        fault::watch(&view)?;
        Ok(view)
    }

    /// The address of a byte of the heap for the host.
    pub(super) fn pointer(&self, offset: usize) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(self.skip + offset)
    }

    /// Sets what receives the accesses to closed pages.
    pub(crate) fn observe(&self, observer: Weak<dyn HostObserver>) {
        *self.observer.lock() = Some(observer);
    }

    /// Closes the pages of a range of the heap, at least as much.
    pub(crate) fn close(&self, range: Range<u64>, wanted: Closed) {
        let mut closed = self.closed.lock();
        for page in pages(&range) {
            let known = closed.get(&page).copied().unwrap_or_default();
            if known < wanted && self.protect(page, wanted) {
                closed.insert(page, wanted);
            }
        }
    }

    /// Opens the pages of a range of the heap.
    pub(crate) fn open(&self, range: Range<u64>) {
        let mut closed = self.closed.lock();
        for page in pages(&range) {
            if closed.contains_key(&page) && self.protect(page, Closed::Open) {
                closed.remove(&page);
            }
        }
    }

    /// The offset of an address, if it is in the view.
    pub(super) fn offset(&self, address: usize) -> Option<usize> {
        address.checked_sub(self.pointer(0).addr()).filter(|offset| *offset < self.len)
    }

    /// An access to a closed page. Returns whether the page must be closed again after it; in the meantime it is open.
    pub(super) fn faulted(&self, offset: usize, writes: bool, instruction: usize) -> bool {
        let page = offset / PAGE;
        if !self.process.is_current() {
            self.protect(page, Closed::Open);
            return false;
        }
        let observer = self.observer.lock().as_ref().and_then(Weak::upgrade);
        let wanted = observer.map_or(Closed::Open, |observer| observer.accessed(offset as u64, writes, instruction));
        let mut closed = self.closed.lock();
        match wanted {
            Closed::Open => _ = closed.remove(&page),
            _ => _ = closed.insert(page, wanted),
        }
        // The instruction runs again after this, so its page has to be open even if it stays closed for others.
        let again = wanted.is_for(writes);
        self.protect(page, if again { Closed::Open } else { wanted });
        again
    }

    /// The access has happened.
    pub(super) fn accessed(&self, offset: usize) {
        let page = offset / PAGE;
        let closed = self.closed.lock();
        self.protect(page, closed.get(&page).copied().unwrap_or_default());
    }

    fn protect(&self, page: usize, wanted: Closed) -> bool {
        // SAFETY: the page is in the mapping, which has no Rust references.
        unsafe { mprotect(self.pointer(page * PAGE).cast(), PAGE, wanted.flags()) }.is_ok()
    }
}

/// The pages of a range.
fn pages(range: &Range<u64>) -> Range<usize> {
    range.start as usize / PAGE..(range.end as usize).max(range.start as usize).div_ceil(PAGE)
}
