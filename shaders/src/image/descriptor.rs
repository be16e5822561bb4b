//! Image and sampler descriptors as kernels see them.

use std::mem::offset_of;

use super::format::Format;
use super::layout::{Extent, Layout};
use crate::guest::GuestSlice;

/// Mip levels of an image, at most: those of 16384 texels per side.
pub const MAX_LEVELS: usize = 15;

/// Image and sampler of one descriptor; a missing one is [`TexelView::NULL`] or [`Sampler::DEFAULT`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// The image view or texel buffer.
    pub view: TexelView,
    /// The sampler.
    pub sampler: Sampler,
}

/// An image view, or a texel buffer. Machine code reads the first nine fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TexelView {
    /// Width, height and depth of level 0 in texels; 1 for missing dimensions.
    pub size: [u32; 3],
    /// Array layers, six for each cube; 1 for 3D images.
    pub layers: u32,
    /// Mip levels.
    pub levels: u32,
    /// Bytes from a row of level 0 to the next.
    pub row_pitch: u32,
    /// Bytes from a layer, or a slice of a 3D image's level 0, to the next.
    pub outer_pitch: u32,
    /// Texel format.
    pub format: Format,
    /// Sources of red, green, blue and alpha.
    pub swizzle: [Swizzle; 4],
    /// The bytes, starting at the view's first level and layer.
    pub memory: GuestSlice,
    /// Bytes from a layer to the next.
    pub layer_pitch: u32,
    /// The view's levels.
    pub level: [Level; MAX_LEVELS],
}

/// Position of a mip level in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// First byte.
    pub offset: u32,
    /// Bytes from a row to the next.
    pub row_pitch: u32,
    /// Bytes from a slice to the next.
    pub slice_pitch: u32,
}

/// Source of a component (`VkComponentSwizzle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Swizzle {
    /// The texel's red.
    R,
    /// The texel's green.
    G,
    /// The texel's blue.
    B,
    /// The texel's alpha.
    A,
    /// 0.
    Zero,
    /// 1.
    One,
}

/// A field of a descriptor that kernels read as a 32-bit word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Width of level 0, or texels of a buffer.
    Width,
    /// Height of level 0.
    Height,
    /// Depth of level 0.
    Depth,
    /// Array layers, six for each cube.
    Layers,
    /// Mip levels.
    Levels,
    /// Bytes from a row of level 0 to the next.
    RowPitch,
    /// Bytes from a layer or slice of level 0 to the next.
    OuterPitch,
    /// Number of the format.
    Format,
    /// One byte per component: the number of its [`Swizzle`].
    Swizzle,
    /// The first four bytes of the sampler: [`SamplerByte`].
    Filters,
    /// The next four.
    Modes,
    /// Level-of-detail bias, a float.
    LodBias,
    /// Lowest level of detail, a float.
    MinLod,
}

/// A byte of [`Field::Filters`], lowest first, or of [`Field::Modes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SamplerByte {
    /// Magnification filter.
    Mag,
    /// Minification filter.
    Min,
    /// Filter between mip levels.
    Mip,
    /// Address mode along x.
    WrapX,
    /// Address mode along y.
    WrapY,
    /// Address mode along z.
    WrapZ,
    /// 1 if coordinates are unnormalized.
    Unnormalized,
    /// Comparison.
    Compare,
}

/// How a sampler filters (`VkFilter`, `VkSamplerMipmapMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Filter {
    /// The nearest texel or level.
    Nearest,
    /// A weighted mean of the nearest two in each dimension.
    Linear,
}

/// Addressing of coordinates outside the image (`VkSamplerAddressMode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Wrap {
    /// `REPEAT`.
    Repeat,
    /// `MIRRORED_REPEAT`.
    MirroredRepeat,
    /// `CLAMP_TO_EDGE`.
    ClampToEdge,
    /// `CLAMP_TO_BORDER`.
    ClampToBorder,
    /// `MIRROR_CLAMP_TO_EDGE`.
    MirrorClampToEdge,
}

/// Comparison of the reference (left operand) with the texel (`VkCompareOp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Compare {
    /// Never.
    Never,
    /// `<`
    Less,
    /// `==`
    Equal,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `!=`
    NotEqual,
    /// `>=`
    GreaterOrEqual,
    /// Always.
    Always,
}

/// A sampler. Machine code reads the first nine fields, eight of them as bytes of two words.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Magnification filter.
    pub mag: Filter,
    /// Minification filter.
    pub min: Filter,
    /// Filter between mip levels.
    pub mip: Filter,
    /// Address mode of each dimension.
    pub wrap: [Wrap; 3],
    /// Whether coordinates are in texels.
    pub unnormalized: bool,
    /// Comparison of depth samples.
    pub compare: Compare,
    /// Level-of-detail bias.
    pub lod_bias: f32,
    /// Lowest level of detail.
    pub min_lod: f32,
    /// Highest level of detail.
    pub max_lod: f32,
    /// Border colour, red first: the bits of floats or integers.
    pub border: [u32; 4],
}

