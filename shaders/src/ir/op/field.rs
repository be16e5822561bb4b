//! Bit fields and bit counts. Fields that extend past the word, which SPIR-V leaves undefined, are cut off at its end.

/// A mask of the `count` low bits; all ones from 32 on.
fn low_bits(count: u32) -> u32 {
    1u32.checked_shl(count).map_or(u32::MAX, |bit| bit - 1)
}

/// Replaces `count` bits of `base` from `offset` on by the low bits of `insert` (`OpBitFieldInsert`).
pub fn bit_insert(base: u32, insert: u32, offset: u32, count: u32) -> u32 {
    let mask = low_bits(count).checked_shl(offset).unwrap_or(0);
    (base & !mask) | (insert.checked_shl(offset).unwrap_or(0) & mask)
}

/// `count` bits of `base` from `offset` on, zero-extended (`OpBitFieldUExtract`).
pub fn bit_uextract(base: u32, offset: u32, count: u32) -> u32 {
    base.checked_shr(offset).unwrap_or(0) & low_bits(count)
}

/// `count` bits of `base` from `offset` on, sign-extended (`OpBitFieldSExtract`); bits past the word are copies of its
/// sign, and an empty field is 0.
pub fn bit_sextract(base: i32, offset: u32, count: u32) -> i32 {
    if count == 0 {
        return 0;
    }
    let unused = 32 - count.min(32);
    ((base >> offset.min(31)) << unused) >> unused
}

/// Bits in reverse order (`OpBitReverse`).
pub fn bit_reverse(a: u32) -> u32 {
    a.reverse_bits()
}

/// Number of one bits (`OpBitCount`).
pub fn bit_count(a: u32) -> u32 {
    a.count_ones()
}

/// Index of the lowest one bit; -1 for 0 (`FindILsb`).
pub fn find_lsb(a: u32) -> i32 {
    if a == 0 { -1 } else { a.trailing_zeros().cast_signed() }
}

/// Index of the highest one bit; -1 for 0 (`FindUMsb`).
pub fn find_umsb(a: u32) -> i32 {
    31 - a.leading_zeros().cast_signed()
}

/// Index of the highest bit that differs from the sign; -1 for 0 and -1 (`FindSMsb`).
pub fn find_smsb(a: i32) -> i32 {
    find_umsb((a ^ (a >> 31)).cast_unsigned())
}
