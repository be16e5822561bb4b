//! Texel encoding and decoding: Vulkan's conversions, correctly rounded.
//!
//! Decoding rounds at most once, in a quotient. Encoding clamps to the format's range and rounds to nearest, ties to
//! even; NaN becomes 0 if the format has no NaN.

use half::f16;
use spelter_locks::Computed;

use super::format::{ChannelBits, Class, Description, Format, Numeric};
use crate::guest::GuestSlice;

/// The bits of a texel, lowest word first.
pub(super) type Raw = [u32; 4];

/// The bytes of a texel of `bytes` bytes at `offset`; bytes outside the memory are 0.
pub fn load_raw(memory: GuestSlice, offset: u64, bytes: u32) -> Raw {
    let mut raw = [0; 4];
    if !bytes.is_multiple_of(4) {
        for at in 0..bytes {
            let byte = memory.load_u8(offset + u64::from(at));
            raw[at as usize / 4] |= u32::from(byte) << (at % 4 * 8);
        }
        return raw;
    }
    for (at, word) in (0..u64::from(bytes) / 4).zip(&mut raw) {
        *word = memory.load_u32(offset + at * 4);
    }
    raw
}

/// Stores a texel as [`load_raw`] loads it.
pub fn store_raw(memory: GuestSlice, offset: u64, bytes: u32, raw: Raw) {
    if !bytes.is_multiple_of(4) {
        for at in 0..bytes {
            memory.store_u8(offset + u64::from(at), (raw[at as usize / 4] >> (at % 4 * 8)) as u8);
        }
        return;
    }
    for (at, word) in (0..u64::from(bytes) / 4).zip(raw) {
        memory.store_u32(offset + at * 4, word);
    }
}

pub(super) fn take(raw: Raw, part: ChannelBits) -> u32 {
    // No channel spans two words.
    let word = raw[usize::from(part.shift / 32)] >> (part.shift % 32);
    if part.bits == 32 { word } else { word & ((1 << part.bits) - 1) }
}

fn put(raw: &mut Raw, part: ChannelBits, value: u32) {
    let value = if part.bits == 32 { value } else { value & ((1 << part.bits) - 1) };
    raw[usize::from(part.shift / 32)] |= value << (part.shift % 32);
}

/// Decodes a texel to red, green, blue and alpha, floats as their bits. Channels that the format lacks are 0; alpha is
/// 1.
pub fn decode(format: Format, raw: Raw) -> [u32; 4] {
    let Some(description) = format.description() else { return [0; 4] };
    let one = if format.class() == Class::Float { 1f32.to_bits() } else { 1 };
    let mut texel = [0, 0, 0, one];
    if description.numeric == Numeric::SharedExponent {
        let exponent = (raw[0] >> 27).cast_signed() - 15 - 9;
        for (channel, value) in texel.iter_mut().take(3).enumerate() {
            let mantissa = raw[0] >> (9 * channel) & 0x1ff;
            *value = (mantissa as f32 * power_of_two(exponent)).to_bits();
        }
        return texel;
    }
    for &part in used(description) {
        texel[usize::from(part.channel)] = decode_channel(description.numeric, part, take(raw, part));
    }
    texel
}

fn used(description: &Description) -> impl Iterator<Item = &ChannelBits> {
    description.parts.iter().filter(|part| part.channel < 4 && part.bits > 0)
}

fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) << 23).cast_unsigned())
}

fn decode_channel(numeric: Numeric, part: ChannelBits, code: u32) -> u32 {
    let signed = || (code << (32 - part.bits)).cast_signed() >> (32 - part.bits);
    let max = |bits: u8| ((1u64 << bits) - 1) as f32;
    match numeric {
        Numeric::Unorm => (code as f32 / max(part.bits)).to_bits(),
        Numeric::Snorm => (signed() as f32 / max(part.bits - 1)).max(-1.0).to_bits(),
        Numeric::Uscaled => (code as f32).to_bits(),
        Numeric::Sscaled => (signed() as f32).to_bits(),
        Numeric::Uint => code,
        Numeric::Sint => signed().cast_unsigned(),
        Numeric::Srgb if part.channel == 3 => (code as f32 / max(part.bits)).to_bits(),
        Numeric::Srgb => srgb()[code as usize & 0xff].to_bits(),
        Numeric::Sfloat if part.bits == 16 => f16::from_bits(code as u16).to_f32().to_bits(),
        Numeric::Sfloat => code,
        Numeric::Ufloat => ufloat(code, part.bits - 5).to_bits(),
        Numeric::SharedExponent => 0,
    }
}

