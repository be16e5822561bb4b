//! Rules of copies by the host.

use spelter_driver::vk::{self, ImageUsageFlags};
use spelter_driver::{Error, HostRegion, Image, ImageInfo};

use super::images::{bound, plain};
use super::{Rule, World};

/// An image with HOST_TRANSFER usage.
fn info() -> ImageInfo {
    ImageInfo { usage: ImageUsageFlags::HOST_TRANSFER_EXT, ..plain() }
}

fn good(world: &World) -> Image {
    bound(&world.device, &info())
}

fn layers() -> vk::ImageSubresourceLayers {
    let aspect_mask = vk::ImageAspectFlags::COLOR;
    vk::ImageSubresourceLayers { aspect_mask, mip_level: 0, base_array_layer: 0, layer_count: 1 }
}

const TEXEL: vk::Extent3D = vk::Extent3D { width: 1, height: 1, depth: 1 };

fn region(change: fn(&mut HostRegion)) -> HostRegion {
    let mut region = HostRegion { subresource: layers(), extent: TEXEL, ..Default::default() };
    change(&mut region);
    region
}

fn up(world: &World, image: &Image, change: fn(&mut HostRegion)) -> Result<(), Error> {
    image.rows_from_host(&world.device, &region(change)).map(|_| ())
}

fn down(world: &World, image: &Image, change: fn(&mut HostRegion)) -> Result<(), Error> {
    image.rows_to_host(&world.device, &region(change)).map(|_| ())
}

fn copy(world: &World, change: fn(&mut vk::ImageCopy)) -> Result<(), Error> {
    let mut region = vk::ImageCopy {
        src_subresource: layers(),
        src_offset: vk::Offset3D::default(),
        dst_subresource: layers(),
        dst_offset: vk::Offset3D::default(),
        extent: TEXEL,
    };
    change(&mut region);
    good(world).copy_on_host(&world.device, &good(world), &[region])
}

fn between(world: &World, from: &Image, to: &Image) -> Result<(), Error> {
    from.copy_on_host(&world.device, to, &[])
}

fn unbound(world: &World) -> Image {
    world.device.create_image(&info()).unwrap()
}

fn foreign(world: &World) -> Image {
    bound(&world.other, &info())
}

fn useless(world: &World) -> Image {
    bound(&world.device, &plain())
}

