//! Normalised integers: fractions of 1 in 8 or 16 bits, signed or not. Packing yields the low bits of a word with zeros
//! above, unpacking looks at the low bits only; the front end shifts components to their places.

use super::float::fclamp;

/// `a` held between `low` and 1, scaled, rounded to nearest even; 0 for NaN.
fn scaled(a: f32, low: f32, scale: f32) -> i32 {
    if a.is_nan() { 0 } else { (fclamp(a, low, 1.0) * scale).round_ties_even() as i32 }
}

/// -1 to 1 in 8 bits (a component of `PackSnorm4x8`).
pub fn pack_snorm8(a: f32) -> u32 {
    scaled(a, -1.0, 127.0).cast_unsigned() & 0xff
}

/// 0 to 1 in 8 bits (a component of `PackUnorm4x8`).
pub fn pack_unorm8(a: f32) -> u32 {
    scaled(a, 0.0, 255.0).cast_unsigned()
}

/// -1 to 1 in 16 bits (a component of `PackSnorm2x16`).
pub fn pack_snorm16(a: f32) -> u32 {
    scaled(a, -1.0, 32767.0).cast_unsigned() & 0xffff
}

/// 0 to 1 in 16 bits (a component of `PackUnorm2x16`).
pub fn pack_unorm16(a: f32) -> u32 {
    scaled(a, 0.0, 65535.0).cast_unsigned()
}

/// -1 to 1 from the low 8 bits (a component of `UnpackSnorm4x8`).
pub fn unpack_snorm8(a: u32) -> f32 {
    (f32::from(a as u8 as i8) / 127.0).max(-1.0)
}

/// 0 to 1 from the low 8 bits (a component of `UnpackUnorm4x8`).
pub fn unpack_unorm8(a: u32) -> f32 {
    f32::from(a as u8) / 255.0
}

/// -1 to 1 from the low 16 bits (a component of `UnpackSnorm2x16`).
pub fn unpack_snorm16(a: u32) -> f32 {
    (f32::from(a as u16 as i16) / 32767.0).max(-1.0)
}

/// 0 to 1 from the low 16 bits (a component of `UnpackUnorm2x16`).
pub fn unpack_unorm16(a: u32) -> f32 {
    f32::from(a as u16) / 65535.0
}
