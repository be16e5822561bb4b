//! Pipeline barriers: each ends a phase.
//!
//! All commands before a barrier end before any after it begins, whatever stages and accesses the barrier names. Stages
//! and accesses are validated all the same, since a program that is wrong here is wrong on other drivers.

use ash::vk::{AccessFlags, AccessFlags2, ImageLayout, ImageSubresourceRange, PipelineStageFlags};
use ash::vk::{PipelineStageFlags2, WHOLE_SIZE};
use ash::vk::{REMAINING_ARRAY_LAYERS, REMAINING_MIP_LEVELS};

use super::CommandBuffer;
use super::dependency::{Barrier2, BarrierMemory};
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::resource::{Buffer, Image};

/// A global memory barrier (`VkMemoryBarrier`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBarrier {
    /// Accesses made available.
    pub src_access: AccessFlags,
    /// Accesses to which they are made visible.
    pub dst_access: AccessFlags,
}

/// A barrier for a range of a buffer (`VkBufferMemoryBarrier`), without a queue family transfer: there is only one
/// family.
#[derive(Clone, Copy, Debug)]
pub struct BufferMemoryBarrier<'a> {
    /// Accesses made available.
    pub src_access: AccessFlags,
    /// Accesses to which they are made visible.
    pub dst_access: AccessFlags,
    /// The buffer.
    pub buffer: &'a Buffer,
    /// First byte.
    pub offset: u64,
    /// Bytes, or [`WHOLE_SIZE`].
    pub size: u64,
}

/// A barrier for levels and layers of an image (`VkImageMemoryBarrier`). Layout transitions only order accesses: all
/// layouts store texels alike.
#[derive(Clone, Copy, Debug)]
pub struct ImageMemoryBarrier<'a> {
    /// Accesses made available.
    pub src_access: AccessFlags,
    /// Accesses to which they are made visible.
    pub dst_access: AccessFlags,
    /// The layout before.
    pub old_layout: ImageLayout,
    /// The layout after.
    pub new_layout: ImageLayout,
    /// The image.
    pub image: &'a Image,
    /// Levels and layers.
    pub range: ImageSubresourceRange,
}

/// The stages of this device's queues, each with the accesses that only it supports.
const STAGES: [(PipelineStageFlags, AccessFlags); 5] = [
    (PipelineStageFlags::DRAW_INDIRECT, AccessFlags::INDIRECT_COMMAND_READ),
    (PipelineStageFlags::CONDITIONAL_RENDERING_EXT, AccessFlags::CONDITIONAL_RENDERING_READ_EXT),
    (
        PipelineStageFlags::COMPUTE_SHADER,
        AccessFlags::from_raw(
            AccessFlags::UNIFORM_READ.as_raw() | AccessFlags::SHADER_READ.as_raw() | AccessFlags::SHADER_WRITE.as_raw(),
        ),
    ),
    (
        PipelineStageFlags::TRANSFER,
        AccessFlags::from_raw(AccessFlags::TRANSFER_READ.as_raw() | AccessFlags::TRANSFER_WRITE.as_raw()),
    ),
    (
        PipelineStageFlags::HOST,
        AccessFlags::from_raw(AccessFlags::HOST_READ.as_raw() | AccessFlags::HOST_WRITE.as_raw()),
    ),
];

const AT: &str = "vkCmdPipelineBarrier";

