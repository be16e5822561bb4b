//! Fallible allocation of host memory whose size a program chooses: a failed allocation ends the call with an error,
//! and the process goes on.
//!
//! Rust's collections abort the process when the allocator fails. Lists whose length the program controls (descriptors
//! of a set, commands of a recording, results of queries) are allocated by the functions here.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::MmapMut;
use rustix::process::{Resource, getrlimit};
use spelter_locks::Computed;

/// The host has too little memory for a call (`VK_ERROR_OUT_OF_HOST_MEMORY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of host memory: {bytes} bytes wanted")]
pub struct OutOfHostMemory {
    /// Number of bytes requested; `u64::MAX` if the number does not fit.
    pub bytes: u64,
}

impl OutOfHostMemory {
    fn for_list<T>(len: usize) -> Self {
        Self { bytes: (len as u64).saturating_mul(size_of::<T>() as u64) }
    }
}

/// Reserves memory for `more` further elements of a list.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), OutOfHostMemory> {
    list.try_reserve(more).map_err(|_| OutOfHostMemory::for_list::<T>(list.len().saturating_add(more)))
}

/// Reserves memory for `more` further elements of a set.
pub fn reserve_set<T: Eq + Hash, S: BuildHasher>(set: &mut HashSet<T, S>, more: usize) -> Result<(), OutOfHostMemory> {
    set.try_reserve(more).map_err(|_| OutOfHostMemory::for_list::<T>(set.len().saturating_add(more)))
}

/// Reserves memory for `more` further keys of a map.
pub fn reserve_map<K: Eq + Hash, V, S: BuildHasher>(
    map: &mut HashMap<K, V, S>,
    more: usize,
) -> Result<(), OutOfHostMemory> {
    map.try_reserve(more).map_err(|_| OutOfHostMemory::for_list::<(K, V)>(map.len().saturating_add(more)))
}

/// An empty list with capacity for exactly `len` elements.
pub fn list<T>(len: usize) -> Result<Vec<T>, OutOfHostMemory> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| OutOfHostMemory::for_list::<T>(len))?;
    Ok(list)
}

/// All elements of an iterator.
pub fn collect<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>, OutOfHostMemory> {
    try_collect(items.into_iter().map(Ok::<_, OutOfHostMemory>))
}

/// All elements of an iterator, or its first error.
pub fn try_collect<T, E: From<OutOfHostMemory>>(items: impl IntoIterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let items = items.into_iter();
    let mut all = list(items.size_hint().0)?;
    for item in items {
        // Reserved before the loop, except for an iterator that does not know its length.
        if all.len() == all.capacity() {
            reserve(&mut all, 1)?;
        }
        all.push(item?);
    }
    Ok(all)
}

/// A copy of a slice.
pub fn copied<T: Clone>(of: &[T]) -> Result<Vec<T>, OutOfHostMemory> {
    let mut all = list(of.len())?;
    all.extend_from_slice(of);
    Ok(all)
}

/// `len` copies of a value.
pub fn filled<T: Clone>(value: T, len: usize) -> Result<Vec<T>, OutOfHostMemory> {
    let mut all = list(len)?;
    all.resize(len, value);
    Ok(all)
}

/// Bytes that are promised to work with many small allocations. Only a count, so all accesses are relaxed.
static PROMISED: AtomicU64 = AtomicU64::new(0);

/// Promises up to this many bytes in all need no check where no limit is set: small kernels are compiled in less time
/// than some checks take.
const UNCHECKED: u64 = 256 << 20;

/// Whether a limit may refuse a mapping of [`UNCHECKED`] bytes: of the process (`RLIMIT_AS`, `RLIMIT_DATA`), or of the
/// system (strict overcommit accounting).
fn is_limited() -> bool {
    static STRICT: Computed<bool> = Computed::new();
    let strict = || std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2");
    let has_limit = |resource| getrlimit(resource).current.is_some();
    has_limit(Resource::As) || has_limit(Resource::Data) || *STRICT.get_or_compute(strict)
}

