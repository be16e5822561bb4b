//! The contents of the memory that a dispatch may write, from before it ran: so that it can run again.

use spelter_shaders::guest::GuestSlice;

/// Copies of ranges of memory.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    copies: Vec<(GuestSlice, Vec<u8>)>,
}

impl Snapshot {
    /// Copies the ranges; `None` if that needs more than `budget` bytes, or memory that the host does not have.
    pub(super) fn of(ranges: impl IntoIterator<Item = GuestSlice>, budget: u64) -> Option<Self> {
        let mut copies: Vec<(GuestSlice, Vec<u8>)> = Vec::new();
        let mut left = budget;
        for range in ranges {
            let known = |(copied, _): &(GuestSlice, Vec<u8>)| {
                (copied.address(), copied.len()) == (range.address(), range.len())
            };
            if range.is_empty() || copies.iter().any(known) {
                continue;
            }
            left = left.checked_sub(range.len())?;
            let len = usize::try_from(range.len()).ok()?;
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(len).ok()?;
            bytes.resize(len, 0);
            range.read(0, &mut bytes);
            copies.push((range, bytes));
        }
        Some(Self { copies })
    }

    /// Writes the contents back. Ranges that overlap had the same contents.
    pub(super) fn restore(&self) {
        for (range, bytes) in &self.copies {
            range.write(0, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_back() {
        let slice = GuestSlice::leak(64);
        slice.fill(0, 64, 7);
        let snapshot = Snapshot::of([slice, slice, slice.slice(8, 8)], 72).unwrap();
        slice.fill(0, 64, 9);
        snapshot.restore();
        assert_eq!([slice.load_u32(0), slice.load_u32(12), slice.load_u32(60)], [7; 3]);
        assert!(Snapshot::of([slice], 63).is_none());
    }
}