impl CommandBuffer {
    /// `vkCmdPipelineBarrier`: commands after it see the writes of commands before it.
    pub fn pipeline_barrier(
        &self,
        src_stages: PipelineStageFlags,
        dst_stages: PipelineStageFlags,
        memory: &[MemoryBarrier],
        buffers: &[BufferMemoryBarrier<'_>],
    ) -> Result<(), Error> {
        self.pipeline_barrier_with_images(src_stages, dst_stages, memory, buffers, &[])
    }

    /// As [`CommandBuffer::pipeline_barrier`], with barriers for images.
    pub fn pipeline_barrier_with_images(
        &self,
        src_stages: PipelineStageFlags,
        dst_stages: PipelineStageFlags,
        memory: &[MemoryBarrier],
        buffers: &[BufferMemoryBarrier<'_>],
        images: &[ImageMemoryBarrier<'_>],
    ) -> Result<(), Error> {
        let mut recorder = self.recorder(AT, "VUID-vkCmdPipelineBarrier-commandBuffer-recording")?;
        check_stages(src_stages, SRC)?;
        check_stages(dst_stages, DST)?;
        for barrier in memory {
            check_access(src_stages, barrier.src_access, SRC.memory)?;
            check_access(dst_stages, barrier.dst_access, DST.memory)?;
        }
        for (index, barrier) in buffers.iter().enumerate() {
            check_access(src_stages, barrier.src_access, SRC.buffer)?;
            check_access(dst_stages, barrier.dst_access, DST.buffer)?;
            check_buffer(index, &recorder.device, barrier)?;
        }
        for (index, barrier) in images.iter().enumerate() {
            check_access(src_stages, barrier.src_access, SRC.image)?;
            check_access(dst_stages, barrier.dst_access, DST.image)?;
            check_image(index, &recorder.device, barrier)?;
        }
        recorder.end_phase();
        let (src, dst) = (wide(src_stages), wide(dst_stages));
        let of = |access: [AccessFlags; 2], memory| Barrier2 {
            src_stages: src,
            src_access: AccessFlags2::from_raw(access[0].as_raw().into()),
            dst_stages: dst,
            dst_access: AccessFlags2::from_raw(access[1].as_raw().into()),
            memory,
            ownership: None,
        };
        // Without a memory barrier it orders execution.
        let execution = std::iter::once(of([AccessFlags::empty(); 2], BarrierMemory::All));
        let memory = memory.iter().map(|b| of([b.src_access, b.dst_access], BarrierMemory::All));
        let buffers = buffers.iter().map(|b| {
            let memory = BarrierMemory::Buffer { buffer: b.buffer, offset: b.offset, size: b.size };
            of([b.src_access, b.dst_access], memory)
        });
        let images = images.iter().map(|b| {
            let memory = BarrierMemory::Image { image: b.image, layouts: [b.old_layout, b.new_layout], range: b.range };
            of([b.src_access, b.dst_access], memory)
        });
        recorder.depend(execution.chain(memory).chain(buffers).chain(images), None);
        Ok(())
    }
}

fn wide(stages: PipelineStageFlags) -> PipelineStageFlags2 {
    PipelineStageFlags2::from_raw(stages.as_raw().into())
}

/// The VUIDs of the source or destination rules.
#[derive(Clone, Copy)]
struct SideRules {
    name: &'static str,
    none: &'static str,
    unsupported: &'static str,
    memory: &'static str,
    buffer: &'static str,
    image: &'static str,
}

const SRC: SideRules = SideRules {
    name: "srcStageMask",
    none: "VUID-vkCmdPipelineBarrier-srcStageMask-03937",
    unsupported: "VUID-vkCmdPipelineBarrier-srcStageMask-06461",
    memory: "VUID-vkCmdPipelineBarrier-srcAccessMask-02815",
    buffer: "VUID-vkCmdPipelineBarrier-pBufferMemoryBarriers-02817",
    image: "VUID-vkCmdPipelineBarrier-pImageMemoryBarriers-02819",
};

const DST: SideRules = SideRules {
    name: "dstStageMask",
    none: "VUID-vkCmdPipelineBarrier-dstStageMask-03937",
    unsupported: "VUID-vkCmdPipelineBarrier-dstStageMask-06462",
    memory: "VUID-vkCmdPipelineBarrier-dstAccessMask-02816",
    buffer: "VUID-vkCmdPipelineBarrier-pBufferMemoryBarriers-02818",
    image: "VUID-vkCmdPipelineBarrier-pImageMemoryBarriers-02820",
};

fn check_stages(stages: PipelineStageFlags, side: SideRules) -> Result<(), Misuse> {
    require(!stages.is_empty(), AT, side.none, || format!("{} is 0", side.name))?;
    let pseudo =
        PipelineStageFlags::TOP_OF_PIPE | PipelineStageFlags::BOTTOM_OF_PIPE | PipelineStageFlags::ALL_COMMANDS;
    let known = STAGES.iter().fold(pseudo, |all, (stage, _)| all | *stage);
    require(known.contains(stages), AT, side.unsupported, || {
        format!("{} has {:?}, which a compute queue does not have", side.name, stages & !known)
    })
}

fn check_access(stages: PipelineStageFlags, access: AccessFlags, vuid: &'static str) -> Result<(), Misuse> {
    let all = stages.contains(PipelineStageFlags::ALL_COMMANDS);
    let mut supported = AccessFlags::MEMORY_READ | AccessFlags::MEMORY_WRITE;
    for (stage, accesses) in STAGES {
        // ALL_COMMANDS includes every stage except the host.
        if stages.contains(stage) || (all && stage != PipelineStageFlags::HOST) {
            supported |= accesses;
        }
    }
    require(supported.contains(access), AT, vuid, || {
        format!("access {:?} is not supported by the stages {stages:?}", access & !supported)
    })
}

pub(super) fn check_buffer(index: usize, device: &Device, barrier: &BufferMemoryBarrier<'_>) -> Result<(), Misuse> {
    let at = format_args!("pBufferMemoryBarriers[{index}]");
    let (buffer, offset, size) = (barrier.buffer, barrier.offset, barrier.size);
    require(buffer.device().is(device), at, "VUID-VkBufferMemoryBarrier-buffer-parameter", || {
        "a buffer of another device".into()
    })?;
    require(buffer.storage().is_some(), at, "VUID-VkBufferMemoryBarrier-buffer-01931", || {
        "the buffer has no memory bound".into()
    })?;
    let whole = buffer.size();
    require(offset < whole, at, "VUID-VkBufferMemoryBarrier-offset-01187", || {
        format!("offset {offset} in a buffer of {whole} bytes")
    })?;
    if size == WHOLE_SIZE {
        return Ok(());
    }
    require(size > 0, at, "VUID-VkBufferMemoryBarrier-size-01188", || "size is 0".into())?;
    require(size <= whole - offset, at, "VUID-VkBufferMemoryBarrier-size-01189", || {
        format!("{size} bytes at offset {offset} in a buffer of {whole} bytes")
    })
}

pub(super) fn check_image(index: usize, device: &Device, barrier: &ImageMemoryBarrier<'_>) -> Result<(), Misuse> {
    let at = format_args!("pImageMemoryBarriers[{index}]");
    let (image, range) = (barrier.image, barrier.range);
    require(image.device().is(device), at, "VUID-VkImageMemoryBarrier-image-parameter", || {
        "an image of another device".into()
    })?;
    require(image.storage().is_some(), at, "VUID-VkImageMemoryBarrier-image-01932", || {
        "the image has no memory bound".into()
    })?;
    let nowhere = [ImageLayout::UNDEFINED, ImageLayout::PREINITIALIZED].contains(&barrier.new_layout);
    // Equal layouts request no transition.
    let stays = barrier.old_layout == barrier.new_layout;
    require(stays || !nowhere, at, "VUID-VkImageMemoryBarrier-newLayout-01198", || {
        format!("newLayout is {:?}", barrier.new_layout)
    })?;
    let info = image.info();
    require(range.base_mip_level < info.levels, at, "VUID-VkImageMemoryBarrier-subresourceRange-01486", || {
        format!("baseMipLevel {} of {}", range.base_mip_level, info.levels)
    })?;
    let levels = range.level_count == REMAINING_MIP_LEVELS || range.level_count <= info.levels - range.base_mip_level;
    require(levels, at, "VUID-VkImageMemoryBarrier-subresourceRange-01724", || {
        format!("{} levels from {}, of {}", range.level_count, range.base_mip_level, info.levels)
    })?;
    require(range.base_array_layer < info.layers, at, "VUID-VkImageMemoryBarrier-subresourceRange-01488", || {
        format!("baseArrayLayer {} of {}", range.base_array_layer, info.layers)
    })?;
    let layers =
        range.layer_count == REMAINING_ARRAY_LAYERS || range.layer_count <= info.layers - range.base_array_layer;
    require(layers, at, "VUID-VkImageMemoryBarrier-subresourceRange-01725", || {
        format!("{} layers from {}, of {}", range.layer_count, range.base_array_layer, info.layers)
    })
}
