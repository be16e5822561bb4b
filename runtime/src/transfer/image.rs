//! Transfers of texels: host to image, image to host, image to image, clears.

use std::sync::Arc;

use ash::vk;
use bytemuck::{AnyBitPattern, NoUninit};
use smallvec::SmallVec;
use spelter_driver::{ClearColor, ImageInfo};

use super::read::{values_of, whole};
use super::target::{Target, extent, layers, read_level};
use super::texel_type::check_texel_type;
use crate::barrier::Use;
use crate::context::Context;
use crate::error::{Error, rule};
use crate::ids::{Access, CommandKind};
use crate::image::{Image, ImagePart};
use crate::object::ResourceObject;
use crate::outcome::Outcome;
use crate::resource::Resource;
use crate::view::Subresources;

impl Context {
    /// Writes all texels of one level of one layer, tightly packed, in order with the commands that are recorded before
    /// and after. As with [`Context::write`], a level without defined data, or of an idle image, is written at once; if
    /// no other level holds data, the texels go to new storage; otherwise they are staged and copied in order. The call
    /// waits only if they are too large to stage or there is no memory for staging.
    ///
    /// [`Error::Range`] if the values do not have the size of the level, if there is no such level or layer, or if `T`
    /// cannot hold texels: it is not of the channels' numeric type, nor unsigned with the bits of a channel or texel.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.write_image(&image, 1, 0, &[7u32, 8])?; // level 1 is 2x1 texels
    /// assert_eq!(context.read_image::<u32>(&image, 1, 0)?, [7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_image<T: NoUninit>(
        &self,
        image: &Image,
        level: u32,
        layer: u32,
        texels: &[T],
    ) -> Result<Outcome, Error> {
        check_texel_type::<T>("write", image)?;
        let bytes: &[u8] = bytemuck::cast_slice(texels);
        let (_, wanted) = self.check_level("write", image, level, layer)?;
        if bytes.len() as u64 != wanted {
            let (given, of) = (bytes.len(), image.resource().described());
            return Err(Error::range(
                format!("write: {given} bytes for the {wanted} of level {level} of {of}"),
                rule::LEVEL,
            ));
        }
        self.inner().upload("write", image.resource(), Target::Level(image, level, layer), bytes, false)
    }

    /// Reads all texels of one level of one layer back, tightly packed, after all commands that write the image. Does
    /// not wait if the level holds no defined data. Errors are those of [`Context::write_image`].
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.clear_image(&image, spelter::ClearColor::Uint([5; 4]))?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 2)?, [5; 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_image<T: AnyBitPattern>(&self, image: &Image, level: u32, layer: u32) -> Result<Vec<T>, Error> {
        check_texel_type::<T>("read", image)?;
        loop {
            let (_, bytes) = self.check_level("read", image, level, layer)?;
            whole::<T>(image.resource(), bytes)?;
            let read = |object: &_| values_of(bytes, |at, piece| read_level(object, (level, layer), at, piece));
            if let Some(values) = self.read_texels(image, (level, layer), bytes, read)? {
                return Ok(values);
            }
        }
    }

    /// As [`Context::read_image`], into a slice, in one copy. [`Error::Range`] also if its size is not that of the
    /// level. After an error the slice is as it was.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R8G8B8A8_UNORM, [2, 1, 1]).build()?;
    /// context.clear_image(&image, spelter::ClearColor::Float([1.0, 0.0, 0.0, 1.0]))?;
    /// let mut pixels = [[0u8; 4]; 2]; // used again for each frame
    /// context.read_image_into(&image, 0, 0, &mut pixels)?;
    /// assert_eq!(pixels, [[255, 0, 0, 255]; 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_image_into<T: AnyBitPattern + NoUninit>(
        &self,
        image: &Image,
        level: u32,
        layer: u32,
        texels: &mut [T],
    ) -> Result<(), Error> {
        check_texel_type::<T>("read", image)?;
        let given = size_of_val(texels) as u64;
        loop {
            let (_, wanted) = self.check_level("read", image, level, layer)?;
            if given != wanted {
                let of = image.resource().described();
                let problem = format!("read: {given} bytes for the {wanted} of level {level} of {of}");
                return Err(Error::range(problem, rule::SLICE));
            }
            let read = |object: &_| read_level(object, (level, layer), 0, bytemuck::cast_slice_mut(texels));
            if self.read_texels(image, (level, layer), wanted, read)?.is_some() {
                return Ok(());
            }
        }
    }

    /// Gives `read` the object of an image after all commands that write this level of this layer; `None` if another
    /// thread has respecified the image with another size meanwhile.
    fn read_texels<R>(
        &self,
        image: &Image,
        (level, layer): (u32, u32),
        bytes: u64,
        read: impl FnOnce(&ResourceObject) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let target = Target::Level(image, level, layer);
        let (object, _reading) = self.inner().for_reading(image.resource(), &target.range(bytes))?;
        if target.check("read", image.resource(), &object, bytes).is_err() {
            return Ok(None);
        }
        self.share().memory().counters.bytes_read.add(bytes);
        read(&object).map(Some)
    }

    /// Records a copy of one level of one layer, `(image, level, layer)`, to a level of the same size.
    /// [`Error::Range`] if a level or layer does not exist, the sizes differ or both are the same subresource;
    /// [`Error::Misuse`] if the formats differ in texel size.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let image = context.image(vk::Format::R32_UINT, [4, 2, 1]).levels(2).layers(3).label("heights").build()?;
    /// context.write_image(&image, 1, 0, &[7u32, 8])?;
    /// context.copy_image((&image, 1, 0), (&image, 1, 2))?; // from layer 0 to layer 2
    /// assert_eq!(context.read_image::<u32>(&image, 1, 2)?, [7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image(&self, from: (&Image, u32, u32), to: (&Image, u32, u32)) -> Result<(), Error> {
        let (from, to) = (LevelOf::from(from), LevelOf::from(to));
        let (source, target) = self.check_copy_image(from, to)?;
        self.inner().record(|state| {
            let (read, write) =
                (from.of.resource().object_for_command("copy")?, to.of.resource().object_for_command("copy")?);
            let (a, b) = (read.image()?, write.image()?);
            let region = copy_region("copy", [from, to].map(LevelOf::resource), [a.info(), b.info()])?;
            let uses = used(&read, &source, from.of, Access::Read).chain(used(&write, &target, to.of, Access::Write));
            let uses = uses.collect::<SmallVec<[_; 2]>>();
            state.transfer(CommandKind::Copy, &uses, |commands| commands.copy_image(a, b, &[region]))
        })
    }

    /// Records a clear of levels and layers of an image to one colour. [`Error::Range`] if the colour's numeric type is
    /// not that of the image's format.
    ///
    /// ```
    /// use spelter::{ClearColor, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 2, 1]).levels(2).build()?;
    /// context.clear_image(&image, ClearColor::Uint([7, 0, 0, 0]))?;
    /// context.clear_image(image.level(1), ClearColor::Uint([8, 0, 0, 0]))?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 0)?, [7; 4]);
    /// assert_eq!(context.read_image::<u32>(&image, 1, 0)?, [8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn clear_image<'a>(&self, what: impl Into<ImagePart<'a>>, color: ClearColor) -> Result<(), Error> {
        let ImagePart { image, part } = what.into();
        self.check_part("clear", image, &part)?;
        self.inner().record(|state| {
            let object = image.resource().object_for_command("clear")?;
            let target = object.image()?;
            check_color(image, target, color)?;
            let uses = used(&object, &part, image, Access::Write).collect::<SmallVec<[_; 2]>>();
            state.transfer(CommandKind::Clear, &uses, |commands| {
                commands.clear_color_image(target, color, &[part.range()])
            })
        })
    }

    /// The two subresources of a copy, checked.
    pub(crate) fn check_copy_image(
        &self,
        from: LevelOf<&Image>,
        to: LevelOf<&Image>,
    ) -> Result<(Subresources, Subresources), Error> {
        let part = |LevelOf { of, level, layer }| self.check_level("copy", of, level, layer).map(|(part, _)| part);
        let parts = (part(from)?, part(to)?);
        let infos = [&from.of.info(), &to.of.info()];
        let _ = copy_region("copy", [from, to].map(LevelOf::resource), infos)?; // checks the sizes
        Ok(parts)
    }

    /// Checks that the image is of this device and has these levels and layers, at least one of each.
    pub(crate) fn check_part(&self, what: &str, image: &Image, part: &Subresources) -> Result<(), Error> {
        let (resource, info) = (image.resource(), image.info());
        self.check_device(what, resource)?;
        let of = resource.described();
        part.check(&info).map_err(|problem| Error::range(format!("{what}: {problem} of {of}"), rule::INSIDE))
    }

    /// One level of one layer, checked, and its size in bytes.
    pub(crate) fn check_level(
        &self,
        what: &str,
        image: &Image,
        level: u32,
        layer: u32,
    ) -> Result<(Subresources, u64), Error> {
        let levels = level..level.saturating_add(1);
        let part = image.all().levels(levels).layers(layer..layer.saturating_add(1)).part;
        self.check_part(what, image, &part)?;
        let texels: u64 = image.level_size(level).into_iter().map(u64::from).product();
        let object = image.resource().object_for_command(what)?;
        Ok((part, texels * object.image()?.texel_bytes()))
    }
}

