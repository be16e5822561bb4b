//! Memory of inline uniform blocks: each pool has one buffer for all of its blocks, and sets allocate ranges of it.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use spelter_driver as driver;
use spelter_locks::Mutex;

use crate::device::Device;
use crate::error::Error;

/// The alignment of a block in bytes: a cache line, which is a multiple of the alignment of uniform buffers (16).
const ALIGNMENT: u64 = 64;

/// The memory of a pool's blocks.
pub(super) struct InlineMemory {
    /// `None` until the first block is allocated: most pools have none.
    backing: Option<(driver::Buffer, driver::DeviceMemory)>,
    size: u64,
    /// In multiples of the alignment.
    free_ranges: driver::FreeRanges,
}

/// One block of a set, which is freed when it drops.
pub(super) struct Block {
    pool: Arc<Mutex<InlineMemory>>,
    memory: driver::DeviceMemory,
    pub(super) binding: u32,
    /// In multiples of the alignment.
    range: Range<usize>,
    bytes: u32,
}

impl InlineMemory {
    /// Memory for `blocks` blocks of `bytes` bytes in total. Sizes are multiples of 4, so a block has at most
    /// `ALIGNMENT - 4` bytes of padding.
    pub(super) fn new(bytes: u64, blocks: u64) -> Self {
        let size = (bytes + blocks * (ALIGNMENT - 4)).next_multiple_of(ALIGNMENT);
        let units = usize::try_from(size / ALIGNMENT).unwrap_or(usize::MAX);
        Self { backing: None, size, free_ranges: driver::FreeRanges::of(0..units) }
    }

    fn backing(&mut self, device: &Device) -> Result<(driver::Buffer, driver::DeviceMemory), Error> {
        if let Some(backing) = &self.backing {
            return Ok(backing.clone());
        }
        let buffer = device.driver.create_buffer(self.size.max(1), vk::BufferUsageFlags::UNIFORM_BUFFER)?;
        let memory = device.driver.allocate_memory(buffer.requirements().size, 0)?;
        buffer.bind_memory(&memory, 0)?;
        Ok(self.backing.insert((buffer, memory)).clone())
    }

    fn allocate(&mut self, bytes: u64) -> Option<Range<usize>> {
        // A range is never empty.
        self.free_ranges.take(usize::try_from(bytes.div_ceil(ALIGNMENT)).ok()?.max(1))
    }

    fn free(&mut self, range: Range<usize>) {
        self.free_ranges.give(range);
    }
}

impl Block {
    /// Allocates a block of `bytes` bytes for a binding of a set.
    pub(super) fn new(
        device: &Device,
        pool: &Arc<Mutex<InlineMemory>>,
        set: &driver::DescriptorSet,
        (binding, bytes): (u32, u32),
    ) -> Result<Self, Error> {
        let mut inline = pool.lock();
        let range = inline.allocate(bytes.into()).ok_or_else(|| {
            let what = format!("{bytes} bytes for an inline uniform block");
            driver::Error::OutOfPoolMemory(what)
        })?;
        let backing = inline.backing(device);
        drop(inline);
        let (buffer, memory) = backing.inspect_err(|_| pool.lock().free(range.clone()))?;
        // From here on the block frees the range when it drops.
        let block = Self { pool: Arc::clone(pool), memory, binding, range, bytes };
        let info = driver::BufferInfo { buffer: &buffer, offset: block.offset(), range: bytes.into() };
        set.write(binding, 0, vk::DescriptorType::UNIFORM_BUFFER, &[info])?;
        Ok(block)
    }

    /// The size in bytes.
    pub(super) fn size(&self) -> u64 {
        self.bytes.into()
    }

    fn offset(&self) -> u64 {
        self.range.start as u64 * ALIGNMENT
    }

    pub(super) fn write(&self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.memory.write(self.offset() + u64::from(offset), bytes)?)
    }

    pub(super) fn read(&self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        Ok(self.memory.read(self.offset() + u64::from(offset), bytes)?)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.pool.lock().free(self.range.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_has_room_for_its_blocks_whatever_their_sizes() {
        for (blocks, each) in [(16, 4), (16, 64), (3, 68), (0, 0)] {
            let mut memory = InlineMemory::new(blocks * each, blocks);
            let whole = memory.free_ranges.clone();
            let ranges: Vec<_> = (0..blocks).map(|_| memory.allocate(each).unwrap()).collect();
            assert!(ranges.iter().all(|range| range.end as u64 * ALIGNMENT <= memory.size), "{ranges:?}");
            ranges.into_iter().for_each(|range| memory.free(range));
            assert_eq!(memory.free_ranges, whole);
        }
    }
}
