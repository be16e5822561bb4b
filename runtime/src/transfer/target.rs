//! The target of a host write: bytes of a buffer or a level of an image, and the layout of the latter.

use std::ops::Range;

use ash::vk;

use crate::error::Error;
use crate::image::Image;
use crate::object::ResourceObject;

/// The part of a resource that bytes are written to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'a> {
    /// Bytes of a buffer, from this offset on.
    Bytes(u64),
    /// The texels of one level (the first number) of one layer (the second).
    Level(&'a Image, u32, u32),
}

impl Target<'_> {
    /// The bytes of the buffer, or the number of the subresource.
    pub(super) fn range(&self, len: u64) -> Range<u64> {
        match self {
            Self::Bytes(offset) => *offset..*offset + len,
            Self::Level(image, level, layer) => {
                let number = u64::from(*layer) * u64::from(image.info().levels) + u64::from(*level);
                number..number + 1
            }
        }
    }

    pub(super) fn write(&self, object: &ResourceObject, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Bytes(offset) => object.storage().write(*offset, bytes),
            Self::Level(_, level, layer) => write_level(object, (*level, *layer), bytes),
        }
    }
}

pub(super) fn layers(level: u32, layer: u32) -> vk::ImageSubresourceLayers {
    let aspect_mask = vk::ImageAspectFlags::COLOR;
    vk::ImageSubresourceLayers { aspect_mask, mip_level: level, base_array_layer: layer, layer_count: 1 }
}

pub(super) fn extent(image: &Image, level: u32) -> vk::Extent3D {
    let [width, height, depth] = image.level_size(level);
    vk::Extent3D { width, height, depth }
}

pub(super) fn region(image: &Image, level: u32, layer: u32) -> vk::BufferImageCopy {
    let (image_subresource, image_extent) = (layers(level, layer), extent(image, level));
    vk::BufferImageCopy { image_subresource, image_extent, ..Default::default() }
}

/// Writes all texels of a level of a layer in place. `texels` has the size of the level.
fn write_level(object: &ResourceObject, at: (u32, u32), texels: &[u8]) -> Result<(), Error> {
    let rows = Rows::of(object, at)?;
    let mut texels = texels.chunks_exact(rows.bytes);
    rows.offsets().zip(&mut texels).try_for_each(|(offset, row)| object.storage().write(offset, row))
}

/// Reads all texels of a level of a layer. `texels` has the size of the level.
pub(super) fn read_level(object: &ResourceObject, at: (u32, u32), texels: &mut [u8]) -> Result<(), Error> {
    let rows = Rows::of(object, at)?;
    let mut texels = texels.chunks_exact_mut(rows.bytes);
    rows.offsets().zip(&mut texels).try_for_each(|(offset, row)| object.storage().read(offset, row))
}

/// The layout of the rows of texels of a level of a layer in the storage of an image.
struct Rows {
    /// Bytes of a row.
    bytes: usize,
    layout: vk::SubresourceLayout,
    height: u64,
    depth: u64,
}

impl Rows {
    fn of(object: &ResourceObject, (level, layer): (u32, u32)) -> Result<Self, Error> {
        let image = object.image()?;
        let vk::Extent3D { width, height, depth } = image.info().extent;
        let [width, height, depth] =
            [width, height, depth].map(|size| u64::from(size.checked_shr(level).unwrap_or(0).max(1)));
        let bytes = (width * image.texel_bytes()) as usize;
        Ok(Self { bytes, layout: image.subresource_layout(level, layer), height, depth })
    }

    /// The offset of each row, slice by slice.
    fn offsets(&self) -> impl Iterator<Item = u64> {
        let vk::SubresourceLayout { offset, row_pitch, depth_pitch, .. } = self.layout;
        let slices = (0..self.depth).map(move |slice| offset + slice * depth_pitch);
        slices.flat_map(move |start| (0..self.height).map(move |row| start + row * row_pitch))
    }
}
