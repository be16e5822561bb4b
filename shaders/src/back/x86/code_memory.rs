//! Executable memory: a few large mappings shared by many kernels. A page is first writable, then executable, never
//! both.
//!
//! A kernel has whole pages, so that making them executable does not affect other kernels. Pages of dropped kernels are
//! reused; an empty mapping is unmapped, except for one spare. One mapping per kernel would cost more than the whole
//! compilation of some kernels, and the system limits a process to tens of thousands of mappings.
//!
//! # Safety
//!
//! The caller of the code (`call.rs`) relies on this file: the pages of a [`CodeMemory`] hold exactly the bytes they
//! were filled with, stay mapped and executable while it lives, and are never writable during that time. This holds
//! because
//!
//! - the arena hands out a page to one [`CodeMemory`] at a time, under its lock, and gets it back when that is dropped;
//! - [`Mapping::fill`] writes only pages that were handed out and whose [`CodeMemory`] is not constructed yet, and the
//!   arena makes only free pages writable;
//! - a mapping is unmapped with its last `Arc`, and every [`CodeMemory`] holds one.
//!
//! Forks: a forked process has copies of its parent's mappings, at the same addresses and with the same permissions, so
//! code of the parent can still be called there. It has an arena of its own ([`ARENA`]) with mappings of its own, and
//! never takes a page of the parent's, nor gives one back: the copy of the parent's arena may be locked by a thread
//! that is not there, and has pages that such a thread was filling. So these mappings stay until the process ends.
//!
//! Stale instructions: a processor may have fetched old code from reused pages. They lose the execute permission before
//! they are written, and the system sends a TLB shootdown to every processor that runs a thread of the process, so none
//! continues with prefetched instructions.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::{MprotectFlags, mprotect};
use spelter_locks::{Mutex, PerProcess, ProcessId};

use crate::free_ranges::FreeRanges;

/// Granularity of page protection. On other architectures machine code is only disassembled, and pages may be larger.
pub(super) const PAGE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

/// Pages of a mapping, unless one kernel needs more.
const REGION_PAGES: usize = (1 << 20) / PAGE;

/// Memory of the process for machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodeUsage {
    /// Kernels that have code.
    pub kernels: usize,
    /// Bytes of their pages.
    pub used: usize,
    /// Bytes of all mappings, used or free.
    pub mapped: usize,
}

/// The current memory usage of the process for machine code.
pub fn code_usage() -> CodeUsage {
    ARENA.get().usage()
}

/// The code of one kernel.
#[derive(Debug)]
pub(super) struct CodeMemory {
    arena: &'static Arena,
    mapping: Arc<Mapping>,
    pages: Range<usize>,
    len: usize,
}

impl CodeMemory {
    /// Allocates pages, fills them and makes them executable.
    pub(super) fn new(bytes: &[u8]) -> io::Result<Self> {
        Self::new_in(ARENA.get(), bytes)
    }

    fn new_in(arena: &'static Arena, bytes: &[u8]) -> io::Result<Self> {
        let (mapping, pages) = arena.take(bytes.len().div_ceil(PAGE).max(1))?;
        let filled = mapping.fill(&pages, bytes);
        // Constructed before the error check: dropping it returns the pages.
        let memory = Self { arena, mapping, pages, len: bytes.len() };
        filled.map(|()| memory)
    }

    /// The executable bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        let start = self.mapping.at(self.pages.start).cast_const();
        // SAFETY: these bytes were filled, and are not written while `self` lives.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        // Not the copy of a parent's arena, whose mappings stay.
        if self.arena.process.is_current() {
            let emptied = self.arena.put_back(&self.mapping, self.pages.clone());
            // Unmapped after the arena's lock is released.
            drop(emptied);
        }
    }
}

/// A mapping of contiguous pages.
#[derive(Debug)]
struct Mapping {
    map: MmapRaw,
}

impl Mapping {
    fn new(pages: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(pages * PAGE).map_anon()?;
        Ok(Self { map: map.into() })
    }

    fn at(&self, page: usize) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(page * PAGE)
    }

    /// Fills newly allocated pages and makes them executable.
    fn fill(&self, pages: &Range<usize>, bytes: &[u8]) -> io::Result<()> {
        // SAFETY: the pages are mapped, writable and large enough, and have no other user.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at(pages.start), bytes.len()) };
        self.protect(pages, MprotectFlags::READ | MprotectFlags::EXEC)
    }

    fn protect(&self, pages: &Range<usize>, flags: MprotectFlags) -> io::Result<()> {
        // SAFETY: the pages are in the mapping, and no user depends on the permissions that they lose.
        Ok(unsafe { mprotect(self.at(pages.start).cast(), pages.len() * PAGE, flags) }?)
    }
}

/// All mappings of the process.
#[derive(Debug)]
struct Arena {
    /// Where the threads are that may hold the lock.
    process: ProcessId,
    rooms: Mutex<Vec<Room>>,
}

static ARENA: PerProcess<Arena> = PerProcess::new(Arena::new);

/// A mapping with its free lists.
#[derive(Debug)]
struct Room {
    mapping: Arc<Mapping>,
    pages: usize,
    /// Free pages that are writable.
    open: Range<usize>,
    /// Free pages that are still executable.
    free: FreeRanges,
    kernels: usize,
}