pub(crate) const RULES: &[Rule] = &[
    ("VUID-VkCopyMemoryToImageInfo-dstImage-09113", |w| up(w, &useless(w), |_| ())),
    ("VUID-VkCopyMemoryToImageInfo-dstImage-07966", |w| up(w, &unbound(w), |_| ())),
    ("VUID-VkCopyMemoryToImageInfo-dstImage-parameter", |w| up(w, &foreign(w), |_| ())),
    ("VUID-VkCopyMemoryToImageInfo-imageSubresource-07967", |w| up(w, &good(w), |r| r.subresource.mip_level = 2)),
    ("VUID-VkCopyMemoryToImageInfo-imageSubresource-07968", |w| up(w, &good(w), |r| r.subresource.layer_count = 0)),
    ("VUID-VkCopyMemoryToImageInfo-imageSubresource-07971", |w| up(w, &good(w), |r| r.extent.width = 9)),
    ("VUID-VkCopyMemoryToImageInfo-imageSubresource-07972", |w| up(w, &good(w), |r| r.offset.y = -1)),
    ("VUID-VkCopyMemoryToImageInfo-imageOffset-09104", |w| up(w, &good(w), |r| r.offset.z = 1)),
    ("VUID-VkMemoryToImageCopy-memoryRowLength-09101", |w| {
        up(w, &good(w), |r| (r.extent.width, r.row_length) = (2, 1))
    }),
    ("VUID-VkMemoryToImageCopy-memoryImageHeight-09102", |w| {
        up(w, &good(w), |r| (r.extent.height, r.image_height) = (2, 1))
    }),
    ("VUID-VkCopyImageToMemoryInfo-srcImage-09113", |w| down(w, &useless(w), |_| ())),
    ("VUID-VkCopyImageToMemoryInfo-srcImage-07966", |w| down(w, &unbound(w), |_| ())),
    ("VUID-VkCopyImageToMemoryInfo-srcImage-parameter", |w| down(w, &foreign(w), |_| ())),
    ("VUID-VkCopyImageToMemoryInfo-imageSubresource-07967", |w| down(w, &good(w), |r| r.subresource.mip_level = 2)),
    ("VUID-VkCopyImageToMemoryInfo-imageSubresource-07968", |w| down(w, &good(w), |r| r.subresource.layer_count = 0)),
    ("VUID-VkCopyImageToMemoryInfo-imageSubresource-07971", |w| down(w, &good(w), |r| r.extent.width = 9)),
    ("VUID-VkCopyImageToMemoryInfo-imageSubresource-07972", |w| down(w, &good(w), |r| r.offset.y = -1)),
    ("VUID-VkCopyImageToMemoryInfo-imageOffset-09104", |w| down(w, &good(w), |r| r.offset.z = 1)),
    ("VUID-VkImageToMemoryCopy-memoryRowLength-09101", |w| {
        down(w, &good(w), |r| (r.extent.width, r.row_length) = (2, 1))
    }),
    ("VUID-VkImageToMemoryCopy-memoryImageHeight-09102", |w| {
        down(w, &good(w), |r| (r.extent.height, r.image_height) = (2, 1))
    }),
    ("VUID-VkCopyImageToImageInfo-srcImage-09113", |w| between(w, &useless(w), &good(w))),
    ("VUID-VkCopyImageToImageInfo-srcImage-07966", |w| between(w, &unbound(w), &good(w))),
    ("VUID-VkCopyImageToImageInfo-srcImage-parameter", |w| between(w, &foreign(w), &good(w))),
    ("VUID-VkCopyImageToImageInfo-srcSubresource-07967", |w| copy(w, |r| r.src_subresource.mip_level = 2)),
    ("VUID-VkCopyImageToImageInfo-srcSubresource-07968", |w| copy(w, |r| r.src_subresource.base_array_layer = 7)),
    ("VUID-VkCopyImageToImageInfo-srcSubresource-07971", |w| copy(w, |r| r.src_offset.x = -1)),
    ("VUID-VkCopyImageToImageInfo-srcSubresource-07972", |w| copy(w, |r| r.src_offset.y = 8)),
    ("VUID-VkCopyImageToImageInfo-srcOffset-09104", |w| copy(w, |r| r.src_offset.z = 1)),
    ("VUID-VkCopyImageToImageInfo-dstImage-09113", |w| between(w, &good(w), &useless(w))),
    ("VUID-VkCopyImageToImageInfo-dstImage-07966", |w| between(w, &good(w), &unbound(w))),
    ("VUID-VkCopyImageToImageInfo-dstImage-parameter", |w| between(w, &good(w), &foreign(w))),
    ("VUID-VkCopyImageToImageInfo-dstSubresource-07967", |w| copy(w, |r| r.dst_subresource.mip_level = 2)),
    ("VUID-VkCopyImageToImageInfo-dstSubresource-07968", |w| copy(w, |r| r.dst_subresource.base_array_layer = 7)),
    ("VUID-VkCopyImageToImageInfo-dstSubresource-07971", |w| copy(w, |r| r.dst_offset.x = -1)),
    ("VUID-VkCopyImageToImageInfo-dstSubresource-07972", |w| copy(w, |r| r.dst_offset.y = 8)),
    ("VUID-VkCopyImageToImageInfo-dstOffset-09104", |w| copy(w, |r| r.dst_offset.z = 1)),
    ("VUID-VkCopyImageToImageInfo-srcImage-09069", |w| {
        let other = ImageInfo { layers: 1, ..info() };
        between(w, &good(w), &bound(&w.device, &other))
    }),
    ("VUID-VkImageCopy2-apiVersion-07941", |w| copy(w, |r| r.src_subresource.layer_count = 2)),
];
