//! Copies, fills and updates of buffers.

use std::sync::Arc;

use ash::vk;

use super::CommandBuffer;
use crate::error::{Error, Misuse, require};
use crate::exec::Work;
use crate::host_memory::{self, OutOfHostMemory};
use crate::resource::{Buffer, BufferRules};

const COPY: &str = "vkCmdCopyBuffer";
const FILL: &str = "vkCmdFillBuffer";
const UPDATE: &str = "vkCmdUpdateBuffer";

const COPY_FROM: BufferRules = BufferRules {
    at: "srcBuffer",
    usage: vk::BufferUsageFlags::TRANSFER_SRC,
    usage_vuid: "VUID-vkCmdCopyBuffer-srcBuffer-00118",
    memory_vuid: "VUID-vkCmdCopyBuffer-srcBuffer-00119",
    parent_vuid: "VUID-vkCmdCopyBuffer-commonparent",
};

const COPY_TO: BufferRules = BufferRules {
    at: "dstBuffer",
    usage: vk::BufferUsageFlags::TRANSFER_DST,
    usage_vuid: "VUID-vkCmdCopyBuffer-dstBuffer-00120",
    memory_vuid: "VUID-vkCmdCopyBuffer-dstBuffer-00121",
    parent_vuid: "VUID-vkCmdCopyBuffer-commonparent",
};

const FILL_TO: BufferRules = BufferRules {
    at: FILL,
    usage: vk::BufferUsageFlags::TRANSFER_DST,
    usage_vuid: "VUID-vkCmdFillBuffer-dstBuffer-00029",
    memory_vuid: "VUID-vkCmdFillBuffer-dstBuffer-00031",
    parent_vuid: "VUID-vkCmdFillBuffer-commonparent",
};

const UPDATE_TO: BufferRules = BufferRules {
    at: UPDATE,
    usage: vk::BufferUsageFlags::TRANSFER_DST,
    usage_vuid: "VUID-vkCmdUpdateBuffer-dstBuffer-00034",
    memory_vuid: "VUID-vkCmdUpdateBuffer-dstBuffer-00035",
    parent_vuid: "VUID-vkCmdUpdateBuffer-commonparent",
};

/// What is wrong with such a copy.
pub(super) const OVERLAP: &str = "source and destination regions overlap in memory";

/// Maximum number of bytes of one `vkCmdUpdateBuffer`.
const MAX_UPDATED: usize = 65_536;

impl CommandBuffer {
    /// `vkCmdCopyBuffer`. If source and destination are the same buffer, regions must not overlap.
    pub fn copy_buffer(&self, from: &Buffer, to: &Buffer, regions: &[vk::BufferCopy]) -> Result<(), Error> {
        let mut recorder = self.recorder(COPY, "VUID-vkCmdCopyBuffer-commandBuffer-recording")?;
        let source = from.checked(&recorder.device, &COPY_FROM)?;
        let target = to.checked(&recorder.device, &COPY_TO)?;
        require(!regions.is_empty(), COPY, "VUID-vkCmdCopyBuffer-regionCount-arraylength", || {
            "regionCount is 0".into()
        })?;
        for (index, region) in regions.iter().enumerate() {
            check_region(index, region, from.size(), to.size())?;
        }
        let (from, to) = (source.slice.address() as u64, target.slice.address() as u64);
        let sources = regions.iter().map(|region| (from + region.src_offset, region.size));
        let targets = regions.iter().map(|region| (to + region.dst_offset, region.size));
        require(!overlap(sources, targets)?, COPY, "VUID-vkCmdCopyBuffer-pRegions-00117", || OVERLAP.into())?;
        recorder.make_room(regions.len())?;
        recorder.add_regions(regions.iter().map(|region| Work::Copy {
            from: source.slice.slice(region.src_offset, region.size),
            to: target.slice.slice(region.dst_offset, region.size),
        }));
        recorder.keep(&source.allocation);
        recorder.keep(&target.allocation);
        Ok(())
    }

    /// `vkCmdFillBuffer`: fills `size` bytes at `offset` with copies of `word`. [`vk::WHOLE_SIZE`] fills to the end,
    /// except for a remainder of less than a word.
    pub fn fill_buffer(&self, to: &Buffer, offset: u64, size: u64, word: u32) -> Result<(), Error> {
        let mut recorder = self.recorder(FILL, "VUID-vkCmdFillBuffer-commandBuffer-recording")?;
        let target = to.checked(&recorder.device, &FILL_TO)?;
        let whole = to.size();
        require(offset < whole, FILL, "VUID-vkCmdFillBuffer-dstOffset-00024", || outside(offset, whole))?;
        require(offset.is_multiple_of(4), FILL, "VUID-vkCmdFillBuffer-dstOffset-00025", || {
            format!("dstOffset {offset} is not a multiple of 4")
        })?;
        let size = if size == vk::WHOLE_SIZE {
            (whole - offset) & !3
        } else {
            check_fill_size(offset, size, whole)?;
            size
        };
        recorder.add(Work::Fill { to: target.slice.slice(offset, size), word });
        recorder.keep(&target.allocation);
        Ok(())
    }

