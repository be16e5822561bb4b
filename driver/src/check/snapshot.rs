//! The contents of the memory that a dispatch may write, from before it ran: so that it can run again.

use spelter_shaders::guest::GuestSlice;

use crate::memory::Reservation;

/// Copies of ranges of memory.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Where the copies are, one after another. It serves many dispatches: making it costs more than the copies.
    memory: Option<Reservation>,
    /// Each range, and where its copy begins.
    copies: Vec<(GuestSlice, u64)>,
}

/// Copies begin on multiples of this.
const LINE: u64 = 64;

impl Snapshot {
    /// Copies the ranges, instead of those before; false, without copies, if that needs more than `budget` bytes, or
    /// memory that the host does not have.
    pub(super) fn take(&mut self, ranges: impl IntoIterator<Item = GuestSlice>, budget: u64) -> bool {
        let mut copies: Vec<(GuestSlice, u64)> = Vec::new();
        let (mut bytes, mut end) = (0, 0u64);
        self.copies.clear();
        for range in ranges {
            let known =
                |(copied, _): &(GuestSlice, u64)| (copied.address(), copied.len()) == (range.address(), range.len());
            if range.is_empty() || copies.iter().any(known) {
                continue;
            }
            bytes += range.len();
            if bytes > budget {
                return false;
            }
            copies.push((range, end));
            end = (end + range.len()).next_multiple_of(LINE);
        }
        let Some(memory) = self.room(end) else { return false };
        for &(range, at) in &copies {
            memory.copy_from(at, range, 0, range.len());
        }
        self.copies = copies;
        true
    }

    /// Memory for so many bytes.
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
        let Some(memory) = &self.memory else { return };
        for &(range, at) in &self.copies {
            range.copy_from(0, memory.slice(), at, range.len());
        }
    }
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
}
