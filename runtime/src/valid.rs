//! Sorted, disjoint ranges: which bytes of a buffer, or subresources of an image, may hold defined data.
//!
//! One question is asked of them: may this be written without waiting for anybody? It may where nothing was ever written,
//! since every command that can write adds to the ranges when it is recorded or bound. The same ranges tell which bytes
//! the commands of a batch have touched (`barrier.rs`).

use std::ops::Range;

use smallvec::SmallVec;

/// A set of numbers as ranges: sorted, disjoint, not touching, none empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    ranges: SmallVec<[Range<u64>; 2]>,
}

impl Ranges {
    /// No numbers.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds a range; those that it meets become one with it.
    pub(crate) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.ranges.partition_point(|r| r.end < range.start);
        let last = first + self.ranges[first..].partition_point(|r| r.start <= range.end);
        if first == last {
            self.ranges.insert(first, range);
            return;
        }
        let merged = range.start.min(self.ranges[first].start)..range.end.max(self.ranges[last - 1].end);
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
    }

    /// Takes a range out.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() || !self.intersects(&range) {
            return;
        }
        let old = std::mem::take(&mut self.ranges);
        for r in old {
            let parts = [r.start..r.end.min(range.start), r.start.max(range.end)..r.end];
            self.ranges.extend(parts.into_iter().filter(|part| !part.is_empty()));
        }
    }

    /// Whether any number of the range is in the set.
    pub(crate) fn intersects(&self, range: &Range<u64>) -> bool {
        let at = self.ranges.partition_point(|r| r.end <= range.start);
        !range.is_empty() && self.ranges.get(at).is_some_and(|r| r.start < range.end)
    }

    /// Whether all numbers of the set are in the range.
    pub(crate) fn lies_in(&self, range: &Range<u64>) -> bool {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => range.start <= first.start && last.end <= range.end,
            _ => true,
        }
    }

    /// The ranges, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
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
        /// Against a set of single numbers.
        #[test]
        fn ranges_are_a_set(steps in proptest::collection::vec((any::<bool>(), range()), 0..40), asked in range()) {
            let (mut ranges, mut numbers) = (Ranges::new(), BTreeSet::new());
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
        }
    }
}
