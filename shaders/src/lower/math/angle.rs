//! Argument reduction to -π/4 .. π/4 (plus at most a hundredth), with the number of quarter turns that were subtracted.
//!
//! Up to 2^18, three constants that add up to π/2 suffice: a fused multiply-add leaves the difference exact. Larger
//! angles need the digits of 2/π that their exponent selects (Payne and Hanek). That is integer arithmetic in a
//! separate block, which vectors without such an angle skip.

use std::f32::consts::{FRAC_2_PI, FRAC_PI_2};

use super::emit::Emit;
use crate::ir::Value;

/// Above this the number of quarter turns is too inexact for a remainder of at most π/4 and a hundredth.
const LARGE: f32 = 262_144.0;

/// 1.5 × 2^23: adding it to a small number leaves the nearest integer in the low bits.
const TO_INTEGER: f32 = 12_582_912.0;

/// π/2 in three parts, negated.
const MINUS_HALF_PI: [f32; 3] = [-FRAC_PI_2, 4.371_139e-8, 1.715_124_5e-15];

/// The quarter turns in the magnitude of `a`, modulo 4 in the low bits, and the remaining angle. NaN for infinity.
pub(super) fn reduce(e: &mut Emit<'_>, a: Value) -> [Value; 2] {
    let size = e.fabs(a);
    let moved = e.fma(size, FRAC_2_PI, TO_INTEGER);
    let turns = e.float_bits(moved);
    let whole = e.fsub(moved, TO_INTEGER);
    let rest = MINUS_HALF_PI.iter().fold(size, |rest, &part| e.fma(whole, part, rest));
    let large = e.ford_lt(LARGE, size);
    e.rarely(large, [turns, rest], |e| reduce_large(e, size))
}

/// 2/π in binary, starting with the digit of weight 64.
const DIGITS: [u32; 7] = [0x0145_f306, 0xdc9c_882a, 0x53f8_4eaf, 0xa3ea_69bb, 0x81b6_c52b, 0x3278_8720, 0x83fc_a2c7];

/// Multiplies the significand by 96 digits of 2/π: higher digits give whole turns, lower ones are negligible.
fn reduce_large(e: &mut Emit<'_>, size: Value) -> [Value; 2] {
    let bits = e.float_bits(size);
    let exponent = e.lshr(bits, 23u32);
    let first = e.isub(exponent, 127u32 + 18);
    let window = digits(e, first);
    let significand = e.and(bits, 0x007f_ffffu32);
    let significand = e.or(significand, 0x0080_0000u32);

    // Quarter turns in fixed point: 2 integer digits and 62 fraction digits.
    let high = e.imul(significand, window[0]);
    let middle = e.umul_high(significand, window[1]);
    let low = e.imul(significand, window[1]);
    let carried = e.umul_high(significand, window[2]);
    let low = e.iadd(low, carried);
    let carry = e.ult(low, carried);
    let carry = e.bool_to_int(carry);
    let high = e.iadd(high, middle);
    let high = e.iadd(high, carry);

    // The nearest integer, and the signed remainder, in which 2^32 is a quarter turn.
    let rounded = e.iadd(high, 0x2000_0000u32);
    let turns = e.lshr(rounded, 30u32);
    let up = e.shl(high, 2u32);
    let from_low = e.lshr(low, 30u32);
    let rest = e.or(up, from_low);
    // The high digits without the last 8, exactly, plus the last 8 with 24 more: one rounding.
    let coarse = e.and(rest, 0xffff_ff00u32);
    let coarse = e.sint_to_float(coarse);
    let fine_high = e.shl(rest, 24u32);
    let fine_low = e.lshr(low, 6u32);
    let fine_low = e.and(fine_low, 0x00ff_ffffu32);
    let fine = e.or(fine_high, fine_low);
    let fine = e.uint_to_float(fine);
    let rest = e.fma(fine, 1.0 / 16_777_216f32, coarse);
    let unit = FRAC_PI_2 / 4_294_967_296f32;
    let excess = e.fmul(rest, -4.371_139e-8 / 4_294_967_296f32);
    let rest = e.fma(rest, unit, excess);
    let finite = e.ford_lt(size, f32::INFINITY);
    [turns, e.select(finite, rest, f32::NAN)]
}

/// 96 digits of 2/π, starting at digit `first`, which is less than 128.
fn digits(e: &mut Emit<'_>, first: Value) -> [Value; 3] {
    let [skip_two, skip_one] = [64u32, 32].map(|digits| {
        let bit = e.and(first, digits);
        e.ine(bit, 0u32)
    });
    let pairs: [Value; 5] = std::array::from_fn(|position| e.select(skip_two, DIGITS[position + 2], DIGITS[position]));
    let words: [Value; 4] = std::array::from_fn(|position| e.select(skip_one, pairs[position + 1], pairs[position]));
    // Shifts count modulo 32: the next word is shifted right by 31 - first and then by one more.
    let others = e.not(first);
    std::array::from_fn(|position| {
        let high = e.shl(words[position], first);
        let low = e.lshr(words[position + 1], 1u32);
        let low = e.lshr(low, others);
        e.or(high, low)
    })
}
