//! The contents of the memory that a dispatch may write, from before it ran: so that it can run again.
//!
//! Pages that hold zeros only are not copied. Most of a large buffer that a dispatch hardly touches was never written,
//! so the copy needs memory for what was, and not for the whole binding.

use std::ops::Range;

use spelter_shaders::guest::GuestSlice;

use super::untouched::Untouched;
use crate::memory::Reservation;

/// Bytes of a page: what is copied or holds zeros as a whole.
pub(super) const PAGE: u64 = 4096;

/// Copies of ranges of memory.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Where the copies are, one after another. It serves many dispatches: making it costs more than the copies.
    memory: Option<Reservation>,
    ranges: Vec<Copied>,
    /// Bytes of the copies.
    bytes: u64,
}

/// A range of memory.
#[derive(Debug)]
struct Copied {
    range: GuestSlice,
    /// Its parts that have a copy, in ascending order; the others held zeros.
    parts: Vec<SnapshotPart>,
}

/// A part of a range, and where its copy begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SnapshotPart {
    start: u64,
    end: u64,
    copy: u64,
}

/// Copies begin on multiples of this.
const LINE: u64 = 64;

impl Snapshot {
    /// Copies the ranges, instead of those before; false, without copies, if that needs more than `budget` bytes, or
    /// memory that the host does not have.
    pub(super) fn take(&mut self, ranges: impl IntoIterator<Item = GuestSlice>, budget: u64) -> bool {
        let mut known: Vec<GuestSlice> = Vec::new();
        for range in ranges {
            let is_same = |other: &GuestSlice| (other.address(), other.len()) == (range.address(), range.len());
            if !range.is_empty() && !known.iter().any(is_same) {
                known.push(range);
            }
        }
        self.ranges.clear();
        self.bytes = 0;
        let mut all = Vec::new();
        let (mut bytes, mut end) = (0, 0);
        for range in known {
            let mut parts = Vec::new();
            for part in parts_with_contents(range) {
                bytes += part.end - part.start;
                if bytes > budget {
                    return false;
                }
                parts.push(SnapshotPart { start: part.start, end: part.end, copy: end });
                end = (end + part.end - part.start).next_multiple_of(LINE);
            }
            all.push(Copied { range, parts });
        }
        let Some(memory) = self.room(end) else { return false };
        for Copied { range, parts } in &all {
            parts.iter().for_each(|part| memory.copy_from(part.copy, *range, part.start, part.end - part.start));
        }
        (self.ranges, self.bytes) = (all, bytes);
        true
    }

    /// How many bytes the copies have.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Memory for this many bytes.
    fn room(&mut self, bytes: u64) -> Option<GuestSlice> {
        if bytes == 0 {
            return Some(GuestSlice::EMPTY);
        }
        if self.memory.as_ref().is_none_or(|memory| (memory.len() as u64) < bytes) {
            self.memory = None;
            self.memory = Some(Reservation::new(usize::try_from(bytes).ok()?).ok()?);
        }
        self.memory.as_ref().map(Reservation::slice)
    }

    /// Writes the contents back. Ranges that overlap had the same contents.
    pub(super) fn restore(&self) {
        let memory = self.memory.as_ref().map_or(GuestSlice::EMPTY, Reservation::slice);
        for Copied { range, parts } in &self.ranges {
            let untouched = Untouched::of(*range);
            let mut at = 0;
            for part in parts {
                clear(*range, at..part.start, &untouched);
                range.copy_from(part.start, memory, part.copy, part.end - part.start);
                at = part.end;
            }
            clear(*range, at..range.len(), &untouched);
        }
    }
}

/// The parts of a range without its pages of zeros, in ascending order.
fn parts_with_contents(range: GuestSlice) -> Vec<Range<u64>> {
    let untouched = Untouched::of(range);
    let mut parts: Vec<Range<u64>> = Vec::new();
    for page in pages(range, 0..range.len()) {
        if untouched.has(&page) || holds_zeros(range, &page) {
            continue;
        }
        match parts.last_mut() {
            Some(last) if last.end == page.start => last.end = page.end,
            _ => parts.push(page),
        }
    }
    parts
}

/// Fills a part of a range with zeros. Pages that hold them stay untouched.
fn clear(range: GuestSlice, part: Range<u64>, untouched: &Untouched) {
    for page in pages(range, part) {
        if !untouched.has(&page) && !holds_zeros(range, &page) {
            range.fill(page.start, page.end - page.start, 0);
        }
    }
}

/// The pages of a part of a range, or what the part has of them.
fn pages(range: GuestSlice, part: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let before = range.address() as u64 % PAGE;
    let mut at = part.start;
    std::iter::from_fn(move || {
        let start = at;
        at = ((before + start) / PAGE * PAGE + PAGE - before).min(part.end);
        (start < part.end).then_some(start..at)
    })
}

fn holds_zeros(range: GuestSlice, page: &Range<u64>) -> bool {
    let mut bytes = [0; 512];
    (page.start..page.end).step_by(bytes.len()).all(|at| {
        let bytes = &mut bytes[..(page.end - at).min(512) as usize];
        range.read(at, bytes);
        bytes.iter().fold(0, |all, byte| all | byte) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_back() {
        let slice = GuestSlice::leak(64);
        let mut snapshot = Snapshot::default();
        for value in [7, 8] {
            slice.fill(0, 64, value);
            assert!(snapshot.take([slice, slice, slice.slice(8, 8)], 72));
            slice.fill(0, 64, 9);
            snapshot.restore();
            assert_eq!([slice.load_u32(0), slice.load_u32(12), slice.load_u32(60)], [value; 3]);
        }
        assert!(!snapshot.take([slice], 63));
        slice.fill(0, 64, 9);
        snapshot.restore();
        assert_eq!(slice.load_u32(0), 9, "nothing is restored that was not copied");
    }

    #[test]
    fn pages_of_zeros_need_no_memory_and_come_back() {
        // Some pages, beginning in the middle of one, and not at a word.
        let slice = GuestSlice::leak(80 * PAGE as usize).slice(1234, 77 * PAGE);
        let at = |page: u64| page * PAGE + 99;
        slice.store_u8(at(3), 1);
        slice.store_u8(at(4), 2);
        slice.store_u8(slice.len() - 1, 3);
        let mut snapshot = Snapshot::default();
        assert!(!snapshot.take([slice], 2 * PAGE));
        assert!(snapshot.take([slice], 3 * PAGE));
        assert!((2 * PAGE + 1..=3 * PAGE).contains(&snapshot.bytes()), "{}", snapshot.bytes());
        let before: Vec<u8> = (0..slice.len()).map(|at| slice.load_u8(at)).collect();
        for page in [0, 2, 3, 4, 50, 76] {
            slice.store_u8(at(page), 9);
        }
        slice.store_u8(0, 9);
        slice.store_u8(slice.len() - 1, 9);
        snapshot.restore();
        let after: Vec<u8> = (0..slice.len()).map(|at| slice.load_u8(at)).collect();
        assert!(before == after);
    }

    #[test]
    fn what_the_system_has_no_pages_for_is_not_looked_at() {
        let memory = Reservation::new(1 << 30).unwrap();
        let slice = memory.slice();
        slice.store_u32(512 << 20, 5);
        let mut snapshot = Snapshot::default();
        assert!(snapshot.take([slice], PAGE));
        assert_eq!(snapshot.bytes(), PAGE);
        slice.store_u32(512 << 20, 6);
        slice.store_u32(1 << 20, 7);
        snapshot.restore();
        assert_eq!([slice.load_u32(512 << 20), slice.load_u32(1 << 20)], [5, 0]);
    }
}
