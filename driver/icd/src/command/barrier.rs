//! Pipeline barriers. A barrier orders all earlier commands before all later ones, whatever stages and accesses it
//! names. Checked mode gets them as the program gave them; `scopes.rs` reports the invalid ones.

use ash::vk::{self, AccessFlags, AccessFlags2, PipelineStageFlags, PipelineStageFlags2};
use spelter_driver::{self as driver, host_memory};

use super::CommandBuffer;
use super::scopes::{Rules, Scope, check};
use crate::buffer::Buffer;
use crate::c::entry::entry_points;
use crate::c::{In, Many};
use crate::error::Error;
use crate::image::Image;
use crate::table::{Object, Ref};

entry_points! {
    PFN_vkCmdPipelineBarrier(
        command_buffer: vk::CommandBuffer, src_stage_mask: PipelineStageFlags,
        dst_stage_mask: PipelineStageFlags, dependency_flags: vk::DependencyFlags, memory_barrier_count: u32,
        p_memory_barriers: *const vk::MemoryBarrier<'_>, buffer_memory_barrier_count: u32,
        p_buffer_memory_barriers: *const vk::BufferMemoryBarrier<'_>, image_memory_barrier_count: u32,
        p_image_memory_barriers: *const vk::ImageMemoryBarrier<'_>,
    ) => barrier;
    PFN_vkCmdPipelineBarrier2(
        command_buffer: vk::CommandBuffer, p_dependency_info: *const vk::DependencyInfo<'_>,
    ) => barrier2;
}

/// Valid usage of the two scopes of each kind of barrier: of the old command, then of the `2` structures.
macro_rules! rules {
    (
        $name:ident: $call:literal,
        $src_stages:literal, $src_access:literal, $dst_stages:literal, $dst_access:literal
    ) => {
        const $name: [Rules; 2] = [
            Rules { call: $call, name: "srcStageMask", stages: $src_stages, access: $src_access },
            Rules { call: $call, name: "dstStageMask", stages: $dst_stages, access: $dst_access },
        ];
    };
}

rules!(OLD_MEMORY: "vkCmdPipelineBarrier",
    "VUID-vkCmdPipelineBarrier-srcStageMask-06461", "VUID-vkCmdPipelineBarrier-srcAccessMask-02815",
    "VUID-vkCmdPipelineBarrier-dstStageMask-06462", "VUID-vkCmdPipelineBarrier-dstAccessMask-02816");
rules!(OLD_BUFFER: "vkCmdPipelineBarrier",
    "VUID-vkCmdPipelineBarrier-srcStageMask-06461", "VUID-vkCmdPipelineBarrier-pBufferMemoryBarriers-02817",
    "VUID-vkCmdPipelineBarrier-dstStageMask-06462", "VUID-vkCmdPipelineBarrier-pBufferMemoryBarriers-02818");
rules!(OLD_IMAGE: "vkCmdPipelineBarrier",
    "VUID-vkCmdPipelineBarrier-srcStageMask-06461", "VUID-vkCmdPipelineBarrier-pImageMemoryBarriers-02819",
    "VUID-vkCmdPipelineBarrier-dstStageMask-06462", "VUID-vkCmdPipelineBarrier-pImageMemoryBarriers-02820");
rules!(WAIT_MEMORY: "vkCmdWaitEvents",
    "VUID-vkCmdWaitEvents-srcStageMask-06459", "VUID-vkCmdWaitEvents-srcAccessMask-02815",
    "VUID-vkCmdWaitEvents-dstStageMask-06460", "VUID-vkCmdWaitEvents-dstAccessMask-02816");
rules!(WAIT_BUFFER: "vkCmdWaitEvents",
    "VUID-vkCmdWaitEvents-srcStageMask-06459", "VUID-vkCmdWaitEvents-pBufferMemoryBarriers-02817",
    "VUID-vkCmdWaitEvents-dstStageMask-06460", "VUID-vkCmdWaitEvents-pBufferMemoryBarriers-02818");
rules!(WAIT_IMAGE: "vkCmdWaitEvents",
    "VUID-vkCmdWaitEvents-srcStageMask-06459", "VUID-vkCmdWaitEvents-pImageMemoryBarriers-02819",
    "VUID-vkCmdWaitEvents-dstStageMask-06460", "VUID-vkCmdWaitEvents-pImageMemoryBarriers-02820");