impl Swizzle {
    /// The identity mapping.
    pub const IDENTITY: [Self; 4] = [Self::R, Self::G, Self::B, Self::A];

    /// The component of a texel; `one` is the value 1 in its class.
    pub fn of(self, texel: [u32; 4], one: u32) -> u32 {
        match self {
            Self::R => texel[0],
            Self::G => texel[1],
            Self::B => texel[2],
            Self::A => texel[3],
            Self::Zero => 0,
            Self::One => one,
        }
    }
}

impl Sampler {
    /// Nearest texels of level 0, clamped to the edge: the sampler of a descriptor that was never written.
    pub const DEFAULT: Self = Self {
        mag: Filter::Nearest,
        min: Filter::Nearest,
        mip: Filter::Nearest,
        wrap: [Wrap::ClampToEdge; 3],
        unnormalized: false,
        compare: Compare::Never,
        lod_bias: 0.0,
        min_lod: 0.0,
        max_lod: 0.0,
        border: [0; 4],
    };
}

impl Descriptor {
    /// A descriptor that was never written.
    pub const NULL: Self = Self { view: TexelView::NULL, sampler: Sampler::DEFAULT };

    /// A field's value.
    pub fn field(&self, field: Field) -> u32 {
        let Self { view, sampler } = self;
        match field {
            Field::Width => view.size[0],
            Field::Height => view.size[1],
            Field::Depth => view.size[2],
            Field::Layers => view.layers,
            Field::Levels => view.levels,
            Field::RowPitch => view.row_pitch,
            Field::OuterPitch => view.outer_pitch,
            Field::Format => view.format.vk().cast_unsigned(),
            Field::Swizzle => u32::from_le_bytes(view.swizzle.map(|swizzle| swizzle as u8)),
            Field::Filters | Field::Modes => {
                let bytes = SamplerByte::ALL.into_iter().filter(|byte| byte.field() == field);
                bytes.fold(0, |word, byte| word | u32::from(sampler.byte(byte)) << byte.shift())
            }
            Field::LodBias => sampler.lod_bias.to_bits(),
            Field::MinLod => sampler.min_lod.to_bits(),
        }
    }
}

impl TexelView {
    /// No image: reads give 0, writes are dropped, sizes are 0.
    pub const NULL: Self = Self {
        size: [0; 3],
        layers: 0,
        levels: 0,
        row_pitch: 0,
        outer_pitch: 0,
        format: Format::NONE,
        swizzle: Swizzle::IDENTITY,
        memory: GuestSlice::EMPTY,
        layer_pitch: 0,
        level: [Level { offset: 0, row_pitch: 0, slice_pitch: 0 }; MAX_LEVELS],
    };

    /// A texel buffer of the texels that fit, at most `max`.
    pub fn of_buffer(memory: GuestSlice, format: Format, max: u32) -> Self {
        let texels = match format.bytes() {
            0 => 0,
            bytes => (memory.len() / u64::from(bytes)).min(max.into()) as u32,
        };
        let mut view = Self { size: [texels, 1, 1], layers: 1, levels: 1, format, memory, ..Self::NULL };
        view.row_pitch = memory.len().min(u32::MAX.into()) as u32;
        view.level[0].row_pitch = view.row_pitch;
        view
    }

    /// A view of an image from `base_level` and `base_layer` on. `volume`: the image is 3D.
    pub fn of_image(
        memory: GuestSlice,
        format: Format,
        extent: &Extent,
        layout: &Layout,
        [base_level, levels]: [u32; 2],
        [base_layer, layers]: [u32; 2],
        volume: bool,
    ) -> Self {
        let base = layout.levels.get(base_level as usize).copied().unwrap_or_default();
        let skip = u64::from(base.offset) + u64::from(base_layer) * u64::from(layout.layer_pitch);
        let mut level = [Level::default(); MAX_LEVELS];
        for (to, from) in level.iter_mut().zip(layout.levels.iter().skip(base_level as usize)).take(levels as usize) {
            *to = Level { offset: from.offset.saturating_sub(base.offset), ..*from };
        }
        Self {
            size: extent.level(base_level),
            layers,
            levels: levels.min(MAX_LEVELS as u32),
            row_pitch: base.row_pitch,
            outer_pitch: if volume { base.slice_pitch } else { layout.layer_pitch },
            format,
            swizzle: Swizzle::IDENTITY,
            memory: memory.slice(skip, memory.len()),
            layer_pitch: layout.layer_pitch,
            level,
        }
    }

    /// Width, height and depth of a level.
    pub fn level_size(&self, level: u32) -> [u32; 3] {
        self.size.map(|size| if size == 0 { 0 } else { size.checked_shr(level).unwrap_or(0).max(1) })
    }

