//! SIMD within a word: operations on four bytes or two half-words, for texture filters. Front ends do not emit them;
//! the vectorizer does, on vectors only.

/// A word of the four bytes that `part` yields for indices 0 to 3.
fn bytes(part: impl Fn(usize) -> u8) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(part))
}

/// Combines the half-words of two words; results wrap.
fn halves(a: u32, b: u32, part: impl Fn(u16, u16) -> i32) -> u32 {
    let low = part(a as u16, b as u16) as u16;
    let high = part((a >> 16) as u16, (b >> 16) as u16) as u16;
    u32::from(low) | u32::from(high) << 16
}

/// Interleaves bytes 0 and 2 of both words: `[a0, b0, a2, b2]`.
pub fn bytes_even(a: u32, b: u32) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    bytes(|at| if at % 2 == 0 { a[at] } else { b[at - 1] })
}

/// Interleaves bytes 1 and 3 of both words: `[a1, b1, a3, b3]`.
pub fn bytes_odd(a: u32, b: u32) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    bytes(|at| if at % 2 == 0 { a[at + 1] } else { b[at] })
}

/// In each half-word, the saturated sum of two products of an unsigned byte of `a` and a signed byte of `b`.
pub fn byte_products(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| {
        let ([a0, a1], [b0, b1]) = (a.to_le_bytes(), b.to_le_bytes());
        let sum = i32::from(a0) * i32::from(b0.cast_signed()) + i32::from(a1) * i32::from(b1.cast_signed());
        sum.clamp(i16::MIN.into(), i16::MAX.into())
    })
}

/// In each half-word, the product of signed numbers in units of 2^-15, rounded to nearest, ties up.
pub fn halves_scale(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| (i32::from(a.cast_signed()) * i32::from(b.cast_signed()) + (1 << 14)) >> 15)
}

/// In each half-word, the high half of the unsigned product.
pub fn halves_mul_high(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| ((u32::from(a) * u32::from(b)) >> 16).cast_signed())
}

/// 2^23 plus the low half-word, as a float: the float's low bits are those of the half-word.
pub fn half_float(a: u32) -> f32 {
    f32::from_bits(0x4b00_0000 | a & 0xffff)
}

/// The sum in each half-word.
pub fn halves_add(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| a.wrapping_add(b).into())
}

/// The difference in each half-word.
pub fn halves_sub(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| a.wrapping_sub(b).into())
}
