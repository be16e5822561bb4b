//! The driver's own mappings: the reserved address ranges of heaps. A heap whose pages the host sees in a mapping of
//! its own (`host_view.rs`) has them in an anonymous file.
//!
//! # Safety
//!
//! Two obligations arise here. [`GuestSlice::new`] requires its range to be mapped, readable and writable while a copy
//! of the slice is used: a [`Reservation`] maps its whole range for its whole life, and code that hands out slices
//! keeps an `Arc` of it with them. Rust references must not point into the range: nothing here makes one. Advice that
//! drops pages changes what racing reads see (stale bytes or zeros) and keeps the range mapped.

#[cfg(target_os = "linux")]
use std::ffi::{c_char, c_int, c_uint};
use std::fs::File;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use spelter_shaders::guest::GuestSlice;

use super::host_view::HostView;

/// Size and alignment of huge pages on the supported machines.
const HUGE_PAGE: usize = 2 << 20;

/// An anonymous mapping whose pages are committed when they are first touched.
#[derive(Debug)]
pub(crate) struct Reservation {
    map: MmapRaw,
    /// The anonymous file whose pages they are, if the host has a mapping of its own.
    file: Option<File>,
    /// Bytes skipped at the front, so that the range begins with a huge page.
    skip: usize,
    len: usize,
}

impl Reservation {
    /// Reserves `bytes` of addresses; the system may refuse.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let padded = bytes.checked_add(HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = MmapRaw::from(MmapOptions::new().len(padded).no_reserve_swap().map_anon()?);
        let skip = map.as_mut_ptr().addr().wrapping_neg() % HUGE_PAGE;
        let reservation = Self { map, file: None, skip, len: bytes };
        reservation.ask_for_huge_pages();
        Ok(reservation)
    }

    /// The same, with a view of the pages for the host.
    pub(super) fn with_host_view(bytes: usize) -> io::Result<(Self, Arc<HostView>)> {
        let padded = bytes.checked_add(HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let file = anonymous_file()?;
        file.set_len(padded as u64)?;
        let map = MmapOptions::new().len(padded).map_raw(&file)?;
        let skip = map.as_mut_ptr().addr().wrapping_neg() % HUGE_PAGE;
        let view = HostView::new(&file, skip, bytes)?;
        Ok((Self { map, file: Some(file), skip, len: bytes }, view))
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The whole range. Must not be used after the reservation is dropped.
    pub(crate) fn slice(&self) -> GuestSlice {
        let base = self.map.as_mut_ptr().wrapping_add(self.skip);
        // SAFETY: `skip` and `skip + len`, rounded outwards to words, lie in the mapping, which consists of whole
        // pages; it lives as long as `self`, which outlives every use of the slice by this module's rule; nothing else
        // accesses it.
        unsafe { GuestSlice::new(base, self.len as u64) }
    }

    #[cfg(target_os = "linux")]
    fn ask_for_huge_pages(&self) {
        // Refused if the Linux kernel was built without huge pages: slower, otherwise the same.
        let _ = self.map.advise_range(memmap2::Advice::HugePage, self.skip, self.len);
    }

    #[cfg(not(target_os = "linux"))]
    fn ask_for_huge_pages(&self) {}

    /// Returns the pages of `offset .. offset + len` to the system, so that they read as zero. Both are multiples of
    /// the page size.
    pub(super) fn decommit(&self, offset: usize, len: usize) {
        if !self.drop_pages(offset, len) {
            self.slice().slice(offset as u64, len as u64).fill(0, len as u64, 0);
        }
    }

    /// Whether the system took the pages and guarantees zeros.
    #[cfg(target_os = "linux")]
    fn drop_pages(&self, offset: usize, len: usize) -> bool {
        let advice = match self.file {
            None => memmap2::UncheckedAdvice::DontNeed,
            // The file has a hole there, in all its mappings.
            Some(_) => memmap2::UncheckedAdvice::Remove,
        };
        // SAFETY: an anonymous private mapping, or a file in memory, reads as zero afterwards and stays mapped; no
        // reference points into it, so no value that Rust relies on changes.
        unsafe { self.map.unchecked_advise_range(advice, self.skip + offset, len) }.is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn drop_pages(&self, _offset: usize, _len: usize) -> bool {
        false // the promise of zeros is Linux's own
    }
}

/// A file without a name, in memory.
#[cfg(target_os = "linux")]
fn anonymous_file() -> io::Result<File> {
    unsafe extern "C" {
        fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    }
    /// `MFD_CLOEXEC` of `<sys/mman.h>`.
    const CLOSE_ON_EXEC: c_uint = 1;
    // SAFETY: the name ends with 0.
    match unsafe { memfd_create(c"spelter-heap".as_ptr(), CLOSE_ON_EXEC) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: it is a new descriptor that nothing else owns.
        descriptor => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn anonymous_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}
