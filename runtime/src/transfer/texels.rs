//! Copies between buffers and images, recorded in contexts; `texel_region.rs` says which texels.

use ash::vk;
use smallvec::SmallVec;

use super::target::check_inside;
use super::texel_region::TexelRegion;
use crate::barrier::Use;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::error::Error;
use crate::ids::{Access, CommandKind};
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
    /// Records a copy from a buffer, from byte `start` on, to texels of an image: one level of one layer, `(image,
    /// level, layer)`, or a part of it, or of several layers ([`Image::texels`](crate::Image::texels)). The texels are
    /// packed, row by row and slice by slice, as [`Context::write_image`] takes them, unless the region says otherwise
    /// ([`TexelRegion`]).
    ///
    /// [`Error::Range`] if level or layers do not exist, the box is not in the level, the rows or slices overlap in the
    /// buffer, or the bytes are not in the buffer; [`Error::Resource`] if one of the resources is destroyed, mapped or
    /// of another device; [`Error::Misuse`] if `start` is not a multiple of the bytes of a texel
    /// (VUID-vkCmdCopyBufferToImage-dstImage-07975).
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
    /// context.copy_buffer_to_image(&texels, 8, image.texels(0, 0).extent([1, 1, 1]))?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 0)?, [8, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_buffer_to_image<'a>(
        &self,
        from: &Buffer,
        start: u64,
        to: impl Into<TexelRegion<'a>>,
    ) -> Result<(), Error> {
        self.copy_texels(Direction::ToImage, (from, start), to.into())
    }

    /// Records a copy of texels of an image, one level of one layer, `(image, level, layer)`, or others
    /// ([`Image::texels`](crate::Image::texels)), to a buffer, from byte `offset` on: the texels as
    /// [`Context::read_image`] returns them, unless the region says otherwise. Errors are those of
    /// [`Context::copy_buffer_to_image`].
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
    pub fn copy_image_to_buffer<'a>(
        &self,
        from: impl Into<TexelRegion<'a>>,
        to: &Buffer,
        offset: u64,
    ) -> Result<(), Error> {
        self.copy_texels(Direction::ToBuffer, (to, offset), from.into())
    }

    fn copy_texels(
        &self,
        direction: Direction,
        (buffer, offset): (&Buffer, u64),
        region: TexelRegion<'_>,
    ) -> Result<(), Error> {
        let (part, _) = self.check_copy_texels((buffer, offset), region)?;
        let TexelRegion { image, area } = region;
        self.inner().record(|state| {
            let (bytes, texels) = (buffer.resource(), image.resource());
            let objects = (bytes.object_for_command("copy")?, texels.object_for_command("copy")?);
            let (from_or_to, image) = (objects.0.buffer()?, objects.1.image()?);
            let info = image.info();
            let (region, size) = area.placed("copy", || texels.described(), (info, image.texel_bytes()), offset)?;
            let range = offset..offset.saturating_add(size);
            check_inside("copy", bytes, &objects.0, &range)?;
            let [on_buffer, on_image] = direction.accesses();
            let numbers = part.ranges(info.levels).into_iter();
            let mut uses: SmallVec<[Use<'_>; 2]> =
                numbers.map(|numbers| Use::of(texels, &objects.1, numbers, on_image)).collect();
            uses.push(Use::of(bytes, &objects.0, range, on_buffer));
            state.transfer(CommandKind::Copy, &uses, |commands| direction.record(commands, (from_or_to, image), region))
        })
    }

    /// Checks a copy between a buffer and texels. Returns the part of the image, and the bytes.
    pub(crate) fn check_copy_texels(
        &self,
        (buffer, offset): (&Buffer, u64),
        TexelRegion { image, area }: TexelRegion<'_>,
    ) -> Result<(Subresources, u64), Error> {
        let (part, resource) = (area.part(image), image.resource());
        self.check_part("copy", image, &part)?;
        let texel = resource.object_for_command("copy")?.image()?.texel_bytes();
        let (_, bytes) = area.placed("copy", || resource.described(), (&image.info(), texel), offset)?;
        self.check_range("copy", buffer, &(offset..offset.saturating_add(bytes)))?;
        Ok((part, bytes))
    }
}
