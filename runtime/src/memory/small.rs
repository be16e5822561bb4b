//! Allocator of small buffers, which share blocks of device memory. The driver allocates memory in multiples of 64 KiB;
//! a buffer of 100 bytes takes 128 bytes of a block instead.
//!
//! Sizes are rounded up to powers of two, and each size has separate blocks, so a block never fragments. (`Slab` is the
//! list of these blocks by number: it holds values, not byte ranges.)

use std::sync::Arc;

use slab::Slab;
use spelter_driver::{Device, DeviceMemory};
use spelter_locks::Mutex;

use crate::error::Error;

/// Bytes of a block.
const BLOCK: u64 = 256 << 10;
/// The smallest place: a cache line, so that two buffers never share one.
const MIN_BYTES: u64 = 64;
/// The largest place.
const MAX_BYTES: u64 = 16 << 10;
const CLASSES: usize = (MAX_BYTES / MIN_BYTES).trailing_zeros() as usize + 1;

/// Blocks, by the size of their places.
#[derive(Debug)]
pub(super) struct SmallBlocks {
    device: Device,
    /// Leaf locks.
    classes: [Mutex<Class>; CLASSES],
}

#[derive(Debug, Default)]
struct Class {
    blocks: Slab<MemoryBlock>,
    /// Blocks that are not full.
    with_room: Vec<usize>,
}

#[derive(Debug)]
struct MemoryBlock {
    memory: DeviceMemory,
    /// Freed places.
    free: Vec<u32>,
    /// Places from this index on were never used: they are zero.
    fresh: u32,
}

/// A place in a block; freed on drop.
#[derive(Debug)]
pub(super) struct SmallAllocation {
    blocks: Arc<SmallBlocks>,
    memory: DeviceMemory,
    class: usize,
    block: usize,
    place: u32,
    fresh: bool,
}

impl SmallBlocks {
    pub(super) fn new(device: &Device) -> Self {
        Self { device: device.clone(), classes: Default::default() }
    }

    /// A place for `size` bytes, aligned to 64; `None` if `size` is too large to share a block.
    pub(super) fn take(self: &Arc<Self>, size: u64) -> Result<Option<SmallAllocation>, Error> {
        if size > MAX_BYTES {
            return Ok(None);
        }
        let class = class_of(size);
        let mut blocks = self.classes[class].lock();
        if blocks.with_room.is_empty() {
            let memory = self.device.allocate_memory(BLOCK, 0)?;
            blocks.add(memory);
        }
        Ok(blocks.take(class).map(|Taken { block, place, memory, fresh }| SmallAllocation {
            blocks: Arc::clone(self),
            memory,
            class,
            block,
            place,
            fresh,
        }))
    }

    #[cfg(test)]
    fn blocks(&self) -> usize {
        self.classes.iter().map(|class| class.lock().blocks.len()).sum()
    }
}

fn class_of(size: u64) -> usize {
    (size.max(MIN_BYTES).next_power_of_two() / MIN_BYTES).trailing_zeros() as usize
}

fn places(class: usize) -> u32 {
    (BLOCK / (MIN_BYTES << class)) as u32
}

/// A place that was taken from a block.
struct Taken {
    block: usize,
    place: u32,
    memory: DeviceMemory,
    /// Whether nothing had the place before.
    fresh: bool,
}

impl Class {
    fn add(&mut self, memory: DeviceMemory) {
        let block = self.blocks.insert(MemoryBlock { memory, free: Vec::new(), fresh: 0 });
        self.with_room.push(block);
    }

    fn take(&mut self, class: usize) -> Option<Taken> {
        let number = *self.with_room.last()?;
        let block = self.blocks.get_mut(number)?;
        let (place, fresh) = match block.free.pop() {
            Some(place) => (place, false),
            None => {
                block.fresh += 1;
                (block.fresh - 1, true)
            }
        };
        let memory = block.memory.clone();
        if block.free.is_empty() && block.fresh == places(class) {
            self.with_room.pop();
        }
        Some(Taken { block: number, place, memory, fresh })
    }

    /// Frees a place. Returns a block that is entirely free, to be dropped, unless it is the only one with room.
    fn give(&mut self, class: usize, number: usize, place: u32) -> Option<MemoryBlock> {
        let block = self.blocks.get_mut(number)?;
        if block.free.is_empty() && block.fresh == places(class) {
            self.with_room.push(number);
        }
        block.free.push(place);
        let empty = block.free.len() == block.fresh as usize;
        if !empty || self.with_room.len() == 1 {
            return None;
        }
        self.with_room.retain(|other| *other != number);
        self.blocks.try_remove(number)
    }
}

impl SmallAllocation {
    pub(super) fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    /// Its offset in the memory.
    pub(super) fn offset(&self) -> u64 {
        u64::from(self.place) * (MIN_BYTES << self.class)
    }

    /// Whether it was never used before: all its bytes are 0.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }
}

impl Drop for SmallAllocation {
    fn drop(&mut self) {
        let block = self.blocks.classes[self.class].lock().give(self.class, self.block, self.place);
        drop(block); // after the lock
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spelter_driver::DeviceOptions;

    use super::*;

    fn device() -> Device {
        Device::new(DeviceOptions { workers: 1, heap_size: 16 << 20, ..DeviceOptions::default() }).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn places_are_disjoint_and_blocks_go(steps in proptest::collection::vec((1..20_000u64, any::<bool>(), any::<usize>()), 1..80)) {
            let small = Arc::new(SmallBlocks::new(&device()));
            let mut live: Vec<(u64, SmallAllocation)> = Vec::new();
            for (size, free, which) in steps {
                if free && !live.is_empty() {
                    live.swap_remove(which % live.len());
                    continue;
                }
                let place = small.take(size).unwrap();
                prop_assert_eq!(place.is_some(), size <= MAX_BYTES);
                let Some(place) = place else { continue };
                prop_assert!(place.offset().is_multiple_of(64) && place.offset() + size <= BLOCK);
                if place.is_fresh() {
                    let mut bytes = vec![1; size as usize];
                    place.memory().read(place.offset(), &mut bytes).unwrap();
                    prop_assert!(bytes.iter().all(|byte| *byte == 0));
                }
                let mark = vec![live.len() as u8 | 0x80; size as usize];
                place.memory().write(place.offset(), &mark).unwrap();
                for (other_size, other) in &live {
                    let apart = (other.class, other.block) != (place.class, place.block)
                        || other.offset() + other_size <= place.offset()
                        || place.offset() + size <= other.offset();
                    prop_assert!(apart, "places overlap");
                }
                live.push((size, place));
            }
            live.clear();
            prop_assert!(small.blocks() <= CLASSES);
        }
    }

    #[test]
    fn a_thousand_small_buffers_take_few_blocks() {
        let small = Arc::new(SmallBlocks::new(&device()));
        let live: Vec<_> = (0..1000).map(|_| small.take(100).unwrap().unwrap()).collect();
        assert_eq!(small.blocks(), 1);
        drop(live);
        assert_eq!(small.blocks(), 1);
        let live: Vec<_> = (0..5000).map(|_| small.take(100).unwrap().unwrap()).collect();
        assert_eq!(small.blocks(), 3);
        drop(live);
        assert_eq!(small.blocks(), 1);
    }
}
