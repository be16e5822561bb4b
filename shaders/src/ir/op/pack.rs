//! Normalized integers: 8 or 16 bits, signed or unsigned. Packing yields the low bits of a word, zero-extended;
//! unpacking reads the low bits only. The front end shifts components into place.

use super::float::fclamp;

/// Clamps `a` to `low` and 1, scales it, and rounds to nearest even; 0 for NaN.
fn scaled(a: f32, low: f32, scale: f32) -> i32 {
    if a.is_nan() { 0 } else { (fclamp(a, low, 1.0) * scale).round_ties_even() as i32 }
}

/// [-1, 1] to 8 bits (a component of `PackSnorm4x8`).
pub fn pack_snorm8(a: f32) -> u32 {
    scaled(a, -1.0, 127.0).cast_unsigned() & 0xff
}

/// [0, 1] to 8 bits (a component of `PackUnorm4x8`).
pub fn pack_unorm8(a: f32) -> u32 {
    scaled(a, 0.0, 255.0).cast_unsigned()
}

/// [-1, 1] to 16 bits (a component of `PackSnorm2x16`).
pub fn pack_snorm16(a: f32) -> u32 {
    scaled(a, -1.0, 32767.0).cast_unsigned() & 0xffff
}

/// [0, 1] to 16 bits (a component of `PackUnorm2x16`).
pub fn pack_unorm16(a: f32) -> u32 {
    scaled(a, 0.0, 65535.0).cast_unsigned()
}

/// [-1, 1] from the low 8 bits (a component of `UnpackSnorm4x8`).
pub fn unpack_snorm8(a: u32) -> f32 {
    (f32::from(a as u8 as i8) / 127.0).max(-1.0)
}

/// [0, 1] from the low 8 bits (a component of `UnpackUnorm4x8`).
pub fn unpack_unorm8(a: u32) -> f32 {
    f32::from(a as u8) / 255.0
}

/// [-1, 1] from the low 16 bits (a component of `UnpackSnorm2x16`).
pub fn unpack_snorm16(a: u32) -> f32 {
    (f32::from(a as u16 as i16) / 32767.0).max(-1.0)
}

/// [0, 1] from the low 16 bits (a component of `UnpackUnorm2x16`).
pub fn unpack_unorm16(a: u32) -> f32 {
    f32::from(a as u16) / 65535.0
}
