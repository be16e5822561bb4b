//! Memory of inline uniform blocks: each pool has one buffer for all of its blocks, and sets allocate ranges of it.

use std::sync::Arc;

use ash::vk;
use parking_lot::Mutex;
use spelter_driver as driver;

use crate::device::Device;
use crate::error::Error;

/// The alignment of a block in bytes: that of uniform buffers.
const ALIGNMENT: u64 = 64;

/// The memory of a pool's blocks.
pub(super) struct InlineMemory {
    /// `None` until the first block is allocated: most pools have none.
    backing: Option<(driver::Buffer, driver::DeviceMemory)>,
    size: u64,
    /// Free ranges (begin, end), sorted.
    free: Vec<[u64; 2]>,
}

/// One block of a set, which is freed when it drops.
pub(super) struct Block {
    pool: Arc<Mutex<InlineMemory>>,
    memory: driver::DeviceMemory,
    pub(super) binding: u32,
    range: [u64; 2],
    bytes: u32,
}

impl InlineMemory {
    /// Memory for `blocks` blocks of `bytes` bytes in total.
    pub(super) fn new(bytes: u64, blocks: u64) -> Self {
        let size = (bytes + blocks * (ALIGNMENT - 4)).next_multiple_of(ALIGNMENT);
        let free = if size > 0 { vec![[0, size]] } else { Vec::new() };
        Self { backing: None, size, free }
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

    fn take(&mut self, bytes: u64) -> Option<[u64; 2]> {
        let len = bytes.next_multiple_of(ALIGNMENT);
        let place = self.free.iter().position(|[begin, end]| end - begin >= len)?;
        let begin = self.free[place][0];
        self.free[place][0] += len;
        if self.free[place][0] == self.free[place][1] {
            self.free.remove(place);
        }
        Some([begin, begin + len])
    }

    fn give(&mut self, range: [u64; 2]) {
        let place = self.free.partition_point(|free| free[0] < range[0]);
        self.free.insert(place, range);
        // Adjacent ranges are merged.
        self.free.dedup_by(|next, before| {
            let touch = before[1] == next[0];
            if touch {
                before[1] = next[1];
            }
            touch
        });
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
        let range = inline.take(bytes.into()).ok_or_else(|| {
            let what = format!("{bytes} bytes for an inline uniform block");
            driver::Error::OutOfPoolMemory(what)
        })?;
        let backing = inline.backing(device);
        drop(inline);
        // From here on the block frees the range when it drops.
        let (buffer, memory) = backing.inspect_err(|_| pool.lock().give(range))?;
        let block = Self { pool: Arc::clone(pool), memory, binding, range, bytes };
        let info = driver::BufferInfo { buffer: &buffer, offset: range[0], range: bytes.into() };
        set.write(binding, 0, vk::DescriptorType::UNIFORM_BUFFER, &[info])?;
        Ok(block)
    }

    /// The size in bytes.
    pub(super) fn size(&self) -> u64 {
        self.bytes.into()
    }

    pub(super) fn write(&self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.memory.write(self.range[0] + u64::from(offset), bytes)?)
    }

    pub(super) fn read(&self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        Ok(self.memory.read(self.range[0] + u64::from(offset), bytes)?)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.pool.lock().give(self.range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_disjoint_and_merge_again() {
        let mut memory = InlineMemory::new(4096, 16);
        let whole = memory.size;
        let ranges: Vec<_> = std::iter::from_fn(|| memory.take(100)).collect();
        assert!(ranges.len() >= 32 && ranges.windows(2).all(|pair| pair[0][1] <= pair[1][0]), "{ranges:?}");
        for &range in ranges.iter().step_by(2).chain(ranges.iter().skip(1).step_by(2)) {
            memory.give(range);
        }
        assert_eq!(memory.free, [[0, whole]]);
    }
}
