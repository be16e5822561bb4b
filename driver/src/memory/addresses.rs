//! Addressable memory: the bytes of all live buffers that have a device address.
//!
//! Buffers may overlap, as their memory may. Kernels get disjoint ranges: for each address the number of buffers that
//! begin there minus the number that end there is stored, and the ranges are the addresses with a positive prefix sum.
//! The memory is the heap, or imported host memory, which may be anywhere and may be imported more than once.

use std::collections::BTreeMap;
use std::sync::Arc;

use spelter_locks::Mutex;
use spelter_shaders::abi::address_ranges;
use spelter_shaders::guest::GuestSlice;

/// The addressable bytes of a device.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The whole heap.
    heap: GuestSlice,
    /// A leaf lock.
    edges: Mutex<Edges>,
}

#[derive(Debug, Default)]
struct Edges {
    /// Address → number of buffers that begin there minus number that end there.
    at: BTreeMap<u64, i64>,
    /// Imported memory that has buffers, by start and length, with the number of buffers.
    imported: BTreeMap<(u64, u64), (GuestSlice, u64)>,
    /// The resulting ranges, cached until a buffer is added or removed.
    address_ranges: Option<Arc<[GuestSlice]>>,
}

fn start(of: GuestSlice) -> u64 {
    of.address() as u64
}

fn end(of: GuestSlice) -> u64 {
    start(of) + of.len()
}

impl Edges {
    fn add(&mut self, at: u64, count: i64) {
        let sum = self.at.entry(at).or_insert(0);
        *sum += count;
        if *sum == 0 {
            self.at.remove(&at);
        }
        self.address_ranges = None;
    }

    /// Adds or removes one buffer in imported memory.
    fn import(&mut self, memory: GuestSlice, more: bool) {
        let key = (start(memory), memory.len());
        let (_, count) = self.imported.entry(key).or_insert((memory, 0));
        *count = if more { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.imported.remove(&key);
        }
    }

    /// The ranges: disjoint, not adjacent, in ascending order.
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

    /// The ranges as slices of the memory that contains them. A range that continues in other memory is cut there; if
    /// memory is imported twice, the import that ends last counts.
    fn slices(&self, heap: GuestSlice) -> Vec<GuestSlice> {
        let mut memories: Vec<_> = self.imported.values().map(|(memory, _)| *memory).chain([heap]).collect();
        memories.sort_by_key(|memory| start(*memory));
        let (mut memories, mut farthest) = (memories.into_iter().peekable(), GuestSlice::EMPTY);
        let mut slices = Vec::new();
        for (mut at, stop) in self.ranges() {
            while at < stop {
                while let Some(next) = memories.next_if(|memory| start(*memory) <= at) {
                    farthest = if end(next) > end(farthest) { next } else { farthest };
                }
                let slice = farthest.slice(at.wrapping_sub(start(farthest)), stop - at);
                // Every buffer is inside some memory; outside of all it would have no bytes.
                if slice.is_empty() {
                    break;
                }
                slices.push(slice);
                at += slice.len();
            }
        }
        slices
    }
}

impl Addresses {
    /// No addressable bytes.
    pub(super) fn new(heap: GuestSlice) -> Self {
        Self { heap, edges: Mutex::default() }
    }

    /// Makes the bytes of a buffer in `memory` addressable.
    pub(crate) fn add(&self, buffer: GuestSlice, memory: GuestSlice) {
        self.change(buffer, memory, true);
    }

    /// Removes a buffer that was added.
    pub(crate) fn remove(&self, buffer: GuestSlice, memory: GuestSlice) {
        self.change(buffer, memory, false);
    }

    fn change(&self, buffer: GuestSlice, memory: GuestSlice, more: bool) {
        let count = if more { 1 } else { -1 };
        let mut edges = self.edges.lock();
        if !(start(self.heap)..end(self.heap)).contains(&start(memory)) {
            edges.import(memory, more);
        }
        edges.add(start(buffer), count);
        edges.add(end(buffer), -count);
    }

    /// The current address ranges, in which kernels look addresses up (`spelter_shaders::abi::address_range_at`).
    pub(crate) fn address_ranges(&self) -> Arc<[GuestSlice]> {
        let mut edges = self.edges.lock();
        if let Some(ranges) = &edges.address_ranges {
            return Arc::clone(ranges);
        }
        let all: Arc<[GuestSlice]> = address_ranges(edges.slices(self.heap)).collect();
        edges.address_ranges = Some(Arc::clone(&all));
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a count per byte, for buffers in the heap, in imported memory, and in a part of it that was
        /// imported again.
        #[test]
        fn ranges_are_the_bytes_of_live_buffers(
            steps in proptest::collection::vec((0usize..4, 0u64..60, 1u64..20, any::<bool>()), 1..40),
        ) {
            let (all, heap) = (GuestSlice::leak(240), GuestSlice::leak(80));
            let memories = [heap, all.slice(0, 80), all.slice(40, 80), all.slice(120, 120)];
            let addresses = Addresses::new(heap);
            let mut live: Vec<(usize, GuestSlice)> = Vec::new();
            for (memory, at, len, add) in steps {
                if add || live.is_empty() {
                    let buffer = memories[memory].slice(at, len);
                    live.push((memory, buffer));
                    addresses.add(buffer, memories[memory]);
                } else {
                    let (memory, buffer) = live.swap_remove(at as usize % live.len());
                    addresses.remove(buffer, memories[memory]);
                }
                let inside = |of: GuestSlice, byte: u64| (start(of)..end(of)).contains(&byte);
                let ranges = addresses.address_ranges();
                for byte in (start(heap)..end(heap)).chain(start(all)..end(all)) {
                    let wanted = live.iter().any(|(_, buffer)| inside(*buffer, byte));
                    prop_assert_eq!(ranges.iter().any(|range| inside(*range, byte)), wanted, "{:#x}", byte);
                }
                prop_assert!(ranges.windows(2).all(|pair| end(pair[0]) <= start(pair[1])));
            }
            live.into_iter().for_each(|(memory, buffer)| addresses.remove(buffer, memories[memory]));
            let edges = addresses.edges.lock();
            prop_assert!(edges.at.is_empty() && edges.imported.is_empty());
        }
    }
}
