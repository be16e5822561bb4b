//! Dependencies with the scopes of each barrier, as `VkDependencyInfo` has them: for pipeline barriers and events.
//!
//! Execution needs no scopes. Checked mode keeps them, to tell what the program may rely on.

use std::ops::Range;
use std::sync::Arc;

use ash::vk::{self, AccessFlags2, ImageLayout, ImageSubresourceRange, PipelineStageFlags2, WHOLE_SIZE};

use super::CommandBuffer;
use super::barrier::{BufferMemoryBarrier, ImageMemoryBarrier, check_buffer, check_image};
use super::recorder::CommandRecorder;
use crate::error::Error;
use crate::exec::{Dependency, MemoryDependency, OwnershipTransfer, Scope};
use crate::resource::{Buffer, Image};

/// A barrier of a `VkDependencyInfo`: `VkMemoryBarrier2`, `VkBufferMemoryBarrier2` or `VkImageMemoryBarrier2`.
#[derive(Clone, Copy, Debug)]
pub struct Barrier2<'a> {
    /// Stages of the first synchronization scope.
    pub src_stages: PipelineStageFlags2,
    /// Accesses made available.
    pub src_access: AccessFlags2,
    /// Stages of the second synchronization scope.
    pub dst_stages: PipelineStageFlags2,
    /// Accesses to which they are made visible.
    pub dst_access: AccessFlags2,
    /// The memory whose values are made available and visible.
    pub memory: BarrierMemory<'a>,
    /// The queue family ownership transfer of that memory, which has no effect: findings of checked mode name it.
    pub ownership: Option<OwnershipTransfer>,
}

/// The memory that a barrier is for.
#[derive(Clone, Copy, Debug)]
pub enum BarrierMemory<'a> {
    /// All memory.
    All,
    /// A range of a buffer.
    Buffer {
        /// The buffer.
        buffer: &'a Buffer,
        /// First byte.
        offset: u64,
        /// Bytes, or [`WHOLE_SIZE`].
        size: u64,
    },
    /// Levels and layers of an image.
    Image {
        /// The image.
        image: &'a Image,
        /// The layouts before and after: if they differ, the barrier is a layout transition.
        layouts: [ImageLayout; 2],
        /// Levels and layers.
        range: ImageSubresourceRange,
    },
}

impl Barrier2<'_> {
    /// A barrier that orders all commands and carries all values: what every command of this device does by itself.
    pub(super) const FULL: Self = Self {
        src_stages: PipelineStageFlags2::ALL_COMMANDS,
        src_access: AccessFlags2::MEMORY_WRITE,
        dst_stages: PipelineStageFlags2::ALL_COMMANDS,
        dst_access: AccessFlags2::from_raw(AccessFlags2::MEMORY_READ.as_raw() | AccessFlags2::MEMORY_WRITE.as_raw()),
        memory: BarrierMemory::All,
        ownership: None,
    };

    fn keep(&self) -> MemoryDependency {
        let (memory, transition) = match self.memory {
            BarrierMemory::All => (None, false),
            BarrierMemory::Buffer { buffer, offset, size } => (Some(buffer_range(buffer, offset, size)), false),
            BarrierMemory::Image { image, layouts: [old, new], range } => {
                (Some(image_ranges(image, &range)), old != new)
            }
        };
        MemoryDependency {
            src: Scope { stages: self.src_stages, access: self.src_access },
            dst: Scope { stages: self.dst_stages, access: self.dst_access },
            memory,
            transition,
            ownership: self.ownership,
        }
    }
}

fn buffer_range(buffer: &Buffer, offset: u64, size: u64) -> Arc<[Range<u64>]> {
    let Some(storage) = buffer.storage() else { return Arc::default() };
    let start = (storage.slice.address() as u64).saturating_add(offset);
    let left = buffer.size().saturating_sub(offset);
    let size = if size == WHOLE_SIZE { left } else { size.min(left) };
    std::iter::once(start..start.saturating_add(size)).collect()
}

/// The bytes of levels and layers: all of the image, if it is all levels and layers.
pub(super) fn image_ranges(image: &Image, range: &ImageSubresourceRange) -> Arc<[Range<u64>]> {
    let Some(storage) = image.storage() else { return Arc::default() };
    let (base, info) = (storage.slice.address() as u64, image.info());
    let some = |first: u32, count: u32, all: u32, rest: u32| {
        first.min(all)..if count == rest { all } else { first.saturating_add(count).min(all) }
    };
    let levels = some(range.base_mip_level, range.level_count, info.levels, vk::REMAINING_MIP_LEVELS);
    let layers = some(range.base_array_layer, range.layer_count, info.layers, vk::REMAINING_ARRAY_LAYERS);
    if levels == (0..info.levels) && layers == (0..info.layers) {
        return std::iter::once(base..base.saturating_add(storage.slice.len())).collect();
    }
    let of = |level: u32, layer: u32| {
        let place = image.subresource_layout(level, layer);
        base + place.offset..base + place.offset + place.size
    };
    levels
        .flat_map(|level| layers.clone().map(move |layer| (level, layer)))
        .map(|(level, layer)| of(level, layer))
        .collect()
}

const AT: &str = "vkCmdPipelineBarrier2";

impl CommandBuffer {
    /// `vkCmdPipelineBarrier2`: commands after it see the writes of commands before it. The flags of stages and
    /// accesses are not validated: those of graphics mean nothing here.
    pub fn pipeline_barrier2(&self, barriers: &[Barrier2<'_>]) -> Result<(), Error> {
        let mut recorder = self.recorder(AT, "VUID-vkCmdPipelineBarrier2-commandBuffer-recording")?;
        recorder.check_memory(barriers)?;
        recorder.end_phase();
        recorder.depend(barriers.iter().copied(), None);
        Ok(())
    }
}

impl CommandRecorder {
    /// Checks the buffers and images of barriers.
    pub(super) fn check_memory(&self, barriers: &[Barrier2<'_>]) -> Result<(), Error> {
        let (src_access, dst_access) = Default::default();
        for (index, barrier) in barriers.iter().enumerate() {
            match barrier.memory {
                BarrierMemory::All => {}
                BarrierMemory::Buffer { buffer, offset, size } => {
                    let barrier = BufferMemoryBarrier { src_access, dst_access, buffer, offset, size };
                    check_buffer(index, &self.device, &barrier)?;
                }
                BarrierMemory::Image { image, layouts: [old_layout, new_layout], range } => {
                    let barrier = ImageMemoryBarrier { src_access, dst_access, old_layout, new_layout, image, range };
                    check_image(index, &self.device, &barrier)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps the scopes of barriers, if the device checks: of pipeline barriers, or of the event command that comes
    /// next, for these of its events.
    pub(super) fn depend<'a>(&mut self, barriers: impl Iterator<Item = Barrier2<'a>>, events: Option<Range<usize>>) {
        if self.device.is_checked() {
            let barriers = barriers.map(|barrier| barrier.keep()).collect();
            self.dependencies.push(Dependency { phase: self.next_phase(), events, barriers });
        }
    }
}
