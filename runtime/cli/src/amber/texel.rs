//! Image formats by their Vulkan names: channels, their positions and encodings.

use half::f16;
use spelter_driver::vk;

use super::layout::{ScalarSlot, unsigned};
use super::number::{AmberScalar, Kind};

/// An image format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Texel {
    /// Its name without `VK_FORMAT_`.
    pub(crate) name: String,
    /// In the order of the name.
    pub(crate) channels: Vec<Channel>,
    /// For `_PACK16` and the like, the bits of the word; the first channel has its highest bits.
    packed: Option<u32>,
}

/// A channel of a texel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channel {
    /// `R`, `G`, `B`, `A`, `D`, `S`, or `X` for unused bits.
    pub(crate) name: char,
    /// Its number of bits.
    pub(crate) bits: u32,
    /// Their encoding.
    pub(crate) numeric: Numeric,
}

/// The encoding of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numeric {
    /// From 0 to 1.
    Unorm,
    /// From -1 to 1.
    Snorm,
    /// Unsigned integers, also `USCALED`.
    Uint,
    /// Signed integers, also `SSCALED`.
    Sint,
    /// Floats without sign.
    Ufloat,
    /// Floats.
    Sfloat,
    /// From 0 to 1 through the sRGB curve, alpha without it.
    Srgb,
}

impl Texel {
    /// A format by its name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (mut channels, mut packed): (Vec<Channel>, _) = (Vec::new(), None);
        let mut unknown = 0;
        for part in name.split('_') {
            if let Some(bits) = part.strip_prefix("PACK") {
                packed = Some(bits.parse().ok().filter(|bits| [8, 16, 32].contains(bits))?);
            } else if let Some(numeric) = Numeric::named(part) {
                channels[unknown..].iter_mut().for_each(|channel| channel.numeric = numeric);
                unknown = channels.len();
            } else {
                channels.extend(split(part)?);
            }
        }
        let whole = channels.iter().all(|channel| [8, 16, 32, 64].contains(&channel.bits));
        let bits: u32 = channels.iter().map(|channel| channel.bits).sum();
        let good = unknown > 0 && unknown == channels.len() && packed.map_or(whole, |packed| bits == packed);
        good.then(|| Self { name: name.to_owned(), channels, packed })
    }

    /// The format with `count` channels of a scalar type.
    pub(crate) fn of(scalar: AmberScalar, count: u32) -> Option<Self> {
        let numeric = match scalar.kind {
            Kind::Int => "SINT",
            Kind::Uint => "UINT",
            Kind::Float => "SFLOAT",
        };
        let channels: String =
            "RGBA".chars().take(count as usize).map(|name| format!("{name}{}", scalar.bits)).collect();
        Self::named(&format!("{channels}_{numeric}"))
    }

    /// The Vulkan format.
    pub(crate) fn vk(&self) -> Option<vk::Format> {
        // The formats of Vulkan 1.0, whose names print as they are written.
        (1..=184).map(vk::Format::from_raw).find(|format| format!("{format:?}") == self.name)
    }

    /// Bytes of a texel.
    pub(crate) fn bytes(&self) -> u32 {
        self.channels.iter().map(|channel| channel.bits).sum::<u32>() / 8
    }

    /// The scalars for which scripts give values: one for each channel, or the word of a packed format.
    pub(super) fn slots(&self) -> Vec<ScalarSlot> {
        if let Some(bits) = self.packed {
            return vec![ScalarSlot { offset: 0, scalar: unsigned(bits) }];
        }
        let mut offset = 0;
        let mut slots = Vec::new();
        for channel in &self.channels {
            if channel.name != 'X' {
                slots.push(ScalarSlot {
                    offset,
                    scalar: AmberScalar { kind: channel.numeric.kind(), bits: channel.bits },
                });
            }
            offset += channel.bits / 8;
        }
        slots
    }

    /// The values of a texel's channels, in the order of the name.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Vec<(Channel, f64)> {
        let texel = bytes.iter().take(16).rev().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
        let all = self.channels.iter().map(|channel| channel.bits).sum::<u32>();
        let mut before = 0;
        let mut values = Vec::new();
        for &channel in &self.channels {
            let shift = if self.packed.is_some() { all - before - channel.bits } else { before };
            let bits = (texel >> shift) as u64 & (u64::MAX >> (64 - channel.bits));
            before += channel.bits;
            values.push((channel, channel.value(bits)));
        }
        values
    }
}

