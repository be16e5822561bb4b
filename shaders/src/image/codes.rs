//! Linear filters mix normalised texels as codes: integers, which floats represent exactly.
//!
//! The mean of codes becomes a number by one division at the end. So each step of the mix rounds once, an image of one
//! colour stays that colour, and one division replaces four. Machine code and [`filter`](super::filter) do the same
//! operations in the same order. 8-bit codes are mixed in [`bytes`](super::bytes).

use super::format::{ChannelBits, Format, Numeric};
use super::texel::{Raw, take};

/// Bits of a channel for which [`quotient`] is correctly rounded, at most.
const MAX_BITS: u8 = 16;

/// Whether linear filters mix the format's codes; otherwise they mix the decoded numbers.
pub(super) fn mixes(format: Format) -> bool {
    let normalised = matches!(format.numeric(), Numeric::Unorm | Numeric::Snorm);
    normalised && format.channels().iter().all(|part| part.bits <= MAX_BITS)
}

/// The code of the number 1.
pub(super) fn max_code(numeric: Numeric, part: ChannelBits) -> f32 {
    let bits = if numeric == Numeric::Snorm { part.bits - 1 } else { part.bits };
    ((1u32 << bits) - 1) as f32
}

fn used(format: Format) -> impl Iterator<Item = &'static ChannelBits> {
    format.channels().iter().filter(|part| part.channel < 4)
}

/// The codes of a texel; a channel that the format lacks has its decoded number.
pub(super) fn of_texel(format: Format, raw: Raw) -> [f32; 4] {
    let mut codes = [0.0, 0.0, 0.0, 1.0];
    for &part in used(format) {
        let code = take(raw, part);
        codes[usize::from(part.channel)] = if format.numeric() == Numeric::Snorm {
            let unused = 32 - u32::from(part.bits);
            let code = (code << unused).cast_signed() >> unused;
            // The lowest two codes both decode to -1.
            (code as f32).max(-max_code(Numeric::Snorm, part))
        } else {
            code as f32
        };
    }
    codes
}

/// The codes of a colour: a border.
pub(super) fn encode(format: Format, mut numbers: [f32; 4]) -> [f32; 4] {
    for &part in used(format) {
        numbers[usize::from(part.channel)] *= max_code(format.numeric(), part);
    }
    numbers
}

/// Decodes codes, or a mean of codes.
pub(super) fn decode(format: Format, mut codes: [f32; 4]) -> [f32; 4] {
    for &part in used(format) {
        let code = &mut codes[usize::from(part.channel)];
        *code = quotient(*code, reciprocal(max_code(format.numeric(), part)));
    }
    codes
}

/// The high and the low part of a reciprocal.
pub(crate) const fn reciprocal(of: f32) -> [f32; 2] {
    let exact = 1.0 / of as f64;
    let high = exact as f32;
    [high, (exact - high as f64) as f32]
}

/// A code times a reciprocal: the correctly rounded quotient if the code is an integer.
#[inline(always)]
pub(super) fn quotient(code: f32, [high, low]: [f32; 2]) -> f32 {
    code.mul_add(high, code * low)
}

/// Mean of two codes; `weight` is that of the second.
#[inline(always)]
pub(super) fn mean(a: f32, b: f32, weight: f32) -> f32 {
    (b - a).mul_add(weight, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_with_two_part_reciprocals_are_quotients() {
        for bits in 1..=MAX_BITS {
            let max = ((1u32 << bits) - 1) as f32;
            for code in 0..1u32 << bits {
                let code = code as f32;
                let found = quotient(code, reciprocal(max));
                assert_eq!(found.to_bits(), (code / max).to_bits(), "{code} of {bits} bits");
            }
        }
    }

    #[test]
    fn codes_and_texels_decode_to_the_same_numbers() {
        for format in Format::all().filter(|&format| mixes(format)) {
            for word in (0..=u16::MAX).map(u32::from) {
                let raw = [word | word.wrapping_mul(40_503) << 16, word.wrapping_mul(48_271), 0, 0];
                let found = decode(format, of_texel(format, raw)).map(f32::to_bits);
                assert_eq!(found, super::super::decode(format, raw), "{format:?} {raw:x?}");
            }
        }
    }
}
