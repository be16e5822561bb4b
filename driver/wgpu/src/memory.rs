//! Memory for buffers: small ones share blocks, and freed memory is kept for the next buffer of its size, since wgpu
//! makes a staging buffer for each `Queue::write_buffer`.
//!
//! Memory that is used again keeps its old contents: wgpu zeroes what a program reads before it writes.

use std::collections::VecDeque;

use spelter_driver::{Device, DeviceMemory, Error};
use spelter_locks::Mutex;

/// Bytes of the smallest place.
const MIN_PLACE: u64 = 256;
/// Places up to this size share blocks.
const MAX_PLACE: u64 = 64 << 10;
/// Bytes of a block.
const BLOCK: u64 = 1 << 20;
/// Sizes of memory objects are multiples of this: the granularity of the device's heap.
const GRANULE: u64 = 64 << 10;
/// Maximum number of bytes that are kept for reuse, beside blocks.
const MAX_KEPT: u64 = 64 << 20;

/// The classes of places: 256 B, 512 B, …, 64 KiB.
const CLASSES: usize = (MAX_PLACE / MIN_PLACE).ilog2() as usize + 1;

/// A range of a memory object.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) memory: DeviceMemory,
    pub(crate) offset: u64,
}

/// Memory of one device.
#[derive(Debug, Default)]
pub(crate) struct MemoryPool {
    /// A leaf lock: nothing else is locked while it is held, except the heap by an allocation.
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    places: [Vec<Place>; CLASSES],
    /// Whole memory objects, the latest last.
    kept: VecDeque<DeviceMemory>,
    kept_bytes: u64,
}

impl MemoryPool {
    /// At least `bytes` bytes with any contents.
    pub(crate) fn take(&self, device: &Device, bytes: u64) -> Result<Place, Error> {
        if bytes <= MAX_PLACE {
            return self.take_place(device, class(bytes));
        }
        let size = bytes.checked_next_multiple_of(GRANULE).unwrap_or(bytes);
        let kept = self.free.lock().take_kept(size);
        let memory = match kept {
            Some(memory) => memory,
            None => allocate(device, size)?,
        };
        Ok(Place { memory, offset: 0 })
    }

    /// Takes a place back. No command that uses it may be pending, and none may be submitted.
    pub(crate) fn give(&self, place: Place, bytes: u64) {
        let mut free = self.free.lock();
        if bytes <= MAX_PLACE {
            free.places[class(bytes)].push(place);
            return;
        }
        let dropped = free.keep(place.memory);
        drop(free);
        drop(dropped);
    }

    fn take_place(&self, device: &Device, class: usize) -> Result<Place, Error> {
        let mut free = self.free.lock();
        if let Some(place) = free.places[class].pop() {
            return Ok(place);
        }
        // Small classes take less than a block at once, so that a device with few buffers stays small.
        let size = MIN_PLACE << class;
        let block = BLOCK.min(size * 64).max(GRANULE);
        let memory = allocate(device, block)?;
        let places = (0..block / size).rev().map(|at| Place { memory: memory.clone(), offset: at * size });
        free.places[class].extend(places);
        free.places[class].pop().ok_or(Error::OutOfMemory)
    }
}

impl Free {
    fn take_kept(&mut self, size: u64) -> Option<DeviceMemory> {
        let at = self.kept.iter().rposition(|memory| memory.size() == size)?;
        self.kept_bytes -= size;
        self.kept.remove(at)
    }

    /// Keeps a memory object. Returns those that no longer fit, to be dropped without the lock.
    fn keep(&mut self, memory: DeviceMemory) -> Vec<DeviceMemory> {
        self.kept_bytes += memory.size();
        self.kept.push_back(memory);
        let mut dropped = Vec::new();
        while self.kept_bytes > MAX_KEPT {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.kept_bytes -= oldest.size();
            dropped.push(oldest);
        }
        dropped
    }
}

/// A memory object. More than the device has is no broken rule here, as it is in Vulkan.
pub(crate) fn allocate(device: &Device, bytes: u64) -> Result<DeviceMemory, Error> {
    let all: u64 = device.memory_heaps().iter().map(|heap| heap.size).sum();
    if bytes > all { Err(Error::OutOfMemory) } else { device.allocate_memory(bytes, 0) }
}

/// The class of places that hold `bytes`, which is at most [`MAX_PLACE`].
fn class(bytes: u64) -> usize {
    (bytes.max(MIN_PLACE).next_power_of_two() / MIN_PLACE).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use spelter_driver::DeviceOptions;

    use super::*;

    fn device() -> Device {
        Device::new(DeviceOptions { workers: 1, heap_size: 256 << 20, ..DeviceOptions::default() }).unwrap()
    }

    #[test]
    fn classes_hold_their_sizes() {
        assert_eq!((class(1), class(256), class(257), class(MAX_PLACE)), (0, 0, 1, CLASSES - 1));
    }

    #[test]
    fn places_are_disjoint_and_used_again() {
        let (device, pool) = (device(), MemoryPool::default());
        let places: Vec<_> = (0..1000).map(|_| pool.take(&device, 300).unwrap()).collect();
        let mut ranges: Vec<_> =
            places.iter().map(|place| place.memory.host_address().addr() as u64 + place.offset).collect();
        ranges.sort_unstable();
        assert!(ranges.windows(2).all(|pair| pair[1] - pair[0] >= 512));
        places.into_iter().for_each(|place| pool.give(place, 300));
        let again = pool.take(&device, 512).unwrap();
        assert!(ranges.contains(&(again.memory.host_address().addr() as u64 + again.offset)));
    }

    #[test]
    fn large_memory_is_kept_up_to_a_limit() {
        let (device, pool) = (device(), MemoryPool::default());
        let first = pool.take(&device, 1 << 20).unwrap();
        let address = first.memory.host_address();
        pool.give(first, 1 << 20);
        assert_eq!(pool.take(&device, (1 << 20) - 5).unwrap().memory.host_address(), address);
        for _ in 0..100 {
            let place = device.allocate_memory(10 << 20, 0).unwrap();
            pool.give(Place { memory: place, offset: 0 }, 10 << 20);
        }
        assert!(pool.free.lock().kept_bytes <= MAX_KEPT && pool.free.lock().kept.len() == 6);
        assert!(pool.take(&device, u64::MAX).is_err());
    }
}
