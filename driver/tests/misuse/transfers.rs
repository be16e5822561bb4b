//! Rules of copies, fills, updates and barriers.

use spelter_driver::vk::{self, AccessFlags, BufferUsageFlags, PipelineStageFlags};
use spelter_driver::{Buffer, BufferMemoryBarrier, Error, MemoryBarrier};

use super::{Rule, World};

/// Regions within the 256 bytes of the world's buffer.
fn copy(world: &World, src_offset: u64, dst_offset: u64, size: u64) -> Result<(), Error> {
    let region = vk::BufferCopy { src_offset, dst_offset, size };
    world.command.copy_buffer(&world.words.buffer, &world.words.buffer, &[region])
}

fn copy_between(world: &World, from: &Buffer, to: &Buffer) -> Result<(), Error> {
    world.command.copy_buffer(from, to, &[vk::BufferCopy { src_offset: 0, dst_offset: 0, size: 4 }])
}

/// A buffer without transfer usage.
fn useless(world: &World) -> Buffer {
    world.device.create_buffer(64, BufferUsageFlags::STORAGE_BUFFER).unwrap()
}

fn fill(world: &World, offset: u64, size: u64) -> Result<(), Error> {
    world.command.fill_buffer(&world.words.buffer, offset, size, 7)
}

fn update(world: &World, offset: u64, bytes: usize) -> Result<(), Error> {
    world.command.update_buffer(&world.words.buffer, offset, &vec![0; bytes])
}

const COMPUTE: PipelineStageFlags = PipelineStageFlags::COMPUTE_SHADER;
const NONE: AccessFlags = AccessFlags::empty();

fn stages(world: &World, src: PipelineStageFlags, dst: PipelineStageFlags) -> Result<(), Error> {
    world.command.pipeline_barrier(src, dst, &[], &[])
}

fn memory(world: &World, src_access: AccessFlags, dst_access: AccessFlags) -> Result<(), Error> {
    world.command.pipeline_barrier(COMPUTE, COMPUTE, &[MemoryBarrier { src_access, dst_access }], &[])
}

fn buffer(world: &World, buffer: &Buffer, access: [AccessFlags; 2], offset: u64, size: u64) -> Result<(), Error> {
    let [src_access, dst_access] = access;
    let barrier = BufferMemoryBarrier { src_access, dst_access, buffer, offset, size };
    world.command.pipeline_barrier(COMPUTE, COMPUTE, &[], &[barrier])
}