impl Arena {
    fn new() -> Self {
        Self { process: ProcessId::current(), rooms: Mutex::new(Vec::new()) }
    }

    fn take(&self, count: usize) -> io::Result<(Arc<Mapping>, Range<usize>)> {
        let mut rooms = self.rooms.lock();
        let has_open = |room: &Room| room.open.len() >= count;
        let has_free = |room: &Room| room.free.first(count).is_some();
        let position = if let Some(position) = rooms.iter().position(has_open) {
            position
        } else if let Some(position) = rooms.iter().position(has_free) {
            rooms[position].open(count)?;
            position
        } else {
            rooms.push(Room::new(count.max(REGION_PAGES))?);
            rooms.len() - 1
        };
        Ok(rooms[position].take(count))
    }

    /// Returns pages. An empty mapping is removed and returned for unmapping, unless it is the only empty one.
    fn put_back(&self, mapping: &Arc<Mapping>, pages: Range<usize>) -> Option<Room> {
        let mut rooms = self.rooms.lock();
        let position = rooms.iter().position(|room| Arc::ptr_eq(&room.mapping, mapping))?;
        rooms[position].put_back(pages);
        let spare = rooms[position].pages == REGION_PAGES && rooms.iter().filter(|room| room.kernels == 0).count() == 1;
        (rooms[position].kernels == 0 && !spare).then(|| rooms.remove(position))
    }

    fn usage(&self) -> CodeUsage {
        let rooms = self.rooms.lock();
        CodeUsage {
            kernels: rooms.iter().map(|room| room.kernels).sum(),
            used: rooms.iter().map(|room| (room.pages - room.open.len() - room.free.total()) * PAGE).sum(),
            mapped: rooms.iter().map(|room| room.pages * PAGE).sum(),
        }
    }
}

impl Room {
    fn new(pages: usize) -> io::Result<Self> {
        let mapping = Arc::new(Mapping::new(pages)?);
        Ok(Self { mapping, pages, open: 0..pages, free: FreeRanges::new(), kernels: 0 })
    }

    /// Makes one sufficient run of free pages writable: the whole run, to save later system calls.
    fn open(&mut self, count: usize) -> io::Result<()> {
        let Some(run) = self.free.take_whole(count) else { return Ok(()) };
        if let Err(error) = self.mapping.protect(&run, MprotectFlags::READ | MprotectFlags::WRITE) {
            self.free.give(run);
            return Err(error);
        }
        let rest = std::mem::replace(&mut self.open, run);
        self.free.give(rest);
        Ok(())
    }

    /// Allocates pages from the writable run.
    fn take(&mut self, count: usize) -> (Arc<Mapping>, Range<usize>) {
        let pages = self.open.start..self.open.start + count;
        self.open.start = pages.end;
        self.kernels += 1;
        (Arc::clone(&self.mapping), pages)
    }

    fn put_back(&mut self, pages: Range<usize>) {
        self.kernels -= 1;
        self.free.give(pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> &'static Arena {
        Box::leak(Box::new(Arena::new()))
    }

    #[test]
    fn pages_are_reused_and_regions_unmapped() {
        let arena = arena();
        let bytes = |number: usize| vec![number as u8; 1 + number * 997 % (3 * PAGE)];
        let mut kernels: Vec<_> = (0..3 * REGION_PAGES).map(|number| (number, bytes(number))).collect();
        let mut alive: Vec<_> =
            kernels.iter().map(|(_, bytes)| CodeMemory::new_in(arena, bytes).expect("memory")).collect();
        let full = arena.usage();
        assert_eq!(full.kernels, alive.len());
        assert!(full.mapped - full.used < 2 * PAGE * arena.rooms.lock().len(), "{full:?}");
        // Every second kernel is dropped and replaced, in both parities.
        for round in 0..4 {
            let mut number = 0;
            alive.retain(|_| {
                number += 1;
                number % 2 == round % 2
            });
            let mut number = 0;
            kernels.retain(|_| {
                number += 1;
                number % 2 == round % 2
            });
            let anew: Vec<_> = kernels.iter().map(|&(number, _)| (number + 1, bytes(number + 1))).collect();
            alive.extend(anew.iter().map(|(_, bytes)| CodeMemory::new_in(arena, bytes).expect("memory")));
            kernels.extend(anew);
            assert!(alive.iter().zip(&kernels).all(|(memory, (_, bytes))| memory.bytes() == bytes));
        }
        assert!(arena.usage().mapped <= full.mapped + 2 * REGION_PAGES * PAGE, "{:?}", arena.usage());
        alive.clear();
        assert_eq!(arena.usage(), CodeUsage { kernels: 0, used: 0, mapped: REGION_PAGES * PAGE });
    }

    #[test]
    fn a_kernel_may_be_larger_than_a_region() {
        let arena = arena();
        let large = CodeMemory::new_in(arena, &vec![7; REGION_PAGES * PAGE + 1]).expect("memory");
        assert_eq!(large.bytes().len(), REGION_PAGES * PAGE + 1);
        drop(large);
        assert_eq!(arena.usage(), CodeUsage::default());
    }
}
