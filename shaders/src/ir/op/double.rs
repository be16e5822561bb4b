//! Doubles as two words of their bits, low word first. An operation with a double result is two operations here, one
//! for each word.
//!
//! NaN results are canonical, `0x7ff8_0000_0000_0000`: unlike for floats, comparisons of results cannot recognise a NaN
//! in a pair of words.

fn join(low: u32, high: u32) -> f64 {
    f64::from_bits(u64::from(low) | u64::from(high) << 32)
}

fn low(a: f64) -> u32 {
    bits(a) as u32
}

fn high(a: f64) -> u32 {
    (bits(a) >> 32) as u32
}

fn bits(a: f64) -> u64 {
    if a.is_nan() { 0x7ff8_0000_0000_0000 } else { a.to_bits() }
}

/// Low word of the sum.
pub fn dadd_low(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    low(join(a_low, a_high) + join(b_low, b_high))
}

/// High word of the sum.
pub fn dadd_high(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    high(join(a_low, a_high) + join(b_low, b_high))
}

/// Low word of the difference.
pub fn dsub_low(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    low(join(a_low, a_high) - join(b_low, b_high))
}

/// High word of the difference.
pub fn dsub_high(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    high(join(a_low, a_high) - join(b_low, b_high))
}

/// Low word of the product.
pub fn dmul_low(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    low(join(a_low, a_high) * join(b_low, b_high))
}

/// High word of the product.
pub fn dmul_high(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    high(join(a_low, a_high) * join(b_low, b_high))
}

/// Low word of the quotient.
pub fn ddiv_low(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    low(join(a_low, a_high) / join(b_low, b_high))
}

/// High word of the quotient.
pub fn ddiv_high(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    high(join(a_low, a_high) / join(b_low, b_high))
}

/// Low word of the square root.
pub fn dsqrt_low(a_low: u32, a_high: u32) -> u32 {
    low(join(a_low, a_high).sqrt())
}

/// High word of the square root.
pub fn dsqrt_high(a_low: u32, a_high: u32) -> u32 {
    high(join(a_low, a_high).sqrt())
}

/// Low word of the double rounded towards zero.
pub fn dtrunc_low(a_low: u32, a_high: u32) -> u32 {
    low(join(a_low, a_high).trunc())
}

/// High word of the double rounded towards zero.
pub fn dtrunc_high(a_low: u32, a_high: u32) -> u32 {
    high(join(a_low, a_high).trunc())
}

/// Low word of the double rounded down.
pub fn dfloor_low(a_low: u32, a_high: u32) -> u32 {
    low(join(a_low, a_high).floor())
}

/// High word of the double rounded down.
pub fn dfloor_high(a_low: u32, a_high: u32) -> u32 {
    high(join(a_low, a_high).floor())
}

/// Low word of the double rounded up.
pub fn dceil_low(a_low: u32, a_high: u32) -> u32 {
    low(join(a_low, a_high).ceil())
}

/// High word of the double rounded up.
pub fn dceil_high(a_low: u32, a_high: u32) -> u32 {
    high(join(a_low, a_high).ceil())
}

/// Low word of the double rounded to the nearest integer, ties to even.
pub fn dround_even_low(a_low: u32, a_high: u32) -> u32 {
    low(join(a_low, a_high).round_ties_even())
}

/// High word of the double rounded to the nearest integer, ties to even.
pub fn dround_even_high(a_low: u32, a_high: u32) -> u32 {
    high(join(a_low, a_high).round_ties_even())
}

/// Equal, and neither is NaN.
pub fn deq(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> bool {
    join(a_low, a_high) == join(b_low, b_high)
}

/// Less, and neither is NaN.
pub fn dlt(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> bool {
    join(a_low, a_high) < join(b_low, b_high)
}

/// At most, and neither is NaN.
pub fn dle(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> bool {
    join(a_low, a_high) <= join(b_low, b_high)
}

/// Low word of a float as a double (`OpFConvert`).
pub fn dfrom_float_low(a: f32) -> u32 {
    low(f64::from(a))
}

/// High word of a float as a double (`OpFConvert`).
pub fn dfrom_float_high(a: f32) -> u32 {
    high(f64::from(a))
}

/// The nearest float, ties to even (`OpFConvert`).
pub fn dto_float(a_low: u32, a_high: u32) -> f32 {
    join(a_low, a_high) as f32
}
