//! Images and samplers for the bindings of the program, from `--image` and `--sampler`.

use spelter::{Bind, BindingInfo, BindingKind, Context, Image, Sampler, TexelClass, vk};
use spelter_shaders::image::Format;

use super::bind::{info_of, shown};
use crate::args::ImageArgs;
use crate::failure::Failure;
use crate::file;
use crate::image::{self, Contents, Picture, Source};
use crate::slot::{Slot, named};
use crate::structured::ImageOption;

/// The largest level of an image, in bytes.
const MAX_BYTES: u64 = 1 << 32;

/// An image and its slot.
pub(crate) struct BoundImage {
    pub(crate) slot: Slot,
    /// The slot as text, with its element if the binding is an array.
    pub(super) name: String,
    pub(super) image: Image,
    pub(super) format: Format,
    view: vk::ImageViewType,
    is_storage: bool,
    sampler: Option<Sampler>,
}

/// A sampler and its slot.
pub(crate) struct BoundSampler {
    pub(crate) slot: Slot,
    sampler: Sampler,
}

impl BoundImage {
    /// What a dispatch binds: all levels, or the first one for a storage image, as the view that the shader declares.
    pub(crate) fn bind(&self) -> Bind {
        let part = self.image.all().as_type(self.view);
        match (&self.sampler, self.is_storage) {
            (_, true) => Bind::storage_image(part.levels(..1)),
            (Some(sampler), false) => Bind::sampled(part).with_sampler(sampler),
            (None, false) => Bind::sampled(part),
        }
    }

    /// The texels of level 0, layer by layer.
    pub(super) fn texels(&self, context: &Context) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        for layer in 0..self.image.info().layers {
            bytes.extend(context.read_image::<u8>(&self.image, 0, layer)?);
        }
        Ok(bytes)
    }

    /// Bytes of the texels of level 0.
    pub(crate) fn bytes(&self) -> u64 {
        let texels: u64 = self.image.level_size(0).into_iter().map(u64::from).product();
        texels * u64::from(self.image.info().layers) * u64::from(self.format.bytes())
    }

    /// Width, and the height of all slices and layers below each other.
    pub(super) fn sheet(&self) -> [u32; 2] {
        let [width, height, depth] = self.image.level_size(0);
        [width, height.saturating_mul(depth).saturating_mul(self.image.info().layers)]
    }
}

impl BoundSampler {
    /// What a dispatch binds.
    pub(crate) fn bind(&self) -> Bind {
        Bind::sampler(&self.sampler)
    }
}

/// The images of the options, with the samplers of combined bindings. The slots are known to be images of the program.
pub(crate) fn images(context: &Context, infos: &[BindingInfo], args: &ImageArgs) -> Result<Vec<BoundImage>, Failure> {
    let options = args.image.iter().filter(|option| option.source != Source::Null);
    options.map(|option| bound_image(context, infos, option, args)).collect()
}

/// The separate samplers of the options.
pub(crate) fn samplers(
    context: &Context,
    infos: &[BindingInfo],
    args: &ImageArgs,
) -> Result<Vec<BoundSampler>, Failure> {
    let separate = |slot: Slot| info_of(infos, slot).is_some_and(|info| info.kind == BindingKind::Sampler);
    let options = args.sampler.iter().filter(|option| separate(option.slot));
    options
        .map(|option| Ok(BoundSampler { slot: option.slot, sampler: sampler(context, option.slot, args)? }))
        .collect()
}

fn sampler(context: &Context, slot: Slot, args: &ImageArgs) -> Result<Sampler, Failure> {
    let option = args.sampler.iter().find(|option| option.slot == slot);
    let info = option.map(|option| option.options.0).unwrap_or_default();
    let name = option.and_then(|option| option.name.as_deref());
    context.sampler(&info).map_err(|error| Failure::from(error).of(format_args!("--sampler {}", named(slot, name))))
}

