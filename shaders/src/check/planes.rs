//! The memory of the shadow: planes beside a range of addresses, which machine code can address.
//!
//! A range of memory has four planes: the cells of writes and of reads, four bytes for each word, and for observers
//! that keep track of the instructions ([`Plane::Wrote`], [`Plane::HasRead`]) two planes of a byte for each word.
//! They are one reservation of addresses. The system commits a page of it when the page is first used, filled with
//! zeros.
//!
//! # Safety
//!
//! [`Planes::slice`] makes guest slices, [`Planes::cells`] references of Rust, to the same memory. [`GuestSlice::new`]
//! wants the memory mapped while a slice is used, which the owner of a slice must ensure by a clone of the `Arc`, and
//! accessed through slices only. The latter is weakened here: slices of planes are for machine code, which uses them
//! between two calls of the observer, and references of Rust exist only within such a call, on the same thread. Machine
//! code's accesses are not Rust's.

use std::ops::Range;
use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};

use crate::guest::GuestSlice;
use crate::ir::{Plane, PlaneSet};

impl Plane {
    /// Bytes for each word of memory.
    const fn width(self) -> u64 {
        match self {
            Self::Written | Self::Read => 4,
            Self::Wrote | Self::HasRead => 1,
        }
    }

    /// Where the plane begins, in bytes for each word of memory.
    const fn start(self) -> u64 {
        match self {
            Self::Written => 0,
            Self::Read => 4,
            Self::Wrote => 8,
            Self::HasRead => 9,
        }
    }
}

/// Bytes of all planes for each word of memory.
const WIDTHS: u64 = 10;

/// Ranges begin and end on multiples of this.
pub const GRANULE: u64 = 64 << 10;

impl PlaneSet {
    /// Bytes of these planes for a granule of memory, which they occupy once they are written.
    pub(super) const fn bytes(self) -> u64 {
        let cells = 4 * (self.both(Self::CELLS).len() as u64);
        (cells + self.without(Self::CELLS).len() as u64) * GRANULE / 4
    }
}

/// The planes of a range of addresses.
#[derive(Debug)]
pub struct Planes {
    map: MmapRaw,
    memory: Range<u64>,
}

impl Planes {
    /// Reserves the planes of a range, rounded outwards; `None` if the system has not as many addresses.
    pub fn new(memory: Range<u64>) -> Option<Arc<Self>> {
        let (start, end) = (memory.start / GRANULE * GRANULE, memory.end.checked_next_multiple_of(GRANULE)?);
        let bytes = (end.checked_sub(start)?.max(GRANULE) / 4).checked_mul(WIDTHS)?;
        let map = MmapOptions::new().len(usize::try_from(bytes).ok()?).no_reserve_swap().map_anon().ok()?;
        Some(Arc::new(Self { map: map.into(), memory: start..end.max(start + GRANULE) }))
    }

    /// Whether all of a range has planes.
    pub fn cover(&self, range: &Range<u64>) -> bool {
        self.memory.start <= range.start && range.end <= self.memory.end
    }

    /// The part of a plane for the words of a range of memory, which begins and ends with whole words: as many as lie
    /// in it. Empty if the range has no planes. Valid while this exists.
    pub fn slice(&self, plane: Plane, range: Range<u64>) -> GuestSlice {
        let Some((at, bytes)) = self.place(plane, &range) else { return GuestSlice::EMPTY };
        // SAFETY: `place` gives a part of the mapping, which lives as long as `self`. Other accesses: see above.
        unsafe { GuestSlice::new(self.map.as_mut_ptr().wrapping_add(at), bytes as u64) }
    }

    /// The cells of a granule of memory.
    #[expect(clippy::mut_from_ref, reason = "the planes of a page belong to its `Page`, which calls this")]
    #[inline]
    pub(super) fn cells(&self, plane: Plane, granule: u64) -> &mut [u32] {
        let start = granule * GRANULE;
        let Some((at, bytes)) = self.place(plane, &(start..start + GRANULE)) else { return &mut [] };
        debug_assert_eq!(plane.width(), 4, "bytes are no cells");
        let first = self.map.as_mut_ptr().wrapping_add(at).cast::<u32>();
        // SAFETY: a part of the mapping, aligned as planes of cells begin on multiples of 4 bytes. Each `Page` has a
        // granule of its own, so there are no other references; machine code is not running.
        unsafe { std::slice::from_raw_parts_mut(first, bytes / 4) }
    }

