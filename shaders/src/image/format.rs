//! Texel formats: the bit positions of channels and the meaning of their numbers.
//!
//! Every uncompressed colour and depth format of Vulkan's core consists of channels at fixed bit positions of a
//! little-endian texel (Vulkan, "Format Definition"): array formats start with the first named channel, packed formats
//! end with it. Formats have Vulkan's numbers.

use std::fmt;

/// A format by its number in `VkFormat`; numbers of extension formats follow those of Vulkan 1.0. [`Format::NONE`] is
/// that of a descriptor that was never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Format(u32);

/// Interpretation of a channel's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numeric {
    /// Unsigned, normalised: 0 to 1.
    Unorm,
    /// Signed, normalised: -1 to 1; the lowest two codes both are -1.
    Snorm,
    /// Unsigned integers as floats.
    Uscaled,
    /// Signed integers as floats.
    Sscaled,
    /// Unsigned integers.
    Uint,
    /// Signed integers.
    Sint,
    /// Like [`Numeric::Unorm`], with red, green and blue sRGB-encoded.
    Srgb,
    /// IEEE 754 binary16 or binary32.
    Sfloat,
    /// Unsigned floats with 5 exponent bits.
    Ufloat,
    /// Three 9-bit mantissas with a shared 5-bit exponent.
    SharedExponent,
}

/// Type of the components that a shader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Floats.
    Float,
    /// Signed integers.
    Sint,
    /// Unsigned integers.
    Uint,
}

/// For messages.
impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Float => "floats",
            Self::Sint => "signed integers",
            Self::Uint => "unsigned integers",
        })
    }
}

impl Class {
    /// All classes.
    pub(super) const ALL: [Self; 3] = [Self::Float, Self::Sint, Self::Uint];

    /// The name in the text forms.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Sint => "sint",
            Self::Uint => "uint",
        }
    }

    /// Parses [`Class::name`].
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// Position of a channel in a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelBits {
    /// 0 to 3: red, green, blue, alpha. Depth is red.
    pub channel: u8,
    /// Lowest bit, counted from the texel's first byte.
    pub shift: u8,
    /// Number of bits.
    pub bits: u8,
}

/// Layout and interpretation of a format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Description {
    pub(super) numeric: Numeric,
    pub(super) parts: [ChannelBits; 4],
    pub(super) channels: u8,
    pub(super) bytes: u8,
}

const R: u8 = 0;
const G: u8 = 1;
const B: u8 = 2;
const A: u8 = 3;
/// An unused channel.
const X: u8 = 4;

use Numeric::{Sfloat, SharedExponent, Sint, Snorm, Srgb, Sscaled, Ufloat, Uint, Unorm, Uscaled};

const EIGHT: &[Numeric] = &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Srgb];
const TEN: &[Numeric] = &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint];
const SIXTEEN: &[Numeric] = &[Unorm, Snorm, Uscaled, Sscaled, Uint, Sint, Sfloat];
const THIRTY_TWO: &[Numeric] = &[Uint, Sint, Sfloat];

/// Consecutive formats in `VkFormat` that differ only in the interpretation: the number of the first, the
/// interpretations, and the channels with their bit counts from the lowest bit on.
type Family = (u32, &'static [Numeric], &'static [(u8, u8)]);

