//! Packing of normalised integers and half floats.

use super::emit::Emit;
use super::float::clamp;
use crate::ir::{Op, Value};

/// 1.5 × 2^23: adding it to a small number leaves the nearest integer, ties to even, in the low bits.
const TO_INTEGER: f32 = 12_582_912.0;

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    let &[a] = args else { return None };
    Some(match op {
        Op::PackSnorm8 => pack_signed(e, a, 127.0, 0xff),
        Op::PackSnorm16 => pack_signed(e, a, 32767.0, 0xffff),
        Op::PackUnorm8 => pack_unsigned(e, a, 255.0, 0xff),
        Op::PackUnorm16 => pack_unsigned(e, a, 65535.0, 0xffff),
        Op::UnpackSnorm8 => unpack_signed(e, a, 24, 127.0),
        Op::UnpackSnorm16 => unpack_signed(e, a, 16, 32767.0),
        Op::UnpackUnorm8 => unpack_unsigned(e, a, 0xff, 255.0),
        Op::UnpackUnorm16 => unpack_unsigned(e, a, 0xffff, 65535.0),
        Op::QuantizeF16 => quantize(e, a),
        _ => return None,
    })
}

fn pack_signed(e: &mut Emit<'_>, a: Value, scale: f32, mask: u32) -> Value {
    let number = e.ford_eq(a, a);
    let a = e.select(number, a, 0f32);
    let a = clamp(e, a, -1f32, 1f32);
    integer(e, a, scale, mask)
}

fn pack_unsigned(e: &mut Emit<'_>, a: Value, scale: f32, mask: u32) -> Value {
    // NaN becomes the lower limit, as required.
    let a = clamp(e, a, 0f32, 1f32);
    integer(e, a, scale, mask)
}

fn integer(e: &mut Emit<'_>, a: Value, scale: f32, mask: u32) -> Value {
    // Two roundings, as the operation is defined.
    let scaled = e.fmul(a, scale);
    let moved = e.fadd(scaled, TO_INTEGER);
    let bits = e.float_bits(moved);
    e.and(bits, mask)
}

fn unpack_signed(e: &mut Emit<'_>, a: Value, shift: u32, scale: f32) -> Value {
    let up = e.shl(a, shift);
    let integer = e.ashr(up, shift);
    let number = e.sint_to_float(integer);
    let number = quotient(e, number, scale);
    e.fmax(number, -1f32)
}

fn unpack_unsigned(e: &mut Emit<'_>, a: Value, mask: u32, scale: f32) -> Value {
    let integer = e.and(a, mask);
    let number = e.sint_to_float(integer);
    quotient(e, number, scale)
}

/// `a / scale`, rounded once: the reciprocal in two parts. Exact for all integers that are unpacked.
fn quotient(e: &mut Emit<'_>, a: Value, scale: f32) -> Value {
    let high = 1.0 / scale;
    let low = (1.0 / f64::from(scale) - f64::from(high)) as f32;
    let rest = e.fmul(a, low);
    e.fma(a, high, rest)
}

fn quantize(e: &mut Emit<'_>, a: Value) -> Value {
    let half = e.half_bits(a);
    let rounded = e.half_from_bits(half);
    let size = e.fabs(rounded);
    let denormal = e.ford_lt(size, 6.103_515_6e-5f32);
    let zero = e.sign_bit(a);
    let zero = e.float_from_bits(zero);
    e.select(denormal, zero, rounded)
}
