//! Rules of commands on images.

use spelter_driver::vk::{self, AccessFlags, ImageLayout, ImageUsageFlags, PipelineStageFlags};
use spelter_driver::{ClearColor, Error, Image, ImageInfo, ImageMemoryBarrier};

use super::images::{bound, plain};
use super::{Rule, World};

const STAGES: PipelineStageFlags = PipelineStageFlags::COMPUTE_SHADER;

fn barrier(world: &World, change: impl FnOnce(&mut ImageMemoryBarrier<'_>)) -> Result<(), Error> {
    barrier_of(world, &bound(&world.device, &plain()), change)
}

fn barrier_of(world: &World, image: &Image, change: impl FnOnce(&mut ImageMemoryBarrier<'_>)) -> Result<(), Error> {
    let mut barrier = ImageMemoryBarrier {
        src_access: AccessFlags::SHADER_WRITE,
        dst_access: AccessFlags::SHADER_READ,
        old_layout: ImageLayout::UNDEFINED,
        new_layout: ImageLayout::GENERAL,
        image,
        range: all(),
    };
    change(&mut barrier);
    world.command.pipeline_barrier_with_images(STAGES, STAGES, &[], &[], &[barrier])
}

fn all() -> vk::ImageSubresourceRange {
    let (levels, layers) = (vk::REMAINING_MIP_LEVELS, vk::REMAINING_ARRAY_LAYERS);
    vk::ImageSubresourceRange {
        aspect_mask: vk::ImageAspectFlags::COLOR,
        base_mip_level: 0,
        level_count: levels,
        base_array_layer: 0,
        layer_count: layers,
    }
}

fn clear(world: &World, change: impl FnOnce(&mut vk::ImageSubresourceRange)) -> Result<(), Error> {
    let mut range = all();
    change(&mut range);
    world.command.clear_color_image(&bound(&world.device, &plain()), ClearColor::Uint([0; 4]), &[range])
}

fn clear_image(world: &World, image: &Image) -> Result<(), Error> {
    world.command.clear_color_image(image, ClearColor::Uint([0; 4]), &[all()])
}

/// An image with this usage.
fn with(world: &World, usage: ImageUsageFlags) -> Image {
    bound(&world.device, &ImageInfo { usage, ..plain() })
}

fn unbound(world: &World) -> Image {
    world.device.create_image(&plain()).unwrap()
}

fn layers(level: u32, base: u32, count: u32) -> vk::ImageSubresourceLayers {
    let aspect_mask = vk::ImageAspectFlags::COLOR;
    vk::ImageSubresourceLayers { aspect_mask, mip_level: level, base_array_layer: base, layer_count: count }
}

fn texels(width: u32, height: u32, depth: u32) -> vk::Extent3D {
    vk::Extent3D { width, height, depth }
}

/// One texel.
fn texel() -> vk::BufferImageCopy {
    vk::BufferImageCopy { image_subresource: layers(0, 0, 1), image_extent: texels(1, 1, 1), ..Default::default() }
}

fn upload(world: &World, change: impl FnOnce(&mut vk::BufferImageCopy)) -> Result<(), Error> {
    let mut region = texel();
    change(&mut region);
    world.command.copy_buffer_to_image(&world.words.buffer, &bound(&world.device, &plain()), &[region])
}

fn upload_to(world: &World, image: &Image) -> Result<(), Error> {
    world.command.copy_buffer_to_image(&world.words.buffer, image, &[texel()])
}

fn download(world: &World, change: impl FnOnce(&mut vk::BufferImageCopy)) -> Result<(), Error> {
    let mut region = texel();
    change(&mut region);
    world.command.copy_image_to_buffer(&bound(&world.device, &plain()), &world.words.buffer, &[region])
}

fn download_from(world: &World, image: &Image) -> Result<(), Error> {
    world.command.copy_image_to_buffer(image, &world.words.buffer, &[texel()])
}

fn copy(world: &World, change: impl FnOnce(&mut vk::ImageCopy)) -> Result<(), Error> {
    let mut region = one();
    change(&mut region);
    let image = || bound(&world.device, &plain());
    world.command.copy_image(&image(), &image(), &[region])
}

fn one() -> vk::ImageCopy {
    let (src_subresource, dst_subresource) = (layers(0, 0, 1), layers(0, 0, 1));
    vk::ImageCopy { src_subresource, dst_subresource, extent: texels(1, 1, 1), ..Default::default() }
}

fn copy_between(world: &World, from: &Image, to: &Image) -> Result<(), Error> {
    world.command.copy_image(from, to, &[one()])
}

/// A copy of texels onto themselves, from layer 0 to this one.
fn copy_within(world: &World, layer: u32) -> Result<(), Error> {
    let image = good(world);
    let mut region = one();
    region.dst_subresource.base_array_layer = layer;
    world.command.copy_image(&image, &image, &[region])
}

/// A buffer and an image in the same memory.
fn aliases(world: &World) -> (spelter_driver::Buffer, Image) {
    let (buffer, image) = (world.device.create_buffer(64, crate::common::ANY_USE).unwrap(), unbound(world));
    let memory = world.device.allocate_memory(image.requirements().size, 0).unwrap();
    buffer.bind_memory(&memory, 0).unwrap();
    image.bind_memory(&memory, 0).unwrap();
    (buffer, image)
}

fn good(world: &World) -> Image {
    bound(&world.device, &plain())
}

fn buffer(world: &World, usage: vk::BufferUsageFlags) -> spelter_driver::Buffer {
    let buffer = world.device.create_buffer(64, usage).unwrap();
    let memory = world.device.allocate_memory(64, 0).unwrap();
    buffer.bind_memory(&memory, 0).unwrap();
    buffer
}

pub(super) const RULES: &[Rule] = &[
    ("VUID-VkImageMemoryBarrier-image-parameter", |w| barrier_of(w, &bound(&w.other, &plain()), |_| {})),
    ("VUID-VkImageMemoryBarrier-image-01932", |w| barrier_of(w, &unbound(w), |_| {})),
    ("VUID-VkImageMemoryBarrier-newLayout-01198", |w| barrier(w, |b| b.new_layout = ImageLayout::PREINITIALIZED)),
    ("VUID-VkImageMemoryBarrier-subresourceRange-01486", |w| barrier(w, |b| b.range.base_mip_level = 2)),
    ("VUID-VkImageMemoryBarrier-subresourceRange-01724", |w| barrier(w, |b| b.range.level_count = 3)),
    ("VUID-VkImageMemoryBarrier-subresourceRange-01488", |w| barrier(w, |b| b.range.base_array_layer = 7)),
    ("VUID-VkImageMemoryBarrier-subresourceRange-01725", |w| barrier(w, |b| b.range.layer_count = 8)),
    ("VUID-vkCmdPipelineBarrier-pImageMemoryBarriers-02819", |w| {
        barrier(w, |b| b.src_access = AccessFlags::TRANSFER_READ)
    }),
    ("VUID-vkCmdPipelineBarrier-pImageMemoryBarriers-02820", |w| {
        barrier(w, |b| b.dst_access = AccessFlags::TRANSFER_READ)
    }),
    ("VUID-vkCmdClearColorImage-commandBuffer-recording", |w| {
        w.idle.clear_color_image(&good(w), ClearColor::Uint([0; 4]), &[all()])
    }),
    ("VUID-vkCmdClearColorImage-commonparent", |w| clear_image(w, &bound(&w.other, &plain()))),
    ("VUID-vkCmdClearColorImage-image-00002", |w| clear_image(w, &with(w, ImageUsageFlags::SAMPLED))),
    ("VUID-vkCmdClearColorImage-image-00003", |w| clear_image(w, &unbound(w))),
    ("VUID-vkCmdClearColorImage-image-00007", |w| {
        let (usage, format) = (ImageUsageFlags::TRANSFER_DST, vk::Format::D32_SFLOAT);
        clear_image(w, &bound(&w.device, &ImageInfo { usage, format, ..plain() }))
    }),
    ("VUID-vkCmdClearColorImage-rangeCount-arraylength", |w| {
        w.command.clear_color_image(&good(w), ClearColor::Uint([0; 4]), &[])
    }),
    ("VUID-vkCmdClearColorImage-baseMipLevel-01470", |w| clear(w, |r| r.base_mip_level = 2)),
    ("VUID-vkCmdClearColorImage-pRanges-01692", |w| clear(w, |r| r.level_count = 3)),
    ("VUID-vkCmdClearColorImage-baseArrayLayer-01472", |w| clear(w, |r| r.base_array_layer = 7)),
    ("VUID-vkCmdClearColorImage-pRanges-01693", |w| clear(w, |r| r.layer_count = 8)),
    ("VUID-vkCmdCopyBufferToImage-commandBuffer-recording", |w| {
        w.idle.copy_buffer_to_image(&w.words.buffer, &good(w), &[texel()])
    }),
    ("VUID-vkCmdCopyBufferToImage-regionCount-arraylength", |w| {
        w.command.copy_buffer_to_image(&w.words.buffer, &good(w), &[])
    }),
    ("VUID-vkCmdCopyBufferToImage-commonparent", |w| upload_to(w, &bound(&w.other, &plain()))),
    ("VUID-vkCmdCopyBufferToImage-srcBuffer-00174", |w| {
        let from = buffer(w, vk::BufferUsageFlags::STORAGE_BUFFER);
        w.command.copy_buffer_to_image(&from, &good(w), &[texel()])
    }),
    ("VUID-vkCmdCopyBufferToImage-srcBuffer-00176", |w| {
        w.command.copy_buffer_to_image(&w.unbound, &good(w), &[texel()])
    }),
    ("VUID-vkCmdCopyBufferToImage-dstImage-00177", |w| upload_to(w, &with(w, ImageUsageFlags::SAMPLED))),
    ("VUID-vkCmdCopyBufferToImage-dstImage-07966", |w| upload_to(w, &unbound(w))),
    ("VUID-vkCmdCopyBufferToImage-imageSubresource-07967", |w| upload(w, |r| r.image_subresource.mip_level = 2)),
    ("VUID-vkCmdCopyBufferToImage-imageSubresource-07968", |w| upload(w, |r| r.image_subresource.layer_count = 8)),
    ("VUID-vkCmdCopyBufferToImage-imageSubresource-07971", |w| upload(w, |r| r.image_offset.x = -1)),
    ("VUID-vkCmdCopyBufferToImage-imageSubresource-07972", |w| upload(w, |r| r.image_offset.y = 8)),
    ("VUID-vkCmdCopyBufferToImage-imageOffset-09104", |w| upload(w, |r| r.image_extent.depth = 2)),
    ("VUID-vkCmdCopyBufferToImage-dstImage-07975", |w| upload(w, |r| r.buffer_offset = 2)),
    ("VUID-vkCmdCopyBufferToImage-pRegions-00171", |w| upload(w, |r| r.buffer_offset = 256)),
    ("VUID-vkCmdCopyBufferToImage-pRegions-00173", |w| {
        let (buffer, image) = aliases(w);
        w.command.copy_buffer_to_image(&buffer, &image, &[texel()])
    }),
    ("VUID-vkCmdCopyImageToBuffer-pRegions-00184", |w| {
        let (buffer, image) = aliases(w);
        w.command.copy_image_to_buffer(&image, &buffer, &[texel()])
    }),
    ("VUID-vkCmdCopyImage-pRegions-00124", |w| copy_within(w, 0)),
    ("VUID-VkBufferImageCopy-bufferRowLength-09101", |w| {
        upload(w, |r| (r.image_extent.width, r.buffer_row_length) = (4, 3))
    }),
    ("VUID-VkBufferImageCopy-bufferImageHeight-09102", |w| {
        upload(w, |r| (r.image_extent.height, r.buffer_image_height) = (4, 3))
    }),
    ("VUID-vkCmdCopyImageToBuffer-commandBuffer-recording", |w| {
        w.idle.copy_image_to_buffer(&good(w), &w.words.buffer, &[texel()])
    }),
    ("VUID-vkCmdCopyImageToBuffer-regionCount-arraylength", |w| {
        w.command.copy_image_to_buffer(&good(w), &w.words.buffer, &[])
    }),
    ("VUID-vkCmdCopyImageToBuffer-commonparent", |w| download_from(w, &bound(&w.other, &plain()))),
    ("VUID-vkCmdCopyImageToBuffer-srcImage-00186", |w| download_from(w, &with(w, ImageUsageFlags::SAMPLED))),
    ("VUID-vkCmdCopyImageToBuffer-srcImage-07966", |w| download_from(w, &unbound(w))),
    ("VUID-vkCmdCopyImageToBuffer-dstBuffer-00191", |w| {
        let to = buffer(w, vk::BufferUsageFlags::STORAGE_BUFFER);
        w.command.copy_image_to_buffer(&good(w), &to, &[texel()])
    }),
    ("VUID-vkCmdCopyImageToBuffer-dstBuffer-00192", |w| {
        w.command.copy_image_to_buffer(&good(w), &w.unbound, &[texel()])
    }),
    ("VUID-vkCmdCopyImageToBuffer-imageSubresource-07967", |w| download(w, |r| r.image_subresource.mip_level = 2)),
    ("VUID-vkCmdCopyImageToBuffer-imageSubresource-07968", |w| download(w, |r| r.image_subresource.layer_count = 0)),
    ("VUID-vkCmdCopyImageToBuffer-imageSubresource-07971", |w| download(w, |r| r.image_extent.width = 9)),
    ("VUID-vkCmdCopyImageToBuffer-imageSubresource-07972", |w| download(w, |r| r.image_offset.y = -1)),
    ("VUID-vkCmdCopyImageToBuffer-imageOffset-09104", |w| download(w, |r| r.image_offset.z = 1)),
    ("VUID-vkCmdCopyImageToBuffer-srcImage-07975", |w| download(w, |r| r.buffer_offset = 2)),
    ("VUID-vkCmdCopyImageToBuffer-pRegions-00183", |w| download(w, |r| r.buffer_offset = 256)),
    ("VUID-vkCmdCopyImage-commandBuffer-recording", |w| w.idle.copy_image(&good(w), &good(w), &[one()])),
    ("VUID-vkCmdCopyImage-regionCount-arraylength", |w| w.command.copy_image(&good(w), &good(w), &[])),
    ("VUID-vkCmdCopyImage-commonparent", |w| copy_between(w, &bound(&w.other, &plain()), &good(w))),
    ("VUID-vkCmdCopyImage-aspect-06662", |w| copy_between(w, &with(w, ImageUsageFlags::SAMPLED), &good(w))),
    ("VUID-vkCmdCopyImage-aspect-06663", |w| copy_between(w, &good(w), &with(w, ImageUsageFlags::SAMPLED))),
    ("VUID-vkCmdCopyImage-srcImage-07966", |w| copy_between(w, &unbound(w), &good(w))),
    ("VUID-vkCmdCopyImage-dstImage-07966", |w| copy_between(w, &good(w), &unbound(w))),
    ("VUID-vkCmdCopyImage-srcImage-01548", |w| {
        copy_between(w, &good(w), &bound(&w.device, &ImageInfo { format: vk::Format::R16_UINT, ..plain() }))
    }),
    ("VUID-vkCmdCopyImage-srcImage-08793", |w| copy(w, |r| r.src_subresource.layer_count = 2)),
    ("VUID-vkCmdCopyImage-srcSubresource-07967", |w| copy(w, |r| r.src_subresource.mip_level = 2)),
    ("VUID-vkCmdCopyImage-srcSubresource-07968", |w| copy(w, |r| r.src_subresource.base_array_layer = 7)),
    ("VUID-vkCmdCopyImage-srcOffset-00144", |w| copy(w, |r| r.src_offset.x = -1)),
    ("VUID-vkCmdCopyImage-srcOffset-00145", |w| copy(w, |r| r.src_offset.y = 8)),
    ("VUID-vkCmdCopyImage-srcOffset-00147", |w| copy(w, |r| r.src_offset.z = 1)),
    ("VUID-vkCmdCopyImage-dstSubresource-07967", |w| copy(w, |r| r.dst_subresource.mip_level = 2)),
    ("VUID-vkCmdCopyImage-dstSubresource-07968", |w| copy(w, |r| r.dst_subresource.layer_count = 8)),
    ("VUID-vkCmdCopyImage-dstOffset-00150", |w| copy(w, |r| r.dst_offset.x = 8)),
    ("VUID-vkCmdCopyImage-dstOffset-00151", |w| copy(w, |r| r.dst_offset.y = -1)),
    ("VUID-vkCmdCopyImage-dstOffset-00153", |w| copy(w, |r| r.dst_offset.z = 1)),
];

#[test]
fn parts_of_one_image_are_copied_to_others() {
    let world = World::new();
    assert!(copy_within(&world, 1).is_ok());
    // Between rows of one image only rows count: columns of the same rows.
    let image = good(&world);
    let columns =
        |to: i32| vk::ImageCopy { dst_offset: vk::Offset3D { x: to, y: 0, z: 0 }, extent: texels(4, 8, 1), ..one() };
    assert!(world.command.copy_image(&image, &image, &[columns(4)]).is_ok());
    assert!(world.command.copy_image(&image, &image, &[columns(3)]).is_err());
}