/// `R8G8B8A8`.
fn split(part: &str) -> Option<Vec<Channel>> {
    let mut channels = Vec::new();
    let mut rest = part;
    while let Some(name) = rest.chars().next() {
        let digits = rest.get(1..)?;
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let bits = digits[..end].parse().ok().filter(|bits| (1..=64).contains(bits))?;
        "RGBADSX".contains(name).then_some(())?;
        channels.push(Channel { name, bits, numeric: Numeric::Uint });
        rest = &digits[end..];
    }
    (!channels.is_empty() && channels.len() <= 4).then_some(channels)
}

impl Numeric {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "UNORM" => Self::Unorm,
            "SNORM" => Self::Snorm,
            "UINT" | "USCALED" => Self::Uint,
            "SINT" | "SSCALED" => Self::Sint,
            "UFLOAT" => Self::Ufloat,
            "SFLOAT" => Self::Sfloat,
            "SRGB" => Self::Srgb,
            _ => return None,
        })
    }

    /// The kind of scalar for its values in scripts: normalized values are given as integers.
    fn kind(self) -> Kind {
        match self {
            Self::Unorm | Self::Uint | Self::Srgb | Self::Ufloat => Kind::Uint,
            Self::Snorm | Self::Sint => Kind::Int,
            Self::Sfloat => Kind::Float,
        }
    }
}

impl Channel {
    /// Whether its values are integers.
    pub(crate) fn is_integer(self) -> bool {
        matches!(self.numeric, Numeric::Uint | Numeric::Sint)
    }

    /// The value of its bits.
    fn value(self, bits: u64) -> f64 {
        let max_of = |bits: u32| ((1u128 << bits) - 1) as f64;
        let signed = (((bits << (64 - self.bits)) as i64) >> (64 - self.bits)) as f64;
        match self.numeric {
            Numeric::Uint => bits as f64,
            Numeric::Sint => signed,
            Numeric::Unorm => bits as f64 / max_of(self.bits),
            Numeric::Snorm => (signed / max_of(self.bits - 1)).max(-1.0),
            Numeric::Srgb if self.name == 'A' => bits as f64 / max_of(self.bits),
            Numeric::Srgb => from_srgb(bits as f64 / max_of(self.bits)),
            Numeric::Sfloat => match self.bits {
                64 => f64::from_bits(bits),
                32 => f32::from_bits(bits as u32).into(),
                _ => f16::from_bits(bits as u16).to_f64(),
            },
            // Like a half: five exponent bits, but no sign and fewer significand bits.
            Numeric::Ufloat => f16::from_bits((bits << (15 - self.bits.min(15))) as u16).to_f64(),
        }
    }
}

/// Data Format Specification, "sRGB EOTF".
fn from_srgb(value: f64) -> f64 {
    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(name: &str, bytes: &[u8]) -> Vec<(char, f64)> {
        let texel = Texel::named(name).unwrap_or_else(|| panic!("{name}"));
        texel.decode(bytes).into_iter().map(|(channel, value)| (channel.name, value)).collect()
    }

    #[test]
    fn names_are_vulkans() {
        for name in ["R8G8B8A8_UNORM", "B10G11R11_UFLOAT_PACK32", "R32_SINT", "R64_SINT", "D32_SFLOAT_S8_UINT"] {
            let texel = Texel::named(name).unwrap_or_else(|| panic!("{name}"));
            assert!(texel.vk().is_some(), "{name}");
        }
        for wrong in ["R8", "UNORM", "R8_FOO", "Q8_UINT", "R5G6B5_UNORM", "R5G6B5_UNORM_PACK32", "R8_UINT_G8", ""] {
            assert_eq!(Texel::named(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn channels_are_where_the_name_says() {
        assert_eq!(values("R8G8_UINT", &[1, 2]), [('R', 1.0), ('G', 2.0)]);
        assert_eq!(values("R5G6B5_UNORM_PACK16", &0xf800u16.to_le_bytes()), [('R', 1.0), ('G', 0.0), ('B', 0.0)]);
        assert_eq!(values("B8G8R8A8_UNORM", &[255, 0, 0, 255])[0], ('B', 1.0));
        assert_eq!(values("R8_SNORM", &[0x80]), [('R', -1.0)]);
        assert_eq!(values("R16_SFLOAT", &0x3e00u16.to_le_bytes()), [('R', 1.5)]);
        // 1.5 with 11 bits: exponent 15, significand 100000; with 10 bits: 10000.
        let packed = (0x1f0u32 << 22) | (0x3e0 << 11) | 0x3e0;
        assert_eq!(values("B10G11R11_UFLOAT_PACK32", &packed.to_le_bytes()), [('B', 1.5), ('G', 1.5), ('R', 1.5)]);
        assert!((values("R8_SRGB", &[188])[0].1 - 0.5).abs() < 0.01);
    }
}
