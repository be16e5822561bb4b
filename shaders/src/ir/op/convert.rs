//! Conversions between types and between views of the same bits.

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
