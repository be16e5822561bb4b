//! Comparison of the memory after two runs of a kernel.

use super::memory::Memory;
use crate::fuzz::{Finding, finding};

/// Tolerated differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tolerance {
    /// Which NaN a float is, of 32 or of 16 bits.
    Nan,
    /// Also the last bits of floats, and integers that were rounded from them.
    Rough,
}

/// Relative difference of floats that are roughly equal: sums of many rounded products among them.
const FLOAT: f32 = 1e-2;

/// The same for halves.
const HALF: f32 = 0.1;

/// Smaller differences are the remainders of sums.
const SMALL: f32 = 1e-3;

/// Compares the memory after two runs, except for bytes with races.
pub(super) fn compare(
    memory: &Memory,
    subject: &str,
    expected: &[u8],
    got: &[u8],
    racing: Option<&[bool]>,
    tolerance: Tolerance,
) -> Result<(), Finding> {
    let words = expected.chunks(4).zip(got.chunks(4)).enumerate();
    let mut differing = words.filter(|(at, (a, b))| {
        let races = || racing.is_some_and(|racing| racing.iter().skip(4 * at).take(4).any(|racing| *racing));
        a != b && !same(word_of(a), word_of(b), tolerance) && !races()
    });
    let Some((at, (a, b))) = differing.next() else { return Ok(()) };
    let (a, b) = (word_of(a), word_of(b));
    let more = differing.count();
    let show = |word: u32| format!("0x{word:08x} ({}, {})", word.cast_signed(), f32::from_bits(word));
    match memory.descriptor_of(4 * at) {
        None => {
            let detail = format!("byte {} of the arena, and {more} words more", 4 * at);
            Err(finding(&format!("{subject}: writes out of bounds"), detail))
        }
        Some((descriptor, first)) => {
            let detail = format!(
                "descriptor {descriptor}, byte {}: expected {}, got {}; {more} words more",
                4 * at - first,
                show(a),
                show(b)
            );
            let what = if tolerance == Tolerance::Rough { "other numbers" } else { "wrong memory" };
            Err(finding(&format!("{subject}: {what}"), detail))
        }
    }
}

fn word_of(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

fn same(a: u32, b: u32, tolerance: Tolerance) -> bool {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let halves = [(a, b), (a >> 16, b >> 16)].map(|(a, b)| (half(a as u16), half(b as u16), a as u16 == b as u16));
    let rough = tolerance == Tolerance::Rough;
    let near = |x: f32, y: f32, most: f32| (x - y).abs() <= most * x.abs().max(y.abs()) + SMALL;
    let bytes = || (0..4).all(|at| ((a >> (8 * at) & 0xff).abs_diff(b >> (8 * at) & 0xff) + 1) & 0xff <= 2);
    x.is_nan() && y.is_nan()
        || halves.iter().all(|(x, y, same)| *same || x.is_nan() && y.is_nan())
        || rough && (near(x, y, FLOAT) || a.abs_diff(b) <= 2 || bytes())
        || rough && halves.iter().all(|(x, y, same)| *same || x.is_nan() && y.is_nan() || near(*x, *y, HALF))
}

fn half(bits: u16) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f32::from(bits & 0x3ff));
    let magnitude = match exponent {
        31 if mantissa != 0.0 => f32::NAN,
        31 => f32::INFINITY,
        0 => mantissa * 2f32.powi(-24),
        _ => (1024.0 + mantissa) * 2f32.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}