    /// Makes these planes of a granule zeros, and gives their memory back where that can be done. The caller holds none
    /// of their cells and marks.
    pub(super) fn empty(&self, granule: u64, set: PlaneSet) {
        let start = granule * GRANULE;
        for plane in set.planes() {
            let Some((at, bytes)) = self.place(plane, &(start..start + GRANULE)) else { continue };
            if !self.give_back(at, bytes) {
                let slice = self.slice(plane, start..start + GRANULE);
                slice.fill(0, slice.len(), 0);
            }
        }
    }

    /// Whether the system took the pages of a part of the mapping and guarantees zeros.
    #[cfg(target_os = "linux")]
    fn give_back(&self, at: usize, bytes: usize) -> bool {
        let advice = memmap2::UncheckedAdvice::DontNeed;
        // SAFETY: an anonymous private mapping reads as zero afterwards and stays mapped, and no reference points into
        // it now: those of `cells` belong to the caller's page. A plane of a granule is whole pages of the system.
        unsafe { self.map.unchecked_advise_range(advice, at, bytes) }.is_ok()
    }

    #[cfg(not(target_os = "linux"))]
    fn give_back(&self, _at: usize, _bytes: usize) -> bool {
        false // the promise of zeros is Linux's own
    }

    /// Offset in the mapping and bytes of a part of a plane.
    #[inline]
    fn place(&self, plane: Plane, range: &Range<u64>) -> Option<(usize, usize)> {
        if !self.cover(range) || !range.start.is_multiple_of(4) || range.end < range.start {
            return None;
        }
        let words = (self.memory.end - self.memory.start) / 4;
        let at = words * plane.start() + (range.start - self.memory.start) / 4 * plane.width();
        let bytes = (range.end - range.start) / 4 * plane.width();
        Some((at as usize, bytes as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_have_a_place_for_each_word_and_do_not_overlap() {
        let planes = Planes::new(GRANULE + 100..3 * GRANULE - 4).unwrap();
        assert!(planes.cover(&(GRANULE..3 * GRANULE)) && !planes.cover(&(GRANULE - 4..GRANULE)));
        let all = [Plane::Written, Plane::Read, Plane::Wrote, Plane::HasRead];
        for (number, plane) in (1..).zip(all) {
            planes.slice(plane, GRANULE..3 * GRANULE).fill(0, u64::MAX, number * 0x0101_0101);
        }
        for (number, plane) in (1u8..).zip(all) {
            let slice = planes.slice(plane, GRANULE..3 * GRANULE);
            assert_eq!(slice.len(), 2 * GRANULE / 4 * plane.width());
            assert!((0..slice.len()).step_by(97).all(|at| slice.load_u8(at) == number), "{plane:?}");
        }
        assert_eq!(planes.cells(Plane::Read, 2)[0], 0x0202_0202);
        assert!(planes.slice(Plane::Read, 0..64).is_empty());
        assert!(planes.slice(Plane::Written, GRANULE + 8..GRANULE + 14).len() == 4);
    }

    #[test]
    fn sets_of_planes_occupy_the_bytes_of_their_planes() {
        let words = GRANULE / 4;
        let writes = PlaneSet::of(Plane::Written).and(Plane::Wrote);
        assert_eq!([PlaneSet::NONE, writes, PlaneSet::ALL].map(PlaneSet::bytes), [0, 5 * words, WIDTHS * words]);
        assert!(PlaneSet::ALL.has(writes) && !writes.has(PlaneSet::ALL) && writes.has(PlaneSet::NONE));
        let planes = Planes::new(0..GRANULE).unwrap();
        let all = [Plane::Written, Plane::Wrote, Plane::Read, Plane::HasRead];
        all.iter().for_each(|&plane| planes.slice(plane, 0..GRANULE).fill(0, u64::MAX, u32::MAX));
        planes.empty(0, writes);
        assert_eq!(all.map(|plane| planes.slice(plane, 0..GRANULE).load_u8(words - 1)), [0, 0, 255, 255]);
    }

    #[test]
    fn more_addresses_than_there_are_is_no_panic() {
        assert!(Planes::new(0..u64::MAX).is_none());
        assert!(Planes::new(64 << 10..16 << 40).is_none_or(|planes| planes.cover(&(64 << 10..16 << 40))));
    }
}