    /// Byte offset of a texel; `None` outside the view. At least one of `z` and `layer` is 0.
    pub fn texel(&self, level: u32, [x, y, z]: [u32; 3], layer: u32) -> Option<u64> {
        let [width, height, depth] = self.level_size(level);
        if level >= self.levels || x >= width || y >= height || z >= depth || layer >= self.layers {
            return None;
        }
        let at = self.level.get(level as usize)?;
        let rows = u64::from(z) * u64::from(at.slice_pitch) + u64::from(y) * u64::from(at.row_pitch);
        let bytes = u64::from(x) * u64::from(self.format.bytes());
        Some(u64::from(layer) * u64::from(self.layer_pitch) + u64::from(at.offset) + rows + bytes)
    }
}

impl SamplerByte {
    /// All bytes, in the order of the two fields.
    pub const ALL: [Self; 8] =
        [Self::Mag, Self::Min, Self::Mip, Self::WrapX, Self::WrapY, Self::WrapZ, Self::Unnormalized, Self::Compare];

    /// The field that has the byte.
    pub fn field(self) -> Field {
        if (self as u32) < 4 { Field::Filters } else { Field::Modes }
    }

    /// The lowest bit of the byte in its field.
    pub fn shift(self) -> u32 {
        self as u32 % 4 * 8
    }
}

impl Sampler {
    fn byte(&self, byte: SamplerByte) -> u8 {
        match byte {
            SamplerByte::Mag => self.mag as u8,
            SamplerByte::Min => self.min as u8,
            SamplerByte::Mip => self.mip as u8,
            SamplerByte::WrapX => self.wrap[0] as u8,
            SamplerByte::WrapY => self.wrap[1] as u8,
            SamplerByte::WrapZ => self.wrap[2] as u8,
            SamplerByte::Unnormalized => self.unnormalized.into(),
            SamplerByte::Compare => self.compare as u8,
        }
    }
}

impl Field {
    /// All fields.
    pub const ALL: [Self; 13] = [
        Self::Width,
        Self::Height,
        Self::Depth,
        Self::Layers,
        Self::Levels,
        Self::RowPitch,
        Self::OuterPitch,
        Self::Format,
        Self::Swizzle,
        Self::Filters,
        Self::Modes,
        Self::LodBias,
        Self::MinLod,
    ];

    /// The name in the text forms.
    pub fn name(self) -> &'static str {
        match self {
            Self::Width => "width",
            Self::Height => "height",
            Self::Depth => "depth",
            Self::Layers => "layers",
            Self::Levels => "levels",
            Self::RowPitch => "row_pitch",
            Self::OuterPitch => "outer_pitch",
            Self::Format => "format",
            Self::Swizzle => "swizzle",
            Self::Filters => "filters",
            Self::Modes => "modes",
            Self::LodBias => "lod_bias",
            Self::MinLod => "min_lod",
        }
    }

    /// Parses [`Field::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Byte offset of the field in a [`Descriptor`].
    pub fn offset(self) -> usize {
        const VIEW: usize = offset_of!(Descriptor, view);
        const SAMPLER: usize = offset_of!(Descriptor, sampler);
        match self {
            Self::Width => VIEW + offset_of!(TexelView, size),
            Self::Height => VIEW + offset_of!(TexelView, size) + 4,
            Self::Depth => VIEW + offset_of!(TexelView, size) + 8,
            Self::Layers => VIEW + offset_of!(TexelView, layers),
            Self::Levels => VIEW + offset_of!(TexelView, levels),
            Self::RowPitch => VIEW + offset_of!(TexelView, row_pitch),
            Self::OuterPitch => VIEW + offset_of!(TexelView, outer_pitch),
            Self::Format => VIEW + offset_of!(TexelView, format),
            Self::Swizzle => VIEW + offset_of!(TexelView, swizzle),
            Self::Filters => SAMPLER + offset_of!(Sampler, mag),
            Self::Modes => SAMPLER + offset_of!(Sampler, mag) + 4,
            Self::LodBias => SAMPLER + offset_of!(Sampler, lod_bias),
            Self::MinLod => SAMPLER + offset_of!(Sampler, min_lod),
        }
    }
}

// In memory, the bytes of a sampler are in the places that [`SamplerByte`] gives them in the two words.
const _: () = {
    const fn place(byte: SamplerByte) -> usize {
        offset_of!(Sampler, mag) + byte as usize
    }
    assert!(place(SamplerByte::Mag).is_multiple_of(4) && offset_of!(Sampler, min) == place(SamplerByte::Min));
    assert!(offset_of!(Sampler, mip) == place(SamplerByte::Mip) && size_of::<Wrap>() == 1);
    assert!(offset_of!(Sampler, wrap) == place(SamplerByte::WrapX));
    assert!(offset_of!(Sampler, unnormalized) == place(SamplerByte::Unnormalized));
    assert!(offset_of!(Sampler, compare) == place(SamplerByte::Compare));
};