fn bound_image(
    context: &Context,
    infos: &[BindingInfo],
    option: &ImageOption,
    args: &ImageArgs,
) -> Result<BoundImage, Failure> {
    let slot = option.slot;
    let wrong = |failure: Failure| failure.of(format_args!("--image {}", named(slot, option.name.as_deref())));
    let info = info_of(infos, slot).ok_or_else(|| wrong(Failure::misuse("the program does not use it")))?;
    let created = create_with_texels(context, info, &option.source).map_err(wrong)?;
    let sampler = match info.kind {
        BindingKind::CombinedImageSampler => Some(sampler(context, slot, args)?),
        _ => None,
    };
    Ok(BoundImage {
        slot,
        name: shown(slot, Some(info)),
        image: created.image,
        format: created.format,
        view: created.view,
        is_storage: info.kind == BindingKind::StorageImage,
        sampler,
    })
}

/// An image with its contents, and how the shader sees it.
struct CreatedImage {
    image: Image,
    format: Format,
    view: vk::ImageViewType,
}

/// The size of an image in texels, and its layers.
struct ImageExtent {
    ty: vk::ImageType,
    view: vk::ImageViewType,
    size: [u32; 3],
    layers: u32,
}

fn create_with_texels(context: &Context, info: &BindingInfo, source: &Source) -> Result<CreatedImage, Failure> {
    let declared = info.image.and_then(|image| image.view);
    let (format, extent, levels) = match source {
        Source::Picture { format, path } => {
            let picture = Picture::read(path)?;
            let format = format.map_or_else(|| default_format(info), Ok)?;
            let texels =
                image::of_picture(format, &picture).map_err(|problem| Failure::misuse(problem).of(path.display()))?;
            let [width, height] = picture.size;
            let extent = extent(declared, &[width, height])?;
            let created = create_empty(context, format, &extent, 1)?;
            write(context, &created, (0, &extent), &texels)?;
            return Ok(CreatedImage { image: created, format, view: extent.view });
        }
        Source::Texels { format, size, levels, .. } => (*format, extent(declared, size)?, *levels),
        Source::Null => return Err(Failure::misuse("it is null")),
    };
    let image = create_empty(context, format, &extent, levels)?;
    let Source::Texels { contents, .. } = source else { return Err(Failure::misuse("it has no size")) };
    for level in 0..levels {
        let [width, height, depth] = image.level_size(level);
        let slices = [width, height, depth * extent.layers];
        let texels = match contents {
            Contents::File(path) if level == 0 => of_file(path, format, slices)?,
            contents => image::of_pattern(format, slices, contents),
        };
        write(context, &image, (level, &extent), &texels)?;
    }
    Ok(CreatedImage { image, format, view: extent.view })
}

/// The format of a picture that names none: the shader's, or 8 bits for each channel.
fn default_format(info: &BindingInfo) -> Result<Format, Failure> {
    if let Some(declared) = info.image.and_then(|image| image.format) {
        let refused = || Failure::misuse(format!("the format {declared:?} is not supported"));
        return image::known(declared).ok_or_else(refused);
    }
    Ok(match info.image.map(|image| image.class) {
        Some(TexelClass::Uint) => Format::R8G8B8A8_UINT,
        // 8 bits with a sign cannot hold the codes of a picture.
        Some(TexelClass::Sint) => Format::R16G16B16A16_SINT,
        Some(TexelClass::Float) | None => Format::R8G8B8A8_UNORM,
    })
}

