//! Free ranges of numbers, for allocators: first fit, adjacent ranges merged. Device memory, the pages of machine code
//! and the inline blocks of a descriptor pool are allocated from such ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Free ranges: sorted, disjoint, not empty and never adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeRanges {
    /// Ends, by start.
    ends: BTreeMap<usize, usize>,
}

impl FreeRanges {
    /// No range.
    pub const fn new() -> Self {
        Self { ends: BTreeMap::new() }
    }

    /// One range, which may be empty.
    pub fn of(range: Range<usize>) -> Self {
        let mut free = Self::new();
        free.give(range);
        free
    }

    /// Takes `len` numbers from the first range that has as many. `len` is at least 1.
    pub fn take(&mut self, len: usize) -> Option<Range<usize>> {
        let whole = self.take_whole(len)?;
        let taken = whole.start..whole.start + len;
        // What is left has no neighbours: those of the whole range were not free.
        if taken.end < whole.end {
            self.ends.insert(taken.end, whole.end);
        }
        Some(taken)
    }

    /// Takes all of the first range that has `len` numbers.
    pub fn take_whole(&mut self, len: usize) -> Option<Range<usize>> {
        let range = self.first(len)?;
        self.ends.remove(&range.start);
        Some(range)
    }

    /// The first range that has `len` numbers.
    pub fn first(&self, len: usize) -> Option<Range<usize>> {
        self.iter().find(|range| range.len() >= len)
    }

    /// Returns numbers that were taken.
    pub fn give(&mut self, Range { mut start, mut end }: Range<usize>) {
        if start >= end {
            return;
        }
        if let Some((&before, &before_end)) = self.ends.range(..=start).next_back() {
            debug_assert!(before_end <= start, "{start}..{end} was free already");
            if before_end == start {
                start = before;
            }
        }
        if let Some(after_end) = self.ends.remove(&end) {
            end = after_end;
        }
        debug_assert!(self.ends.range(start + 1..end).next().is_none(), "{start}..{end} was free already");
        self.ends.insert(start, end);
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// How many numbers are free.
    pub fn total(&self) -> usize {
        self.iter().map(|range| range.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_range_that_is_large_enough_is_taken() {
        let mut free = FreeRanges::of(0..10);
        let taken: Vec<_> = [2, 3, 1].map(|len| free.take(len)).into_iter().collect();
        assert_eq!(taken, [Some(0..2), Some(2..5), Some(5..6)]);
        assert_eq!(free.take(5), None);
        free.give(0..2);
        assert_eq!(free.take(3), Some(6..9));
        assert_eq!(free.take_whole(1), Some(0..2));
        free.give(2..5);
        free.give(5..6);
        assert_eq!(free.take_whole(4), Some(2..6));
        assert!(free.iter().eq(std::iter::once(9..10)));
        assert_eq!(FreeRanges::of(3..3), FreeRanges::new());
    }

    proptest! {
        #[test]
        fn ranges_are_those_of_a_set(steps in proptest::collection::vec((1..6usize, any::<bool>(), any::<usize>()), 0..60)) {
            const ALL: usize = 40;
            let (mut free, mut is_free) = (FreeRanges::of(0..ALL), [true; ALL]);
            let mut live: Vec<Range<usize>> = Vec::new();
            for (len, gives, which) in steps {
                if gives && !live.is_empty() {
                    let range = live.swap_remove(which % live.len());
                    is_free[range.clone()].fill(true);
                    free.give(range);
                } else {
                    let place = (0..=ALL - len).find(|&start| is_free[start..start + len].iter().all(|&free| free));
                    let taken = free.take(len);
                    prop_assert_eq!(taken.clone(), place.map(|start| start..start + len));
                    if let Some(range) = taken {
                        is_free[range.clone()].fill(false);
                        live.push(range);
                    }
                }
                let expected: Vec<usize> = (0..ALL).filter(|&number| is_free[number]).collect();
                prop_assert_eq!(free.iter().flatten().collect::<Vec<_>>(), expected);
                prop_assert!(free.iter().zip(free.iter().skip(1)).all(|(a, b)| a.end < b.start), "{:?}", free);
                prop_assert_eq!(free.total(), is_free.iter().filter(|&&free| free).count());
            }
        }
    }
}
