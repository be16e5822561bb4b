//! Division of 64-bit integers as two words, low word first. Division by 0 yields 0, as for words.

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn quotient(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(0)
}

fn remainder(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(0)
}

/// Low word of the unsigned quotient (`OpUDiv`).
pub fn udiv64_low(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    quotient(join(a_low, a_high), join(b_low, b_high)) as u32
}

/// High word of the unsigned quotient (`OpUDiv`).
pub fn udiv64_high(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    (quotient(join(a_low, a_high), join(b_low, b_high)) >> 32) as u32
}

/// Low word of the unsigned remainder (`OpUMod`).
pub fn umod64_low(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    remainder(join(a_low, a_high), join(b_low, b_high)) as u32
}

/// High word of the unsigned remainder (`OpUMod`).
pub fn umod64_high(a_low: u32, a_high: u32, b_low: u32, b_high: u32) -> u32 {
    (remainder(join(a_low, a_high), join(b_low, b_high)) >> 32) as u32
}