/// What the numbers of a size mean for the view that the shader declares.
fn extent(declared: Option<vk::ImageViewType>, size: &[u32]) -> Result<ImageExtent, Failure> {
    use vk::ImageViewType as View;
    let view = declared.unwrap_or(if size.len() == 3 { View::TYPE_3D } else { View::TYPE_2D });
    let (one, two, three) = (vk::ImageType::TYPE_1D, vk::ImageType::TYPE_2D, vk::ImageType::TYPE_3D);
    let (ty, size, layers) = match (view, size) {
        (View::TYPE_1D, &[width] | &[width, 1]) => (one, [width, 1, 1], 1),
        (View::TYPE_1D_ARRAY, &[width, layers]) => (one, [width, 1, 1], layers),
        (View::TYPE_2D, &[width, height] | &[width, height, 1]) => (two, [width, height, 1], 1),
        (View::TYPE_2D_ARRAY, &[width, height]) => (two, [width, height, 1], 1),
        (View::TYPE_2D_ARRAY, &[width, height, layers]) => (two, [width, height, 1], layers),
        (View::TYPE_3D, &[width, height]) => (three, [width, height, 1], 1),
        (View::TYPE_3D, &[width, height, depth]) => (three, [width, height, depth], 1),
        (View::CUBE, &[width, height] | &[width, height, 6]) if width == height => (two, [width, height, 1], 6),
        (View::CUBE_ARRAY, &[width, height, layers]) if width == height && layers % 6 == 0 => {
            (two, [width, height, 1], layers)
        }
        _ => {
            let given: Vec<_> = size.iter().map(u32::to_string).collect();
            return Err(Failure::misuse(format!("the shader takes {}, not {}", takes(view), given.join("x"))));
        }
    };
    Ok(ImageExtent { ty, view, size, layers })
}

/// The view and the form of its sizes, for messages.
fn takes(view: vk::ImageViewType) -> &'static str {
    use vk::ImageViewType as View;
    match view {
        View::TYPE_1D => "a 1D image of size WIDTH",
        View::TYPE_1D_ARRAY => "a 1D array of size WIDTHxLAYERS",
        View::TYPE_2D => "a 2D image of size WIDTHxHEIGHT",
        View::TYPE_2D_ARRAY => "a 2D array of size WIDTHxHEIGHTxLAYERS",
        View::TYPE_3D => "a 3D image of size WIDTHxHEIGHTxDEPTH",
        View::CUBE => "a cube of size WIDTHxWIDTH",
        View::CUBE_ARRAY => "an array of cubes of size WIDTHxWIDTHxLAYERS, with a multiple of 6 layers",
        _ => "another image",
    }
}

fn create_empty(context: &Context, format: Format, extent: &ImageExtent, levels: u32) -> Result<Image, Failure> {
    let texels: u64 = extent.size.iter().map(|&n| u64::from(n)).fold(u64::from(extent.layers), u64::saturating_mul);
    let bytes = texels.saturating_mul(format.bytes().into());
    if bytes > MAX_BYTES {
        return Err(Failure::misuse(format!("its {bytes} bytes are more than {MAX_BYTES}")));
    }
    let builder = context.image(image::vulkan(format), extent.size).dimensions(extent.ty);
    Ok(builder.levels(levels).layers(extent.layers).build()?)
}

/// The texels of a file, which must be those of level 0.
fn of_file(path: &std::path::Path, format: Format, size: [u32; 3]) -> Result<Vec<u8>, Failure> {
    let wanted = size.iter().map(|&n| u64::from(n)).product::<u64>() * u64::from(format.bytes());
    let bytes = file::read(path, MAX_BYTES)?;
    if bytes.len() as u64 != wanted {
        let (path, given, format) = (path.display(), bytes.len(), image::format_name(format));
        return Err(Failure::misuse(format!("{path}: {given} bytes, but the texels in {format} have {wanted}")));
    }
    Ok(bytes)
}

/// Writes the texels of a level, layer by layer.
fn write(context: &Context, image: &Image, (level, extent): (u32, &ImageExtent), texels: &[u8]) -> Result<(), Failure> {
    let each = texels.len() / extent.layers.max(1) as usize;
    for (layer, texels) in (0..extent.layers).zip(texels.chunks_exact(each.max(1))) {
        context.write_image(image, level, layer, texels)?;
    }
    Ok(())
}