/// For memory, buffers, images.
pub(super) const WAIT_EVENTS: [[Rules; 2]; 3] = [WAIT_MEMORY, WAIT_BUFFER, WAIT_IMAGE];

/// Valid usage of a command with the `2` structures; the command's own IDs are for stages.
macro_rules! dependency_rules {
    ($name:ident: $call:literal, $src:literal, $dst:literal) => {
        /// For memory, buffers, images.
        pub(super) const $name: [[Rules; 2]; 3] = {
    rules!(MEMORY: $call, $src, "VUID-VkMemoryBarrier2-srcAccessMask-",
                $dst, "VUID-VkMemoryBarrier2-dstAccessMask-");
    rules!(BUFFER: $call, $src, "VUID-VkBufferMemoryBarrier2-srcAccessMask-",
                $dst, "VUID-VkBufferMemoryBarrier2-dstAccessMask-");
    rules!(IMAGE: $call, $src, "VUID-VkImageMemoryBarrier2-srcAccessMask-",
                $dst, "VUID-VkImageMemoryBarrier2-dstAccessMask-");
            [MEMORY, BUFFER, IMAGE]
        };
    };
}

dependency_rules!(BARRIER2: "vkCmdPipelineBarrier2",
    "VUID-vkCmdPipelineBarrier2-srcStageMask-09673", "VUID-vkCmdPipelineBarrier2-dstStageMask-09674");
dependency_rules!(SET_EVENT2: "vkCmdSetEvent2",
    "VUID-vkCmdSetEvent2-srcStageMask-03827", "VUID-vkCmdSetEvent2-dstStageMask-03828");
dependency_rules!(WAIT_EVENTS2: "vkCmdWaitEvents2",
    "VUID-vkCmdWaitEvents2-srcStageMask-03842", "VUID-vkCmdWaitEvents2-dstStageMask-03843");

/// Checks both scopes of a barrier.
fn check_old(rules: [Rules; 2], stages: [PipelineStageFlags; 2], access: [AccessFlags; 2]) {
    for ((of, stages), access) in rules.into_iter().zip(stages).zip(access) {
        let stages = PipelineStageFlags2::from_raw(stages.as_raw().into());
        check(Scope { stages, access: AccessFlags2::from_raw(access.as_raw().into()), of });
    }
}

fn check_new(rules: [Rules; 2], sides: [(PipelineStageFlags2, AccessFlags2); 2]) {
    for (of, (stages, access)) in rules.into_iter().zip(sides) {
        check(Scope { stages, access, of });
    }
}

/// The two scopes of a barrier.
#[derive(Clone, Copy)]
struct Scopes {
    src: (PipelineStageFlags2, AccessFlags2),
    dst: (PipelineStageFlags2, AccessFlags2),
}

impl Scopes {
    fn old(stages: [PipelineStageFlags; 2], access: [AccessFlags; 2]) -> Self {
        let side = |at: usize| {
            let stages = PipelineStageFlags2::from_raw(stages[at].as_raw().into());
            (stages, AccessFlags2::from_raw(access[at].as_raw().into()))
        };
        Self { src: side(0), dst: side(1) }
    }
}

/// The memory of a barrier, by handle, and the queue families of its source and destination.
enum BarrierMemory {
    All,
    Buffer { buffer: vk::Buffer, offset: u64, size: u64, families: [u32; 2] },
    Image { image: vk::Image, layouts: [vk::ImageLayout; 2], range: vk::ImageSubresourceRange, families: [u32; 2] },
}

/// The memory of a buffer barrier of either generation.
macro_rules! buffer_memory {
    ($of:expr) => {
        BarrierMemory::Buffer {
            buffer: $of.buffer,
            offset: $of.offset,
            size: $of.size,
            families: [$of.src_queue_family_index, $of.dst_queue_family_index],
        }
    };
}

/// The memory of an image barrier of either generation.
macro_rules! image_memory {
    ($of:expr) => {
        BarrierMemory::Image {
            image: $of.image,
            layouts: [$of.old_layout, $of.new_layout],
            range: $of.subresource_range,
            families: [$of.src_queue_family_index, $of.dst_queue_family_index],
        }
    };
}

/// The object of a barrier.
enum BarrierObject {
    All,
    Buffer { buffer: Ref<Buffer>, offset: u64, size: u64, families: [u32; 2] },
    Image { image: Ref<Image>, layouts: [vk::ImageLayout; 2], range: vk::ImageSubresourceRange, families: [u32; 2] },
}

