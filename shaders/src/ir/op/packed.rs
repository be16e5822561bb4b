//! Words as four bytes or two halves: what filters over texels do to all parts of a word at once. Shaders do not ask for these;
//! the compiler does, in lanes only.

/// Words of the bytes that `part` makes of a number from 0 to 3.
fn bytes(part: impl Fn(usize) -> u8) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(part))
}

/// Each half of both words; results wrap.
fn halves(a: u32, b: u32, part: impl Fn(u16, u16) -> i32) -> u32 {
    let low = part(a as u16, b as u16) as u16;
    let high = part((a >> 16) as u16, (b >> 16) as u16) as u16;
    u32::from(low) | u32::from(high) << 16
}

/// Bytes 0 and 2 of both, in turns: `[a0, b0, a2, b2]`.
pub fn bytes_even(a: u32, b: u32) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    bytes(|at| if at % 2 == 0 { a[at] } else { b[at - 1] })
}

/// Bytes 1 and 3 of both, in turns: `[a1, b1, a3, b3]`.
pub fn bytes_odd(a: u32, b: u32) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    bytes(|at| if at % 2 == 0 { a[at + 1] } else { b[at] })
}

/// In each half the sum of two products of an unsigned byte of `a` and a signed one of `b`, held to what a half can be.
pub fn byte_products(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| {
        let ([a0, a1], [b0, b1]) = (a.to_le_bytes(), b.to_le_bytes());
        let sum = i32::from(a0) * i32::from(b0.cast_signed()) + i32::from(a1) * i32::from(b1.cast_signed());
        sum.clamp(i16::MIN.into(), i16::MAX.into())
    })
}

/// In each half the product of signed numbers in units of 2^-15, rounded to nearest, ties up.
pub fn halves_scale(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| (i32::from(a.cast_signed()) * i32::from(b.cast_signed()) + (1 << 14)) >> 15)
}

/// In each half the high half of the product of unsigned numbers.
pub fn halves_mul_high(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| ((u32::from(a) * u32::from(b)) >> 16).cast_signed())
}

/// 2^23 and the low half, as a float: the float's low bits are the half's.
pub fn half_float(a: u32) -> f32 {
    f32::from_bits(0x4b00_0000 | a & 0xffff)
}

/// The sum in each half.
pub fn halves_add(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| a.wrapping_add(b).into())
}

/// The difference in each half.
pub fn halves_sub(a: u32, b: u32) -> u32 {
    halves(a, b, |a, b| a.wrapping_sub(b).into())
}