const FAMILIES: &[Family] = &[
    (1, &[Unorm], &[(G, 4), (R, 4)]),
    (2, &[Unorm], &[(A, 4), (B, 4), (G, 4), (R, 4)]),
    (3, &[Unorm], &[(A, 4), (R, 4), (G, 4), (B, 4)]),
    (4, &[Unorm], &[(B, 5), (G, 6), (R, 5)]),
    (5, &[Unorm], &[(R, 5), (G, 6), (B, 5)]),
    (6, &[Unorm], &[(A, 1), (B, 5), (G, 5), (R, 5)]),
    (7, &[Unorm], &[(A, 1), (R, 5), (G, 5), (B, 5)]),
    (8, &[Unorm], &[(B, 5), (G, 5), (R, 5), (A, 1)]),
    (9, EIGHT, &[(R, 8)]),
    (16, EIGHT, &[(R, 8), (G, 8)]),
    (23, EIGHT, &[(R, 8), (G, 8), (B, 8)]),
    (30, EIGHT, &[(B, 8), (G, 8), (R, 8)]),
    (37, EIGHT, &[(R, 8), (G, 8), (B, 8), (A, 8)]),
    (44, EIGHT, &[(B, 8), (G, 8), (R, 8), (A, 8)]),
    (51, EIGHT, &[(R, 8), (G, 8), (B, 8), (A, 8)]),
    (58, TEN, &[(B, 10), (G, 10), (R, 10), (A, 2)]),
    (64, TEN, &[(R, 10), (G, 10), (B, 10), (A, 2)]),
    (70, SIXTEEN, &[(R, 16)]),
    (77, SIXTEEN, &[(R, 16), (G, 16)]),
    (84, SIXTEEN, &[(R, 16), (G, 16), (B, 16)]),
    (91, SIXTEEN, &[(R, 16), (G, 16), (B, 16), (A, 16)]),
    (98, THIRTY_TWO, &[(R, 32)]),
    (101, THIRTY_TWO, &[(R, 32), (G, 32)]),
    (104, THIRTY_TWO, &[(R, 32), (G, 32), (B, 32)]),
    (107, THIRTY_TWO, &[(R, 32), (G, 32), (B, 32), (A, 32)]),
    (122, &[Ufloat], &[(R, 11), (G, 11), (B, 10)]),
    (123, &[SharedExponent], &[(R, 9), (G, 9), (B, 9), (X, 5)]),
    (124, &[Unorm], &[(R, 16)]),
    (125, &[Unorm], &[(R, 24), (X, 8)]),
    (126, &[Sfloat], &[(R, 32)]),
    (127, &[Uint], &[(R, 8)]),
    (OF_EXTENSIONS[0].1, &[Unorm], &[(R, 5), (G, 5), (B, 5), (A, 1)]),
    (OF_EXTENSIONS[1].1, &[Unorm], &[(A, 8)]),
];

/// Formats of `VK_KHR_maintenance5`, `A1B5G5R5_UNORM_PACK16` and `A8_UNORM`: their `VkFormat` and internal numbers.
const OF_EXTENSIONS: [(u32, u32); 2] = [(1_000_470_000, 128), (1_000_470_001, 129)];

const COUNT: usize = 130;

static TABLE: [Option<Description>; COUNT] = {
    let mut table = [None; COUNT];
    let mut family = 0;
    while family < FAMILIES.len() {
        let (first, meanings, channels) = FAMILIES[family];
        let mut which = 0;
        while which < meanings.len() {
            table[first as usize + which] = Some(describe(meanings[which], channels));
            which += 1;
        }
        family += 1;
    }
    table
};

const fn describe(numeric: Numeric, channels: &[(u8, u8)]) -> Description {
    let mut parts = [ChannelBits { channel: X, shift: 0, bits: 0 }; 4];
    let (mut shift, mut at) = (0, 0);
    while at < channels.len() {
        let (channel, bits) = channels[at];
        parts[at] = ChannelBits { channel, shift, bits };
        shift += bits;
        at += 1;
    }
    Description { numeric, parts, channels: channels.len() as u8, bytes: shift / 8 }
}

macro_rules! named {
    ($($name:ident = $number:literal,)*) => {
        impl Format {
            $(
                #[doc = concat!("`VK_FORMAT_", stringify!($name), "`")]
                pub const $name: Self = Self($number);
            )*

            /// All named formats.
            pub const NAMED: &[(&str, Self)] = &[$((stringify!($name), Self::$name),)*];
        }
    };
}