impl BarrierObject {
    fn of(memory: BarrierMemory) -> Result<Self, Error> {
        Ok(match memory {
            BarrierMemory::All => Self::All,
            BarrierMemory::Buffer { buffer, offset, size, families } => {
                let buffer = Buffer::get(buffer, "VkBufferMemoryBarrier-buffer")?;
                Self::Buffer { buffer, offset, size, families }
            }
            BarrierMemory::Image { image, layouts, range, families } => {
                let image = Image::get(image, "VkImageMemoryBarrier-image")?;
                Self::Image { image, layouts, range, families }
            }
        })
    }

    fn barrier(&self, scopes: Scopes) -> driver::Barrier2<'_> {
        let transfer = |[src, dst]: [u32; 2]| driver::OwnershipTransfer::of(src, dst);
        let (memory, ownership) = match self {
            Self::All => (driver::BarrierMemory::All, None),
            Self::Buffer { buffer, offset, size, families } => {
                let (buffer, offset, size) = (&buffer.driver, *offset, *size);
                (driver::BarrierMemory::Buffer { buffer, offset, size }, transfer(*families))
            }
            Self::Image { image, layouts, range, families } => {
                let (image, layouts, range) = (&image.driver, *layouts, *range);
                (driver::BarrierMemory::Image { image, layouts, range }, transfer(*families))
            }
        };
        let Scopes { src: (src_stages, src_access), dst: (dst_stages, dst_access) } = scopes;
        driver::Barrier2 { src_stages, src_access, dst_stages, dst_access, memory, ownership }
    }
}

/// The objects of barriers; an error if one is an invalid handle.
fn find(barriers: impl Iterator<Item = (Scopes, BarrierMemory)>) -> Result<Vec<(Scopes, BarrierObject)>, Error> {
    host_memory::try_collect(barriers.map(|(scopes, memory)| Ok((scopes, BarrierObject::of(memory)?))))
}

/// Passes barriers to `record`; an error if one names an invalid handle.
fn with_barriers(
    barriers: impl Iterator<Item = (Scopes, BarrierMemory)>,
    record: impl FnOnce(&[driver::Barrier2<'_>]) -> Result<(), Error>,
) -> Result<(), Error> {
    let found = find(barriers)?;
    record(&host_memory::collect(found.iter().map(|(scopes, found)| found.barrier(*scopes)))?)
}

/// The barrier arrays of `vkCmdPipelineBarrier` or `vkCmdWaitEvents`.
pub(super) struct Old<'a> {
    stages: [PipelineStageFlags; 2],
    memory: &'a [vk::MemoryBarrier<'a>],
    buffers: &'a [vk::BufferMemoryBarrier<'a>],
    images: &'a [vk::ImageMemoryBarrier<'a>],
}

impl<'a> Old<'a> {
    /// Each array with its length.
    pub(super) fn of(
        stages: [PipelineStageFlags; 2],
        memory: (u32, Many<'a, vk::MemoryBarrier<'a>>),
        buffers: (u32, Many<'a, vk::BufferMemoryBarrier<'a>>),
        images: (u32, Many<'a, vk::ImageMemoryBarrier<'a>>),
    ) -> Self {
        Self {
            stages,
            memory: memory.1.of(memory.0 as usize).get(),
            buffers: buffers.1.of(buffers.0 as usize).get(),
            images: images.1.of(images.0 as usize).get(),
        }
    }

    /// Checks the scopes, by the IDs for memory, buffer and image barriers.
    pub(super) fn check(&self, [memory, buffers, images]: [[Rules; 2]; 3]) {
        check_old(memory, self.stages, [AccessFlags::empty(); 2]);
        for barrier in self.memory {
            check_old(memory, self.stages, [barrier.src_access_mask, barrier.dst_access_mask]);
        }
        for barrier in self.buffers {
            check_old(buffers, self.stages, [barrier.src_access_mask, barrier.dst_access_mask]);
        }
        for barrier in self.images {
            check_old(images, self.stages, [barrier.src_access_mask, barrier.dst_access_mask]);
        }
    }