    /// `vkCmdUpdateBuffer`: at most 65,536 bytes, copied now and written when the command runs.
    pub fn update_buffer(&self, to: &Buffer, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut recorder = self.recorder(UPDATE, "VUID-vkCmdUpdateBuffer-commandBuffer-recording")?;
        let target = to.checked(&recorder.device, &UPDATE_TO)?;
        check_update(offset, bytes.len(), to.size())?;
        let len = bytes.len() as u64;
        recorder.add(Work::Update { to: target.slice.slice(offset, len), bytes: Arc::from(bytes) });
        recorder.keep(&target.allocation);
        Ok(())
    }
}

fn outside(offset: u64, size: u64) -> String {
    format!("offset {offset} in a buffer of {size} bytes")
}

fn beyond(len: u64, offset: u64, size: u64) -> String {
    format!("{len} bytes at offset {offset} in a buffer of {size} bytes")
}

fn check_region(index: usize, region: &vk::BufferCopy, from: u64, to: u64) -> Result<(), Misuse> {
    let at = format!("pRegions[{index}]");
    let vk::BufferCopy { src_offset, dst_offset, size } = *region;
    require(size > 0, &at, "VUID-VkBufferCopy-size-01988", || "size is 0".into())?;
    require(src_offset < from, &at, "VUID-vkCmdCopyBuffer-srcOffset-00113", || outside(src_offset, from))?;
    require(dst_offset < to, &at, "VUID-vkCmdCopyBuffer-dstOffset-00114", || outside(dst_offset, to))?;
    let fits = size <= from - src_offset;
    require(fits, &at, "VUID-vkCmdCopyBuffer-size-00115", || beyond(size, src_offset, from))?;
    let fits = size <= to - dst_offset;
    require(fits, &at, "VUID-vkCmdCopyBuffer-size-00116", || beyond(size, dst_offset, to))
}

/// Whether any source shares a byte with any destination, by their addresses and sizes. A sweep over sorted addresses,
/// since regions may be many.
pub(super) fn overlap(
    sources: impl Iterator<Item = (u64, u64)>,
    targets: impl Iterator<Item = (u64, u64)>,
) -> Result<bool, OutOfHostMemory> {
    let sources = sources.map(|(start, size)| (start, size, 0));
    let targets = targets.map(|(start, size)| (start, size, 1));
    let mut spans = host_memory::collect(sources.chain(targets))?;
    spans.sort_unstable();
    // The largest end of the sources, and of the targets, so far.
    let mut reach = [0, 0];
    Ok(spans.into_iter().any(|(start, size, kind)| {
        reach[kind] = reach[kind].max(start + size);
        start < reach[1 - kind]
    }))
}

fn check_fill_size(offset: u64, size: u64, whole: u64) -> Result<(), Misuse> {
    require(size > 0, FILL, "VUID-vkCmdFillBuffer-size-00026", || "size is 0".into())?;
    let fits = size <= whole - offset;
    require(fits, FILL, "VUID-vkCmdFillBuffer-size-00027", || beyond(size, offset, whole))?;
    require(size.is_multiple_of(4), FILL, "VUID-vkCmdFillBuffer-size-00028", || {
        format!("size {size} is not a multiple of 4")
    })
}

fn check_update(offset: u64, len: usize, size: u64) -> Result<(), Misuse> {
    require(offset < size, UPDATE, "VUID-vkCmdUpdateBuffer-dstOffset-00032", || outside(offset, size))?;
    require(offset.is_multiple_of(4), UPDATE, "VUID-vkCmdUpdateBuffer-dstOffset-00036", || {
        format!("dstOffset {offset} is not a multiple of 4")
    })?;
    require(len > 0, UPDATE, "VUID-vkCmdUpdateBuffer-dataSize-arraylength", || "dataSize is 0".into())?;
    require(len <= MAX_UPDATED, UPDATE, "VUID-vkCmdUpdateBuffer-dataSize-00037", || {
        format!("dataSize {len} above {MAX_UPDATED}")
    })?;
    require(len.is_multiple_of(4), UPDATE, "VUID-vkCmdUpdateBuffer-dataSize-00038", || {
        format!("dataSize {len} is not a multiple of 4")
    })?;
    let fits = len as u64 <= size - offset;
    require(fits, UPDATE, "VUID-vkCmdUpdateBuffer-dataSize-00033", || beyond(len as u64, offset, size))
}