/// A promise of host memory to work with many small allocations that cannot fail one by one, such as compiling a
/// kernel. Given back on drop.
#[must_use]
#[derive(Debug)]
pub struct Room {
    bytes: u64,
}

impl Room {
    /// Checks that the system has `bytes` now, in addition to what other threads were promised. Allocates nothing.
    /// Where no limit is set, only large sums are checked.
    pub fn of(bytes: u64) -> Result<Self, OutOfHostMemory> {
        let all = PROMISED.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let room = Self { bytes };
        if all <= UNCHECKED && !is_limited() {
            return Ok(room);
        }
        let len = usize::try_from(all).map_err(|_| OutOfHostMemory { bytes })?;
        // Asks the system instead of the allocator, which may have memory that only some threads can use.
        MmapMut::map_anon(len.max(1)).map_err(|_| OutOfHostMemory { bytes })?;
        Ok(room)
    }
}

/// Promises for work whose need of memory is known only as it grows: each promise replaces the one before, whose memory
/// is in use by then.
#[derive(Debug, Default)]
pub struct GrowingRoom {
    room: RefCell<Option<Room>>,
    refused: Cell<Option<OutOfHostMemory>>,
}

impl GrowingRoom {
    /// Whether the system has `bytes` now; after a refusal always `false`.
    pub fn has(&self, bytes: u64) -> bool {
        drop(self.room.take());
        match Room::of(bytes) {
            Ok(room) => _ = self.room.replace(Some(room)),
            Err(refused) => self.refused.set(Some(refused)),
        }
        self.refused.get().is_none()
    }

    /// The result of the work, or the promise that was refused.
    pub fn result<T, E: From<OutOfHostMemory>>(self, result: Result<T, E>) -> Result<T, E> {
        self.refused.get().map_or(result, |refused| Err(refused.into()))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        PROMISED.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_an_error() {
        let bytes = 8 * (1 << 60);
        assert_eq!(filled(0u64, 1 << 60), Err(OutOfHostMemory { bytes }));
        assert_eq!(list::<u64>(usize::MAX), Err(OutOfHostMemory { bytes: u64::MAX }));
        assert_eq!(Room::of(1 << 62).unwrap_err(), OutOfHostMemory { bytes: 1 << 62 });
        assert!(Room::of(1 << 10).is_ok(), "what was refused is not promised");
        assert_eq!(collect((0..1u64 << 60).map(|_| 0u64)), Err(OutOfHostMemory { bytes }));
        assert_eq!(reserve_set(&mut HashSet::from([1u64]), (1 << 60) - 1), Err(OutOfHostMemory { bytes }));
        assert_eq!(reserve_map(&mut HashMap::from([(1u32, 2u32)]), (1 << 60) - 1), Err(OutOfHostMemory { bytes }));
    }

    #[test]
    fn a_refused_promise_is_the_result() {
        let room = GrowingRoom::default();
        assert!(room.has(1 << 10) && room.has(1 << 11) && !room.has(1 << 62));
        assert_eq!(room.result::<u32, OutOfHostMemory>(Ok(1)), Err(OutOfHostMemory { bytes: 1 << 62 }));
        assert_eq!(GrowingRoom::default().result::<u32, OutOfHostMemory>(Ok(1)), Ok(1));
    }

    #[test]
    fn lists_hold_what_they_are_made_of() {
        assert_eq!(collect([1, 2, 3].into_iter().filter(|n| *n != 2)), Ok(vec![1, 3]));
        assert_eq!(filled(7, 3), copied(&[7, 7, 7]));
        let items = [Ok(1), Err(OutOfHostMemory { bytes: 4 }), Ok(2)];
        assert_eq!(try_collect(items), Err(OutOfHostMemory { bytes: 4 }));
    }
}