    /// Passes the barriers to `record`. Without any there is an execution dependency.
    pub(super) fn with_barriers(
        &self,
        record: impl FnOnce(&[driver::Barrier2<'_>]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let of = |src, dst| Scopes::old(self.stages, [src, dst]);
        let execution = std::iter::once((of(AccessFlags::empty(), AccessFlags::empty()), BarrierMemory::All));
        let memory = self.memory.iter().map(|b| (of(b.src_access_mask, b.dst_access_mask), BarrierMemory::All));
        let buffers = self.buffers.iter().map(|b| (of(b.src_access_mask, b.dst_access_mask), buffer_memory!(b)));
        let images = self.images.iter().map(|i| (of(i.src_access_mask, i.dst_access_mask), image_memory!(i)));
        with_barriers(execution.chain(memory).chain(buffers).chain(images), record)
    }
}

/// Checks the scopes of a `VkDependencyInfo`, by the IDs for memory, buffer and image barriers.
pub(super) fn check_dependency(info: In<'_, vk::DependencyInfo<'_>>, [memory, buffers, images]: [[Rules; 2]; 3]) {
    for b in info.memory().iter() {
        check_new(memory, [(b.src_stage_mask, b.src_access_mask), (b.dst_stage_mask, b.dst_access_mask)]);
    }
    for b in info.buffers().iter() {
        check_new(buffers, [(b.src_stage_mask, b.src_access_mask), (b.dst_stage_mask, b.dst_access_mask)]);
    }
    for b in info.images().iter() {
        check_new(images, [(b.src_stage_mask, b.src_access_mask), (b.dst_stage_mask, b.dst_access_mask)]);
    }
}

/// The barriers of a `VkDependencyInfo`.
fn barriers_of<'a>(info: In<'a, vk::DependencyInfo<'a>>) -> impl Iterator<Item = (Scopes, BarrierMemory)> {
    macro_rules! scopes {
        ($of:expr) => {
            Scopes { src: ($of.src_stage_mask, $of.src_access_mask), dst: ($of.dst_stage_mask, $of.dst_access_mask) }
        };
    }
    let memory = info.memory().get().iter().map(|b| (scopes!(b), BarrierMemory::All));
    let buffers = info.buffers().get().iter().map(|b| (scopes!(b), buffer_memory!(b)));
    let images = info.images().get().iter().map(|i| (scopes!(i), image_memory!(i)));
    memory.chain(buffers).chain(images)
}

/// Passes the barriers of a `VkDependencyInfo` to `record`.
pub(super) fn with_dependency(
    info: In<'_, vk::DependencyInfo<'_>>,
    record: impl FnOnce(&[driver::Barrier2<'_>]) -> Result<(), Error>,
) -> Result<(), Error> {
    with_barriers(barriers_of(info), record)
}

/// Passes the barriers of several `VkDependencyInfo` to `record`, in a list for each.
pub(super) fn with_dependencies<'a>(
    infos: impl Iterator<Item = In<'a, vk::DependencyInfo<'a>>>,
    record: impl FnOnce(&[Vec<driver::Barrier2<'_>>]) -> Result<(), Error>,
) -> Result<(), Error> {
    let found = host_memory::try_collect(infos.map(|info| find(barriers_of(info))))?;
    let lists = found.iter().map(|of| host_memory::collect(of.iter().map(|(scopes, found)| found.barrier(*scopes))));
    record(&host_memory::try_collect(lists)?)
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn barrier(
    commands: Ref<CommandBuffer>,
    src: PipelineStageFlags,
    dst: PipelineStageFlags,
    _: vk::DependencyFlags,
    memory_count: u32,
    memory: Many<'_, vk::MemoryBarrier<'_>>,
    buffer_count: u32,
    buffers: Many<'_, vk::BufferMemoryBarrier<'_>>,
    image_count: u32,
    images: Many<'_, vk::ImageMemoryBarrier<'_>>,
) -> Result<(), Error> {
    let old = Old::of([src, dst], (memory_count, memory), (buffer_count, buffers), (image_count, images));
    old.check([OLD_MEMORY, OLD_BUFFER, OLD_IMAGE]);
    commands.add(|into| old.with_barriers(|barriers| Ok(into.pipeline_barrier2(barriers)?)))
}

fn barrier2(commands: Ref<CommandBuffer>, info: In<'_, vk::DependencyInfo<'_>>) -> Result<(), Error> {
    check_dependency(info, BARRIER2);
    commands.add(|into| with_dependency(info, |barriers| Ok(into.pipeline_barrier2(barriers)?)))
}