/// An unsigned float with 5 exponent bits and `mantissa_bits` mantissa bits.
fn ufloat(code: u32, mantissa_bits: u8) -> f32 {
    // Padded with zero bits it is a half without its sign.
    f16::from_bits((code << (10 - mantissa_bits)) as u16).to_f32()
}

/// Encodes a texel that a shader stores.
pub fn encode(format: Format, texel: [u32; 4]) -> Raw {
    let mut raw = [0; 4];
    let Some(description) = format.description() else { return raw };
    if description.numeric == Numeric::SharedExponent {
        raw[0] = shared_exponent([0, 1, 2].map(|channel| f32::from_bits(texel[channel])));
        return raw;
    }
    for &part in used(description) {
        put(&mut raw, part, encode_channel(description.numeric, part, texel[usize::from(part.channel)]));
    }
    raw
}

fn encode_channel(numeric: Numeric, part: ChannelBits, bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    // Products of 24- and 32-bit numbers are exact in 64 bits; `as` converts NaN to 0.
    let round = |value: f32, factor: u64| (f64::from(value) * factor as f64).round_ties_even() as i64 as u32;
    let max = (1u64 << part.bits) - 1;
    let half = max >> 1;
    match numeric {
        Numeric::Unorm => round(value.clamp(0.0, 1.0), max),
        Numeric::Snorm => round(value.clamp(-1.0, 1.0), half),
        Numeric::Uscaled => round(value.clamp(0.0, max as f32), 1),
        Numeric::Sscaled => round(value.clamp(-(half as f32) - 1.0, half as f32), 1),
        // Vulkan leaves integers out of range undefined; WGSL clamps them (its chapter on texel formats).
        Numeric::Uint => u64::from(bits).min(max) as u32,
        Numeric::Sint => {
            let max = half.cast_signed();
            i64::from(bits.cast_signed()).clamp(-max - 1, max) as u32
        }
        Numeric::Srgb if part.channel == 3 => round(value.clamp(0.0, 1.0), max),
        Numeric::Srgb => srgb_code(value),
        Numeric::Sfloat if part.bits == 16 => f16::from_f32(value).to_bits().into(),
        Numeric::Sfloat => bits,
        Numeric::Ufloat => ufloat_code(value, part.bits - 5),
        Numeric::SharedExponent => 0,
    }
}

/// The nearest unsigned float: negative numbers become 0, finite ones stay finite.
fn ufloat_code(value: f32, mantissa_bits: u8) -> u32 {
    let infinity = 31 << mantissa_bits;
    if value.is_nan() {
        return infinity | 1 << (mantissa_bits - 1);
    }
    if value <= 0.0 {
        return 0;
    }
    if value.is_infinite() {
        return infinity;
    }
    // Units in the last place; denormals have those of the lowest exponent.
    let exponent = ((value.to_bits() >> 23).cast_signed() - 127).max(-14);
    let units = f64::from(value) / 2f64.powi(exponent - i32::from(mantissa_bits));
    let units = units.round_ties_even() as u32;
    let code = ((exponent + 14).cast_unsigned() << mantissa_bits) + units;
    code.min(infinity - 1)
}

/// `VK_FORMAT_E5B9G9R9_UFLOAT_PACK32` (Khronos Data Format, "Unsigned Shared Exponent").
fn shared_exponent(values: [f32; 3]) -> u32 {
    const MAX_SHARED_EXPONENT: f32 = 65408.0;
    let clamped = values.map(|value| if value > 0.0 { value.min(MAX_SHARED_EXPONENT) } else { 0.0 });
    let largest = clamped.iter().copied().fold(0f32, f32::max);
    let floor = (largest.to_bits() >> 23).cast_signed() - 127;
    let mut exponent = floor.max(-16) + 16;
    let code = |value: f32, exponent: i32| (f64::from(value) / 2f64.powi(exponent - 24) + 0.5).floor() as u32;
    if code(largest, exponent) == 512 {
        exponent += 1;
    }
    let [r, g, b] = clamped.map(|value| code(value, exponent));
    r | g << 9 | b << 18 | exponent.cast_unsigned() << 27
}

/// The sRGB decoding of every code, correctly rounded.
fn srgb() -> &'static [f32; 256] {
    static DECODED: Computed<[f32; 256]> = Computed::new();
    DECODED.get_or_compute(|| {
        std::array::from_fn(|code| {
            let value = code as f64 / 255.0;
            let linear = if value <= 0.04045 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) };
            linear as f32
        })
    })
}

fn srgb_code(value: f32) -> u32 {
    let value = f64::from(value.clamp(0.0, 1.0));
    let curved = if value <= 0.0031308 { value * 12.92 } else { 1.055 * libm::pow(value, 1.0 / 2.4) - 0.055 };
    (curved * 255.0).round_ties_even() as i64 as u32
}
