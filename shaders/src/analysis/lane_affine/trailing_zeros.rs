//! Known trailing zeros of uniform values and of the bases of lane-affine values.
//!
//! If the lowest `n` bits of a base are zero and the lane offsets are below 2^n, base plus offset equals base `or`
//! offset: masks and shifts of the value are masks and shifts of the offsets. Operations on bases are those of the
//! value-range analysis.

use crate::abi::SUBGROUP_SIZE;
use crate::ir::BuiltIn;

/// Trailing zeros of 0.
pub(in crate::analysis) const ALL: u8 = 32;

/// Trailing zeros that a built-in's base (its value in lane 0) has in all subgroups.
pub(in crate::analysis) fn of_builtin(builtin: BuiltIn, component: u8, size: [u32; 3]) -> u8 {
    let [x, y, z] = size;
    let count = x.saturating_mul(y).saturating_mul(z).div_ceil(SUBGROUP_SIZE);
    let (below, size) = match component {
        0 => (1, x),
        1 => (x, y),
        _ => (x.saturating_mul(y), z),
    };
    let digit = |number: u32| number.saturating_mul(SUBGROUP_SIZE) / below.max(1) % size.max(1);
    let local = || (0..count).map(|number| digit(number).trailing_zeros() as u8).min().unwrap_or(0);
    match builtin {
        BuiltIn::LocalInvocationIndex => SUBGROUP_SIZE.trailing_zeros() as u8,
        BuiltIn::SubgroupLocalInvocationId => ALL,
        BuiltIn::LocalInvocationId => local(),
        BuiltIn::GlobalInvocationId => local().min(size.trailing_zeros() as u8),
        BuiltIn::NumWorkgroups | BuiltIn::WorkgroupId | BuiltIn::NumSubgroups | BuiltIn::SubgroupId => 0,
    }
}

/// The lowest `zeros` bits of a word.
pub(in crate::analysis) fn low_bits(word: u32, zeros: u8) -> u32 {
    if zeros >= ALL { word } else { word & ((1 << zeros) - 1) }
}
