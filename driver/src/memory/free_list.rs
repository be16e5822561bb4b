//! Free list of granules: first fit, adjacent ranges merged.

use std::collections::BTreeMap;

/// Free ranges, by start: sorted, disjoint, and never adjacent.
#[derive(Debug)]
pub(super) struct FreeList {
    free: BTreeMap<usize, usize>,
}

impl FreeList {
    /// A list in which all of `0 .. len` is free.
    pub(super) fn new(len: usize) -> Self {
        Self { free: BTreeMap::from_iter((len > 0).then_some((0, len))) }
    }

    /// Takes `len` from the first range that is large enough.
    pub(super) fn take(&mut self, len: usize) -> Option<usize> {
        let (&start, &free) = self.free.iter().find(|&(_, &free)| free >= len)?;
        self.free.remove(&start);
        if free > len {
            self.free.insert(start + len, free - len);
        }
        Some(start)
    }

    /// Returns what `take` handed out.
    pub(super) fn give(&mut self, start: usize, len: usize) {
        let mut merged = (start, len);
        if let Some((&before, &before_len)) = self.free.range(..start).next_back() {
            debug_assert!(before + before_len <= start, "given back twice");
            if before + before_len == start {
                self.free.remove(&before);
                merged = (before, before_len + len);
            }
        }
        if let Some(after_len) = self.free.remove(&(start + len)) {
            merged.1 += after_len;
        }
        self.free.insert(merged.0, merged.1);
    }

    /// The free ranges, `(start, length)`.
    #[cfg(test)]
    pub(super) fn ranges(&self) -> Vec<(usize, usize)> {
        self.free.iter().map(|(&start, &len)| (start, len)).collect()
    }
}
