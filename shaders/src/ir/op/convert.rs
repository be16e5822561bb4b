//! Conversions between types, and reinterpretation of bits. Every conversion is defined for every input.

use half::f16;

/// 0 or 1.
pub fn bool_to_int(a: bool) -> u32 {
    u32::from(a)
}

/// The bits of a float (`OpBitcast`).
pub fn float_bits(a: f32) -> u32 {
    a.to_bits()
}

/// The float of these bits (`OpBitcast`).
pub fn float_from_bits(a: u32) -> f32 {
    f32::from_bits(a)
}

/// Rounds towards zero (`OpConvertFToU`); saturates if out of range, 0 for NaN.
pub fn float_to_uint(a: f32) -> u32 {
    a as u32
}

/// Rounds towards zero (`OpConvertFToS`); saturates if out of range, 0 for NaN.
pub fn float_to_sint(a: f32) -> i32 {
    a as i32
}

/// Rounds down, with the x86 result `i32::MIN` for NaN and out-of-range inputs.
pub fn floor_to_sint(a: f32) -> i32 {
    in_range(a.floor())
}

/// Rounds to nearest, ties to even; `i32::MIN` for NaN and out-of-range inputs.
pub fn round_to_sint(a: f32) -> i32 {
    in_range(a.round_ties_even())
}

fn in_range(whole: f32) -> i32 {
    // The limits are exact in double precision.
    let exact = f64::from(whole);
    if exact >= f64::from(i32::MIN) && exact <= f64::from(i32::MAX) { whole as i32 } else { i32::MIN }
}

/// Nearest float, ties to even (`OpConvertUToF`).
pub fn uint_to_float(a: u32) -> f32 {
    a as f32
}

/// Nearest float, ties to even (`OpConvertSToF`).
pub fn sint_to_float(a: i32) -> f32 {
    a as f32
}

/// Rounds to a half (`OpQuantizeToF16`): overflow gives infinity, a denormal result becomes a zero of the same sign.
pub fn quantize_f16(a: f32) -> f32 {
    let rounded = f16::from_f32_const(a);
    if rounded.is_normal() || !rounded.is_finite() { rounded.to_f32_const() } else { 0f32.copysign(a) }
}

/// Rounds to the nearest half, ties to even; denormals are kept (`OpFConvert`).
pub fn round_half(a: f32) -> f32 {
    f16::from_f32_const(a).to_f32_const()
}

/// The bits of the nearest half, ties to even, in the low 16 bits (`PackHalf2x16`).
pub fn half_bits(a: f32) -> u32 {
    u32::from(f16::from_f32_const(a).to_bits())
}

/// The float of the half in the low 16 bits (`UnpackHalf2x16`); denormals are kept.
pub fn half_from_bits(a: u32) -> f32 {
    f16::from_bits(a as u16).to_f32_const()
}
