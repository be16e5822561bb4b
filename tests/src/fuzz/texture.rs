//! Images and samplers of a program's descriptors, and their form in files.

use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::{
    Compare, Descriptor, Extent, Filter, Format, Layout, Rows, Sampler, Swizzle, TexelView, Wrap,
};

/// The interpretation of one of a program's buffers as texels, with the sampler of the same descriptor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Texture {
    /// The index of the buffer.
    pub buffer: usize,
    /// Format of the texels.
    pub format: Format,
    /// Its size.
    pub extent: Extent,
    /// The first level that the descriptor has, and how many it has.
    pub view: [u32; 2],
    /// The placement of texels.
    pub shape: Shape,
    /// The component mapping.
    pub swizzle: [Swizzle; 4],
    /// The sampler.
    pub sampler: Sampler,
}

/// The placement of texels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Layers of one or two dimensions.
    Flat,
    /// Slices of one image.
    Volume,
    /// One after the other.
    Buffer,
}

pub(super) const SWIZZLES: [Swizzle; 6] = [Swizzle::R, Swizzle::G, Swizzle::B, Swizzle::A, Swizzle::Zero, Swizzle::One];
pub(super) const FILTERS: [Filter; 2] = [Filter::Nearest, Filter::Linear];
pub(super) const WRAPS: [Wrap; 5] =
    [Wrap::Repeat, Wrap::MirroredRepeat, Wrap::ClampToEdge, Wrap::ClampToBorder, Wrap::MirrorClampToEdge];
pub(super) const COMPARES: [Compare; 8] = [
    Compare::Never,
    Compare::Less,
    Compare::Equal,
    Compare::LessOrEqual,
    Compare::Greater,
    Compare::NotEqual,
    Compare::GreaterOrEqual,
    Compare::Always,
];
const SHAPES: [Shape; 3] = [Shape::Flat, Shape::Volume, Shape::Buffer];

/// Count of the numbers that describe a texture in a file.
const NUMBERS: usize = 28;

impl Texture {
    /// Its size in bytes; 0 if it is too large.
    pub fn bytes(&self) -> usize {
        match self.shape {
            Shape::Buffer => (self.extent.size[0] * self.format.bytes()) as usize,
            _ => self.layout().map_or(0, |layout| layout.bytes as usize),
        }
    }

    fn layout(&self) -> Option<Layout> {
        Layout::new(&self.extent, self.format.bytes(), Rows::Spread)
    }

    /// The descriptor for a kernel, with the texels in that memory.
    pub fn descriptor(&self, memory: GuestSlice) -> Descriptor {
        let view = match (self.shape, self.layout()) {
            (Shape::Buffer, _) => TexelView::of_buffer(memory, self.format, self.extent.size[0]),
            (_, None) => TexelView::NULL,
            (shape, Some(layout)) => {
                let (layers, volume) = ([0, self.extent.layers], shape == Shape::Volume);
                TexelView::of_image(memory, self.format, &self.extent, &layout, self.view, layers, volume)
            }
        };
        Descriptor { view: TexelView { swizzle: self.swizzle, ..view }, sampler: self.sampler }
    }

    /// The numbers that describe it in a file, after that of the buffer.
    pub fn numbers(&self) -> [u32; NUMBERS] {
        let Self { extent, sampler, .. } = self;
        let place = |at: Option<usize>| at.unwrap_or_default() as u32;
        let swizzle = self.swizzle.map(|of| place(SWIZZLES.iter().position(|&other| other == of)));
        let filter = |of| place(FILTERS.iter().position(|&other| other == of));
        let wrap = sampler.wrap.map(|of| place(WRAPS.iter().position(|&other| other == of)));
        let [width, height, depth] = extent.size;
        let [low, high] = [sampler.min_lod, sampler.max_lod].map(f32::to_bits);
        let shape = place(SHAPES.iter().position(|&other| other == self.shape));
        let compare = place(COMPARES.iter().position(|&other| other == sampler.compare));
        let head = [self.format.vk().cast_unsigned(), width, height, depth, extent.levels, extent.layers, shape];
        let filters = [sampler.mag, sampler.min, sampler.mip].map(filter);
        let rest = [sampler.unnormalized.into(), compare, sampler.lod_bias.to_bits(), low, high];
        let mut numbers = [0; NUMBERS];
        let all = head
            .into_iter()
            .chain(swizzle)
            .chain(filters)
            .chain(wrap)
            .chain(rest)
            .chain(sampler.border)
            .chain(self.view);
        for (to, number) in numbers.iter_mut().zip(all) {
            *to = number;
        }
        numbers
    }

    /// The texture with those numbers, if they are valid.
    pub fn from_numbers(buffer: usize, numbers: &[u32]) -> Option<Self> {
        let mut rest = numbers.iter().copied();
        let mut next = || rest.next();
        fn of<T: Copy>(list: &[T], at: u32) -> Option<T> {
            list.get(at as usize).copied()
        }
        let format = Format::from_vk(next()?.cast_signed())?;
        let extent = Extent { size: [next()?, next()?, next()?], levels: next()?, layers: next()? };
        let shape = of(&SHAPES, next()?)?;
        let swizzle = [next()?, next()?, next()?, next()?];
        let [mag, min, mip] = [next()?, next()?, next()?];
        let wrap = [next()?, next()?, next()?];
        let (unnormalized, compare) = (next()? != 0, of(&COMPARES, next()?)?);
        let [lod_bias, min_lod, max_lod] = [next()?, next()?, next()?].map(f32::from_bits);
        let border = [next()?, next()?, next()?, next()?];
        // Older files have views of all levels.
        let view = match (next(), next()) {
            (None, _) => [0, extent.levels],
            (Some(first), Some(levels @ 1..)) if first.checked_add(levels)? <= extent.levels => [first, levels],
            _ => return None,
        };
        let sampler = Sampler {
            mag: of(&FILTERS, mag)?,
            min: of(&FILTERS, min)?,
            mip: of(&FILTERS, mip)?,
            wrap: [of(&WRAPS, wrap[0])?, of(&WRAPS, wrap[1])?, of(&WRAPS, wrap[2])?],
            unnormalized,
            compare,
            lod_bias,
            min_lod,
            max_lod,
            border,
        };
        let mut letters = Swizzle::IDENTITY;
        for (to, at) in letters.iter_mut().zip(swizzle) {
            *to = of(&SWIZZLES, at)?;
        }
        (rest.next().is_none()).then_some(Self { buffer, format, extent, view, shape, swizzle: letters, sampler })
    }
}
