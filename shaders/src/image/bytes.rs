//! Linear filters over 8-bit channels in 16-bit integers: machine code filters 32 or 64 channels at once.
//!
//! Weights have 8 bits (`subTexelPrecisionBits`). The two weights along a row add up to [`STEPS`], and codes are
//! relative to the middle code, so that the sum of two products fits a signed 16-bit integer. Rows, and slices of a
//! volume, are mixed by weights that add up to 2^15; if both products are fractional, one rounds up and the other down.
//! So an image of one colour stays that colour. `STEPS` is the largest number below 256 for which one product by
//! [`NUMBER`] gives the correctly rounded quotient of every code.

use super::address::{PLACES, Span};
use super::format::{Format, Numeric};

/// The sum of two weights along a row.
pub(crate) const STEPS: u16 = 248;

/// From a texel's edge to its centre, in [`PLACES`], less half a step along a row: places are rounded down to steps.
pub(crate) const MIDDLE: f32 = PLACES / 2.0 - 132.0;

/// What is added to a mean: the negated mean of code 0.
pub(crate) const BIAS: i16 = 128 * STEPS as i16;

/// Factor from a mean, relative to the mean of code 0, to a number.
pub(crate) const NUMBER: f32 = (1.0 / (255.0 * STEPS as f64)) as f32;

/// Whether linear filters use this arithmetic for the format.
pub(super) fn mixes(format: Format) -> bool {
    format.numeric() == Numeric::Unorm && format.channels().iter().all(|part| part.bits == 8)
}

/// The weight of the second texel of a row, in steps.
#[inline(always)]
pub(super) fn step(part: u16) -> i32 {
    (i32::from(part) * i32::from(STEPS)) >> 16
}

/// Mix of two codes along a row.
#[inline(always)]
pub(super) fn along_row(a: i32, b: i32, step: i32) -> i32 {
    (a - 128) * (i32::from(STEPS) - step) + (b - 128) * step
}

/// The weight of the second of two rows: a multiple of 2^7, at most 2^15.
#[inline(always)]
pub(super) fn share(part: u16) -> i32 {
    i32::from(part >> 8) << 7
}

/// Mix of two rows or slices.
#[inline(always)]
pub(super) fn between(a: i32, b: i32, share: i32) -> i32 {
    let scaled = |half: i32, by: i32| (half * by + (1 << 14)) >> 15;
    scaled(b, share) - scaled(a, share - (1 << 15))
}

/// The number of a mean.
#[inline(always)]
pub(super) fn decode(mean: i32) -> f32 {
    (mean + i32::from(BIAS)) as f32 * NUMBER
}

/// The code of a number that need not be exact: a border colour, or the mean at a cube's corner.
pub(super) fn code(number: f32) -> i32 {
    number.round_ties_even().clamp(0.0, 255.0) as i32
}

/// The weight of the second texel along a dimension.
pub(super) fn weight(span: Span, dim: usize) -> i32 {
    if dim == 0 { step(span.part) } else { share(span.part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_colour_is_preserved_by_every_weight() {
        for code in 0..=255i32 {
            for part in (0..=u16::MAX).step_by(97) {
                let row = along_row(code, code, step(part));
                for other in (0..=u16::MAX).step_by(251) {
                    let mean = between(row, row, share(other));
                    assert_eq!(decode(mean), code as f32 / 255.0, "{code} by {part} and {other}");
                }
            }
        }
    }

    #[test]
    fn means_match_their_weights_and_fit_16_bits() {
        for (a, b, c, d) in [(0, 255, 255, 0), (255, 0, 0, 255), (0, 0, 255, 255), (13, 200, 77, 1), (0, 255, 0, 255)] {
            for part in (0..=u16::MAX).step_by(509) {
                for other in (0..=u16::MAX).step_by(251) {
                    let rows = [along_row(a, b, step(part)), along_row(c, d, step(part))];
                    let mean = between(rows[0], rows[1], share(other));
                    for half in [rows[0], rows[1], mean] {
                        assert!((-32_640..=32_640).contains(&half));
                    }
                    let x = f64::from(step(part)) / f64::from(STEPS);
                    let y = f64::from(other >> 8) / 256.0;
                    let top = f64::from(a) * (1.0 - x) + f64::from(b) * x;
                    let bottom = f64::from(c) * (1.0 - x) + f64::from(d) * x;
                    let expected = (top * (1.0 - y) + bottom * y) / 255.0;
                    let found = f64::from(decode(mean));
                    assert!((found - expected).abs() < 2.0 / 63_240.0, "{found} for {expected}");
                }
            }
        }
    }
}