pub(crate) const RULES: &[Rule] = &[
    ("VUID-vkCmdCopyBuffer-commandBuffer-recording", |w| w.idle.copy_buffer(&w.words.buffer, &w.words.buffer, &[])),
    ("VUID-vkCmdCopyBuffer-commonparent", |w| copy_between(w, &w.words.buffer, &w.foreign.buffer)),
    ("VUID-vkCmdCopyBuffer-srcBuffer-00118", |w| copy_between(w, &useless(w), &w.words.buffer)),
    ("VUID-vkCmdCopyBuffer-srcBuffer-00119", |w| copy_between(w, &w.unbound, &w.words.buffer)),
    ("VUID-vkCmdCopyBuffer-dstBuffer-00120", |w| copy_between(w, &w.words.buffer, &useless(w))),
    ("VUID-vkCmdCopyBuffer-dstBuffer-00121", |w| copy_between(w, &w.words.buffer, &w.unbound)),
    ("VUID-vkCmdCopyBuffer-regionCount-arraylength", |w| w.command.copy_buffer(&w.words.buffer, &w.words.buffer, &[])),
    ("VUID-VkBufferCopy-size-01988", |w| copy(w, 0, 0, 0)),
    ("VUID-vkCmdCopyBuffer-srcOffset-00113", |w| copy(w, 256, 0, 4)),
    ("VUID-vkCmdCopyBuffer-dstOffset-00114", |w| copy(w, 0, u64::MAX, 4)),
    ("VUID-vkCmdCopyBuffer-size-00115", |w| copy(w, 252, 0, 5)),
    ("VUID-vkCmdCopyBuffer-size-00115", |w| copy(w, 4, 0, u64::MAX)),
    ("VUID-vkCmdCopyBuffer-size-00116", |w| copy(w, 0, 252, 5)),
    ("VUID-vkCmdCopyBuffer-pRegions-00117", |w| copy(w, 0, 7, 8)),
    ("VUID-vkCmdCopyBuffer-pRegions-00117", |w| {
        // The second region's source is the first one's destination.
        let region = |src_offset, dst_offset| vk::BufferCopy { src_offset, dst_offset, size: 8 };
        w.command.copy_buffer(&w.words.buffer, &w.words.buffer, &[region(0, 64), region(70, 128)])
    }),
    ("VUID-vkCmdFillBuffer-commandBuffer-recording", |w| w.idle.fill_buffer(&w.words.buffer, 0, 4, 0)),
    ("VUID-vkCmdFillBuffer-commonparent", |w| w.command.fill_buffer(&w.foreign.buffer, 0, 4, 0)),
    ("VUID-vkCmdFillBuffer-dstBuffer-00029", |w| w.command.fill_buffer(&useless(w), 0, 4, 0)),
    ("VUID-vkCmdFillBuffer-dstBuffer-00031", |w| w.command.fill_buffer(&w.unbound, 0, 4, 0)),
    ("VUID-vkCmdFillBuffer-dstOffset-00024", |w| fill(w, 256, vk::WHOLE_SIZE)),
    ("VUID-vkCmdFillBuffer-dstOffset-00025", |w| fill(w, 2, 4)),
    ("VUID-vkCmdFillBuffer-size-00026", |w| fill(w, 0, 0)),
    ("VUID-vkCmdFillBuffer-size-00027", |w| fill(w, 248, 12)),
    ("VUID-vkCmdFillBuffer-size-00028", |w| fill(w, 0, 6)),
    ("VUID-vkCmdUpdateBuffer-commandBuffer-recording", |w| w.idle.update_buffer(&w.words.buffer, 0, &[0; 4])),
    ("VUID-vkCmdUpdateBuffer-commonparent", |w| w.command.update_buffer(&w.foreign.buffer, 0, &[0; 4])),
    ("VUID-vkCmdUpdateBuffer-dstBuffer-00034", |w| w.command.update_buffer(&useless(w), 0, &[0; 4])),
    ("VUID-vkCmdUpdateBuffer-dstBuffer-00035", |w| w.command.update_buffer(&w.unbound, 0, &[0; 4])),
    ("VUID-vkCmdUpdateBuffer-dstOffset-00032", |w| update(w, 256, 4)),
    ("VUID-vkCmdUpdateBuffer-dstOffset-00036", |w| update(w, 1, 4)),
    ("VUID-vkCmdUpdateBuffer-dataSize-arraylength", |w| update(w, 0, 0)),
    ("VUID-vkCmdUpdateBuffer-dataSize-00033", |w| update(w, 252, 8)),
    ("VUID-vkCmdUpdateBuffer-dataSize-00037", |w| update(w, 0, 65_540)),
    ("VUID-vkCmdUpdateBuffer-dataSize-00038", |w| update(w, 0, 3)),
    ("VUID-vkCmdPipelineBarrier2-commandBuffer-recording", |w| w.idle.pipeline_barrier2(&[])),
    ("VUID-vkCmdPipelineBarrier-commandBuffer-recording", |w| w.idle.pipeline_barrier(COMPUTE, COMPUTE, &[], &[])),
    ("VUID-vkCmdPipelineBarrier-srcStageMask-03937", |w| stages(w, PipelineStageFlags::empty(), COMPUTE)),
    ("VUID-vkCmdPipelineBarrier-dstStageMask-03937", |w| stages(w, COMPUTE, PipelineStageFlags::empty())),
    ("VUID-vkCmdPipelineBarrier-srcStageMask-06461", |w| stages(w, PipelineStageFlags::VERTEX_SHADER, COMPUTE)),
    ("VUID-vkCmdPipelineBarrier-dstStageMask-06462", |w| stages(w, COMPUTE, PipelineStageFlags::ALL_GRAPHICS)),
    ("VUID-vkCmdPipelineBarrier-srcAccessMask-02815", |w| memory(w, AccessFlags::TRANSFER_WRITE, NONE)),
    ("VUID-vkCmdPipelineBarrier-dstAccessMask-02816", |w| memory(w, AccessFlags::SHADER_WRITE, AccessFlags::HOST_READ)),
    ("VUID-vkCmdPipelineBarrier-pBufferMemoryBarriers-02817", |w| {
        buffer(w, &w.words.buffer, [AccessFlags::HOST_WRITE, NONE], 0, 4)
    }),
    ("VUID-vkCmdPipelineBarrier-pBufferMemoryBarriers-02818", |w| {
        buffer(w, &w.words.buffer, [NONE, AccessFlags::INDEX_READ], 0, 4)
    }),
    ("VUID-VkBufferMemoryBarrier-buffer-parameter", |w| buffer(w, &w.foreign.buffer, [NONE; 2], 0, 4)),
    ("VUID-VkBufferMemoryBarrier-buffer-01931", |w| buffer(w, &w.unbound, [NONE; 2], 0, 4)),
    ("VUID-VkBufferMemoryBarrier-offset-01187", |w| buffer(w, &w.words.buffer, [NONE; 2], 256, vk::WHOLE_SIZE)),
    ("VUID-VkBufferMemoryBarrier-size-01188", |w| buffer(w, &w.words.buffer, [NONE; 2], 0, 0)),
    ("VUID-VkBufferMemoryBarrier-size-01189", |w| buffer(w, &w.words.buffer, [NONE; 2], 4, 253)),
];
