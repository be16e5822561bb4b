//! What kernels may address: the bytes of all live buffers that have an address.
//!
//! Buffers may overlap, as their memory may. Kernels get disjoint ranges, so the edges of all buffers are kept, each with how
//! many buffers begin there less how many end, and the ranges are what lies where more have begun than ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use spelter_shaders::abi::pieces;
use spelter_shaders::guest::GuestSlice;

/// The addressable bytes of a heap.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// All of the heap.
    heap: GuestSlice,
    /// A leaf lock.
    edges: Mutex<Edges>,
}

#[derive(Debug, Default)]
struct Edges {
    /// Byte offset in the heap → beginnings less ends.
    at: BTreeMap<u64, i64>,
    /// What they come to, until one of them changes.
    pieces: Option<Arc<[GuestSlice]>>,
}

impl Edges {
    fn add(&mut self, at: u64, count: i64) {
        let sum = self.at.entry(at).or_insert(0);
        *sum += count;
        if *sum == 0 {
            self.at.remove(&at);
        }
        self.pieces = None;
    }

    /// Disjoint ranges that do not touch, in ascending order.
    fn ranges(&self) -> Vec<(u64, u64)> {
        let (mut ranges, mut open, mut start) = (Vec::new(), 0, 0);
        for (&at, &count) in &self.at {
            if open == 0 {
                start = at;
            }
            open += count;
            if open == 0 {
                ranges.push((start, at));
            }
        }
        ranges
    }
}

impl Addresses {
    /// Nothing of a heap.
    pub(super) fn new(heap: GuestSlice) -> Self {
        Self { heap, edges: Mutex::default() }
    }

    /// A buffer's bytes may be addressed from now on.
    pub(crate) fn add(&self, buffer: GuestSlice) {
        self.change(buffer, 1);
    }

    /// A buffer is gone whose bytes were added.
    pub(crate) fn remove(&self, buffer: GuestSlice) {
        self.change(buffer, -1);
    }

    fn change(&self, buffer: GuestSlice, count: i64) {
        let start = (buffer.address() - self.heap.address()) as u64;
        let mut edges = self.edges.lock();
        edges.add(start, count);
        edges.add(start + buffer.len(), -count);
    }

    /// The pieces that kernels look addresses up in (`spelter_shaders::abi::piece_at`), as of now.
    pub(crate) fn pieces(&self) -> Arc<[GuestSlice]> {
        let mut edges = self.edges.lock();
        if let Some(pieces) = &edges.pieces {
            return Arc::clone(pieces);
        }
        let ranges = edges.ranges().into_iter().map(|(start, end)| self.heap.slice(start, end - start));
        let all: Arc<[GuestSlice]> = pieces(ranges).collect();
        edges.pieces = Some(Arc::clone(&all));
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a count for each byte.
        #[test]
        fn ranges_are_the_bytes_of_live_buffers(steps in proptest::collection::vec((0u64..60, 1u64..20, any::<bool>()), 1..40)) {
            let heap = GuestSlice::leak(80);
            let addresses = Addresses::new(heap);
            let mut live: Vec<(u64, u64)> = Vec::new();
            for (start, len, add) in steps {
                if add || live.is_empty() {
                    live.push((start, len));
                    addresses.add(heap.slice(start, len));
                } else {
                    let (start, len) = live.swap_remove(start as usize % live.len());
                    addresses.remove(heap.slice(start, len));
                }
                let covered = |byte: u64| live.iter().any(|&(start, len)| (start..start + len).contains(&byte));
                let found: Vec<bool> = {
                    let pieces = addresses.pieces();
                    let inside = |byte: u64| {
                        let at = (heap.address() as u64) + byte;
                        pieces.iter().any(|piece| (piece.address() as u64..piece.address() as u64 + piece.len()).contains(&at))
                    };
                    (0..80).map(inside).collect()
                };
                prop_assert_eq!(found, (0..80).map(covered).collect::<Vec<_>>());
                let pieces = addresses.pieces();
                let apart = |pair: &[GuestSlice]| (pair[0].address() as u64) + pair[0].len() < pair[1].address() as u64;
                prop_assert!(pieces.windows(2).all(apart));
            }
        }
    }
}