named! {
    R5G6B5_UNORM_PACK16 = 4,
    R8_UNORM = 9, R8_SNORM = 10, R8_UINT = 13, R8_SINT = 14,
    R8G8_UNORM = 16, R8G8_SNORM = 17, R8G8_UINT = 20, R8G8_SINT = 21,
    R8G8B8A8_UNORM = 37, R8G8B8A8_SNORM = 38, R8G8B8A8_UINT = 41, R8G8B8A8_SINT = 42, R8G8B8A8_SRGB = 43,
    B8G8R8A8_UNORM = 44, B8G8R8A8_SRGB = 50,
    A2B10G10R10_UNORM_PACK32 = 64, A2B10G10R10_UINT_PACK32 = 68,
    R16_UNORM = 70, R16_SNORM = 71, R16_UINT = 74, R16_SINT = 75, R16_SFLOAT = 76,
    R16G16_UNORM = 77, R16G16_SNORM = 78, R16G16_UINT = 81, R16G16_SINT = 82, R16G16_SFLOAT = 83,
    R16G16B16A16_UNORM = 91, R16G16B16A16_SNORM = 92, R16G16B16A16_UINT = 95, R16G16B16A16_SINT = 96,
    R16G16B16A16_SFLOAT = 97,
    R32_UINT = 98, R32_SINT = 99, R32_SFLOAT = 100,
    R32G32_UINT = 101, R32G32_SINT = 102, R32G32_SFLOAT = 103,
    R32G32B32A32_UINT = 107, R32G32B32A32_SINT = 108, R32G32B32A32_SFLOAT = 109,
    B10G11R11_UFLOAT_PACK32 = 122, E5B9G9R9_UFLOAT_PACK32 = 123,
    D16_UNORM = 124, X8_D24_UNORM_PACK32 = 125, D32_SFLOAT = 126,
}

impl Format {
    /// No format: reads give 0, writes are dropped.
    pub const NONE: Self = Self(0);

    /// The format of a `VkFormat` number, if it is supported.
    pub fn from_vk(number: i32) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        let of_extension = OF_EXTENSIONS.iter().find(|(vulkans, _)| *vulkans == number);
        let own = of_extension.map_or(number, |(_, own)| *own);
        // Internal numbers of extension formats are no `VkFormat` numbers.
        let is_own = of_extension.is_none() && OF_EXTENSIONS.iter().any(|(_, own)| *own == number);
        TABLE.get(own as usize)?.as_ref().filter(|_| !is_own).map(|_| Self(own))
    }

    /// All supported formats in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..COUNT as u32).map(Self).filter(|format| format.description().is_some())
    }

    /// The `VkFormat` number.
    pub fn vk(self) -> i32 {
        let of_extension = OF_EXTENSIONS.iter().find(|(_, own)| *own == self.0);
        of_extension.map_or(self.0, |(vulkans, _)| *vulkans).cast_signed()
    }

    pub(super) fn description(self) -> Option<&'static Description> {
        TABLE.get(self.0 as usize)?.as_ref()
    }

    /// Bytes of a texel; 0 for [`Format::NONE`].
    pub fn bytes(self) -> u32 {
        self.description().map_or(0, |description| description.bytes.into())
    }

    /// Interpretation of the bits.
    pub fn numeric(self) -> Numeric {
        self.description().map_or(Uint, |description| description.numeric)
    }

    /// The channels from the lowest bit on.
    pub fn channels(self) -> &'static [ChannelBits] {
        self.description().map_or(&[], |description| &description.parts[..description.channels.into()])
    }

    /// Type of the components that a shader sees.
    pub fn class(self) -> Class {
        match self.numeric() {
            Uint => Class::Uint,
            Sint => Class::Sint,
            _ => Class::Float,
        }
    }

    /// Whether it is a depth format.
    pub fn is_depth(self) -> bool {
        (124..=126).contains(&self.0)
    }
}
