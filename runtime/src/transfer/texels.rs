//! Copies between buffers and images: the texels of a level of a layer, packed row by row as in `read_image`.

use ash::vk;
use spelter_driver::ImageInfo;

use super::target::{check_inside, level_bytes, region};
use crate::barrier::Use;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::error::Error;
use crate::ids::{Access, CommandKind};
use crate::image::Image;
use crate::view::Subresources;

/// Which way texels go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToImage,
    ToBuffer,
}

impl Direction {
    /// The accesses to the buffer and to the image.
    pub(crate) fn accesses(self) -> [Access; 2] {
        match self {
            Self::ToImage => [Access::Read, Access::Write],
            Self::ToBuffer => [Access::Write, Access::Read],
        }
    }

    /// Records the copy.
    pub(crate) fn record(
        self,
        commands: &spelter_driver::CommandBuffer,
        (buffer, image): (&spelter_driver::Buffer, &spelter_driver::Image),
        region: vk::BufferImageCopy,
    ) -> Result<(), spelter_driver::Error> {
        match self {
            Self::ToImage => commands.copy_buffer_to_image(buffer, image, &[region]),
            Self::ToBuffer => commands.copy_image_to_buffer(image, buffer, &[region]),
        }
    }
}

impl Context {
    /// Records a copy from a buffer, from byte `start` on, to one level of one layer of an image, `(image, level,
    /// layer)`. The texels are packed, row by row and slice by slice, as [`Context::write_image`] takes them.
    ///
    /// [`Error::Range`] if level or layer do not exist or the bytes are not in the buffer; [`Error::Resource`] if one
    /// of the resources is destroyed, mapped or of another device; [`Error::Misuse`] if `start` is not a multiple of
    /// the bytes of a texel (VUID-vkCmdCopyBufferToImage-dstImage-07975).
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let texels = context.buffer_from(&[0u32, 7, 8])?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).build()?;
    /// context.copy_buffer_to_image(&texels, 4, (&image, 0, 0))?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 0)?, [7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_buffer_to_image(&self, from: &Buffer, start: u64, to: (&Image, u32, u32)) -> Result<(), Error> {
        self.copy_texels(Direction::ToImage, (from, start), to)
    }

    /// Records a copy of one level of one layer, `(image, level, layer)`, to a buffer, from byte `offset` on: the
    /// texels as [`Context::read_image`] returns them. Errors are those of [`Context::copy_buffer_to_image`].
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).build()?;
    /// context.write_image(&image, 0, 0, &[7u32, 8])?;
    /// let texels = context.buffer_zeroed(12)?;
    /// context.copy_image_to_buffer((&image, 0, 0), &texels, 4)?;
    /// assert_eq!(context.read::<u32>(&texels)?, [0, 7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image_to_buffer(&self, from: (&Image, u32, u32), to: &Buffer, offset: u64) -> Result<(), Error> {
        self.copy_texels(Direction::ToBuffer, (to, offset), from)
    }

    fn copy_texels(
        &self,
        direction: Direction,
        (buffer, offset): (&Buffer, u64),
        (image, level, layer): (&Image, u32, u32),
    ) -> Result<(), Error> {
        let (part, _) = self.check_copy_texels((buffer, offset), (image, level, layer))?;
        self.inner().record(|state| {
            let (bytes, texels) = (buffer.resource(), image.resource());
            let objects = (bytes.object_for_command("copy")?, texels.object_for_command("copy")?);
            let range = offset..offset.saturating_add(level_bytes(&objects.1, (level, layer))?);
            check_inside("copy", bytes, &objects.0, &range)?;
            let (from_or_to, image) = (objects.0.buffer()?, objects.1.image()?);
            let info = image.info();
            let [on_buffer, on_image] = direction.accesses();
            let numbers = part.ranges(info.levels).into_iter().next().unwrap_or_default();
            let uses = [Use::of(bytes, &objects.0, range, on_buffer), Use::of(texels, &objects.1, numbers, on_image)];
            let region = packed(info, offset, (level, layer));
            state.transfer(CommandKind::Copy, &uses, |commands| direction.record(commands, (from_or_to, image), region))
        })
    }

    /// Checks a copy between a buffer and a level of a layer. Returns the part of the image, and the bytes.
    pub(crate) fn check_copy_texels(
        &self,
        (buffer, offset): (&Buffer, u64),
        (image, level, layer): (&Image, u32, u32),
    ) -> Result<(Subresources, u64), Error> {
        let (part, bytes) = self.check_level("copy", image, level, layer)?;
        self.check_range("copy", buffer, &(offset..offset.saturating_add(bytes)))?;
        Ok((part, bytes))
    }
}

/// The region of a copy of packed texels.
pub(crate) fn packed(info: &ImageInfo, offset: u64, (level, layer): (u32, u32)) -> vk::BufferImageCopy {
    vk::BufferImageCopy { buffer_offset: offset, ..region(info, level, layer) }
}
