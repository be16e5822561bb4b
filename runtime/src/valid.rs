//! Valid ranges: the bytes of a buffer, or subresources of an image, that may hold defined data, sorted and disjoint.
//!
//! They answer one question: may a range be written without a wait? It may if it was never written, since every command
//! that can write adds to the ranges when it is recorded or bound. The same type holds the bytes that the commands of a
//! batch have accessed (`barrier.rs`).
//!
//! The valid ranges are an over-approximation: bytes that count as valid without holding data cost a wait at worst. So
//! a resource that is written in many small ranges keeps at most [`MAX_VALID`] ranges: beyond that the two with the
//! smallest gap between them are merged.

use std::ops::Range;

use smallvec::SmallVec;

/// The largest number of valid ranges that a resource keeps.
pub(crate) const MAX_VALID: usize = 1024;

/// The ranges of a resource that may hold defined data.
pub(crate) type Valid = Ranges<MAX_VALID>;

/// A set of numbers as ranges: sorted, disjoint, not adjacent, none empty. At most `MAX` ranges: beyond that the set
/// also contains some numbers between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges<const MAX: usize = { usize::MAX }> {
    ranges: SmallVec<[Range<u64>; 2]>,
}

impl<const MAX: usize> Ranges<MAX> {
    /// No numbers.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a range and merges it with the ranges that it overlaps or touches.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|r| r.end < range.start);
        let last = first + self.ranges[first..].partition_point(|r| r.start <= range.end);
        if first == last {
            self.ranges.insert(first, range);
            self.close_gaps();
            return;
        }
        let merged = range.start.min(self.ranges[first].start)..range.end.max(self.ranges[last - 1].end);
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
    }

    /// Removes a range.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() || !self.intersects(&range) {
            return;
        }
        let old = std::mem::take(&mut self.ranges);
        for r in old {
            let parts = [r.start..r.end.min(range.start), r.start.max(range.end)..r.end];
            self.ranges.extend(parts.into_iter().filter(|part| !part.is_empty()));
        }
        self.close_gaps();
    }

    /// If there is one range too many, merges the two with the smallest gap between them.
    fn close_gaps(&mut self) {
        if self.ranges.len() <= MAX {
            return;
        }
        let gap = |at: &usize| self.ranges[*at].start - self.ranges[at - 1].end;
        if let Some(at) = (1..self.ranges.len()).min_by_key(gap) {
            self.ranges[at - 1].end = self.ranges[at].end;
            self.ranges.remove(at);
        }
    }

    /// Whether any number of the range is in the set.
    pub(crate) fn intersects(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|r| r.end <= range.start);
        !range.is_empty() && self.ranges.get(at).is_some_and(|r| r.start < range.end)
    }

    /// Whether all numbers of the range are in the set.
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|r| r.end < range.end);
        range.is_empty() || self.ranges.get(at).is_some_and(|r| r.start <= range.start)
    }

    /// The numbers of the range that are not in the set.
    pub(crate) fn gaps(&self, range: &Range<u64>) -> SmallVec<[Range<u64>; 1]> {
        let mut gaps = SmallVec::new();
        let mut at = range.start;
        for r in &self.ranges[self.ranges.partition_point(|r| r.end <= range.start)..] {
            if at >= range.end || r.start >= range.end {
                break;
            }
            if at < r.start {
                gaps.push(at..r.start);
            }
            at = r.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Whether all numbers of the set are in the range.
    pub(crate) fn lies_in(&self, range: &Range<u64>) -> bool {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => range.start <= first.start && last.end <= range.end,
            _ => true,
        }
    }

    /// The ranges, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> + Clone {
        self.ranges.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn range() -> impl Strategy<Value = Range<u64>> {
        (0..40u64, 0..12u64).prop_map(|(start, len)| start..start + len)
    }

    proptest! {
        /// Compares with a set of single numbers.
        #[test]
        fn ranges_are_a_set(steps in proptest::collection::vec((any::<bool>(), range()), 0..40), asked in range()) {
            let (mut ranges, mut numbers) = (Ranges::<{ usize::MAX }>::new(), BTreeSet::new());
            for (add, range) in steps {
                if add {
                    ranges.add(range.clone());
                    numbers.extend(range);
                } else {
                    ranges.remove(range.clone());
                    numbers.retain(|number| !range.contains(number));
                }
                let all: Vec<_> = ranges.iter().collect();
                prop_assert!(all.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?} touch", all);
                prop_assert!(all.iter().all(|range| !range.is_empty()));
                prop_assert_eq!(all.into_iter().flatten().collect::<Vec<_>>(), numbers.iter().copied().collect::<Vec<_>>());
            }
            prop_assert_eq!(ranges.is_empty(), numbers.is_empty());
            prop_assert_eq!(ranges.intersects(&asked), asked.clone().any(|number| numbers.contains(&number)));
            prop_assert_eq!(ranges.lies_in(&asked), numbers.iter().all(|number| asked.contains(number)));
            prop_assert_eq!(ranges.contains(&asked), asked.clone().all(|number| numbers.contains(&number)));
            let gaps = ranges.gaps(&asked);
            prop_assert!(gaps.iter().all(|gap| !gap.is_empty()));
            let missing: Vec<_> = asked.filter(|number| !numbers.contains(number)).collect();
            prop_assert_eq!(gaps.into_iter().flatten().collect::<Vec<_>>(), missing);
        }

        /// A limited set contains all numbers of an unlimited one, and none outside its first and last.
        #[test]
        fn a_bound_adds_what_is_between(steps in proptest::collection::vec((any::<bool>(), range()), 0..60)) {
            let (mut few, mut all) = (Ranges::<3>::new(), Ranges::<{ usize::MAX }>::new());
            for (add, range) in steps {
                if add {
                    few.add(range.clone());
                    all.add(range);
                } else {
                    few.remove(range.clone());
                    all.remove(range.clone());
                    prop_assert!(!few.intersects(&range) || few.iter().count() == 3, "{:?} without {:?}", few, range);
                }
                prop_assert!(few.iter().count() <= 3);
                prop_assert!(all.iter().all(|range| range.clone().all(|number| few.intersects(&(number..number + 1)))));
                prop_assert_eq!(few.is_empty() && !all.is_empty(), false);
            }
        }
    }

    #[test]
    fn the_smallest_gap_is_closed() {
        let mut ranges = Ranges::<2>::new();
        [0..10, 20..30, 32..40].into_iter().for_each(|range| ranges.add(range));
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [0..10, 20..40]);
    }
}