/// Checks that a clear colour has the numeric type of the image.
pub(crate) fn check_color(image: &Image, target: &spelter_driver::Image, color: ClearColor) -> Result<(), Error> {
    if color.class() == target.class() {
        return Ok(());
    }
    let (is, of) = (color.class(), image.resource().described());
    let problem = format!("clear: {of} holds {}, the colour is of {is}", target.class());
    Err(Error::range(problem, rule::COLOR))
}

/// A level of a layer of an image, which is given as such, as its resource or by the number of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelOf<I> {
    pub(crate) of: I,
    pub(crate) level: u32,
    pub(crate) layer: u32,
}

impl<I> From<(I, u32, u32)> for LevelOf<I> {
    fn from((of, level, layer): (I, u32, u32)) -> Self {
        Self { of, level, layer }
    }
}

impl<I> LevelOf<I> {
    /// The same level of the image that is given in another way.
    pub(crate) fn map<J>(self, given: impl FnOnce(I) -> J) -> LevelOf<J> {
        let Self { of, level, layer } = self;
        LevelOf { of: given(of), level, layer }
    }
}

impl<'a> LevelOf<&'a Image> {
    fn resource(self) -> LevelOf<&'a Resource> {
        self.map(|image| &**image.resource())
    }
}

/// The copied region between levels of the images of two resources, which have these descriptions. [`Error::Range`] if
/// the levels have different sizes or are the same.
pub(crate) fn copy_region(
    what: &str,
    [from, to]: [LevelOf<&Resource>; 2],
    infos: [&ImageInfo; 2],
) -> Result<vk::ImageCopy, Error> {
    let sizes = [extent(infos[0], from.level), extent(infos[1], to.level)];
    let differs = sizes[0] != sizes[1];
    let key = |level: LevelOf<&Resource>| (level.of.id(), level.level, level.layer);
    if differs || key(from) == key(to) {
        let described = |(LevelOf { of, level, layer }, size): (LevelOf<&Resource>, vk::Extent3D)| {
            let vk::Extent3D { width, height, depth } = size;
            let of = of.described();
            format!("level {level} of layer {layer}, {width}x{height}x{depth} texels, of {of}")
        };
        let (a, b) = (described((from, sizes[0])), described((to, sizes[1])));
        let rule = if differs { rule::COPY_SIZES } else { rule::COPY_OVERLAP };
        return Err(Error::range(format!("{what}: from {a} to {b}"), rule));
    }
    let (src_subresource, dst_subresource) = (layers(from.level, from.layer), layers(to.level, to.layer));
    Ok(vk::ImageCopy { src_subresource, dst_subresource, extent: sizes[0], ..Default::default() })
}

/// A command's uses of subresources of an object.
fn used<'a>(
    object: &'a Arc<ResourceObject>,
    part: &Subresources,
    image: &'a Image,
    access: Access,
) -> impl Iterator<Item = Use<'a>> + use<'a> {
    let resource = image.resource();
    part.ranges(image.info().levels).into_iter().map(move |range| Use::of(resource, object, range, access))
}
