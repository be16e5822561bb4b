//! Linear filters over channels of 8 bits, in whole numbers of 16 bits: what machines do to 32 or 64 channels at once.
//!
//! Weights have 8 bits, as the device says (`subTexelPrecisionBits`). Along a row two weights are [`STEPS`] together, and codes count from
//! the middle, so that the sum of two products fits a signed half. Rows, and slices of a volume, are mixed by weights that are 2^15
//! together, one rounded up and one down where both lie between: so an image of one colour stays that colour. `STEPS` is the most below
//! 256 for which one product by [`NUMBER`] gives the right quotient of every code.

use super::address::{PLACES, Span};
use super::format::{Format, Numeric};

/// The sum of two weights along a row.
pub(crate) const STEPS: u16 = 248;

/// From a texel's edge to its middle, in [`PLACES`], less half a step along a row: places are rounded down to steps.
pub(crate) const MIDDLE: f32 = PLACES / 2.0 - 132.0;

/// What a mean of the code 0 is below 0.
pub(crate) const LEAST: i16 = 128 * STEPS as i16;

/// What turns a mean, counted from that of code 0, into a number.
pub(crate) const NUMBER: f32 = (1.0 / (255.0 * STEPS as f64)) as f32;

/// Whether linear filters mix the format so.
pub(super) fn mixes(format: Format) -> bool {
    format.numeric() == Numeric::Unorm && format.parts().iter().all(|part| part.bits == 8)
}

/// The weight of the second texel of a row, in steps.
#[inline(always)]
pub(super) fn step(part: u16) -> i32 {
    (i32::from(part) * i32::from(STEPS)) >> 16
}

/// Two codes of a row, mixed.
#[inline(always)]
pub(super) fn along_row(a: i32, b: i32, step: i32) -> i32 {
    (a - 128) * (i32::from(STEPS) - step) + (b - 128) * step
}

/// The weight of the second of two rows: of 2^15, a multiple of 2^7.
#[inline(always)]
pub(super) fn share(part: u16) -> i32 {
    i32::from(part >> 8) << 7
}

/// Two rows or slices, mixed.
#[inline(always)]
pub(super) fn between(a: i32, b: i32, share: i32) -> i32 {
    let scaled = |half: i32, by: i32| (half * by + (1 << 14)) >> 15;
    scaled(b, share) - scaled(a, share - (1 << 15))
}

/// The number that a mean is.
#[inline(always)]
pub(super) fn number(mean: i32) -> f32 {
    (mean + i32::from(LEAST)) as f32 * NUMBER
}

/// A code, of what need not be a whole one: a border, or a corner of a cube.
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
    fn a_colour_stays_as_it_is_by_every_weight() {
        for code in 0..=255i32 {
            for part in (0..=u16::MAX).step_by(97) {
                let row = along_row(code, code, step(part));
                for other in (0..=u16::MAX).step_by(251) {
                    let mean = between(row, row, share(other));
                    assert_eq!(number(mean), code as f32 / 255.0, "{code} by {part} and {other}");
                }
            }
        }
    }

    #[test]
    fn means_are_what_weights_say_and_fit_halves() {
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
                    let found = f64::from(number(mean));
                    assert!((found - expected).abs() < 2.0 / 63_240.0, "{found} for {expected}");
                }
            }
        }
    }
}
