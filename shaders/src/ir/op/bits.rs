//! Bits and booleans. Shift amounts count modulo 32: SPIR-V leaves larger ones undefined, CPUs do not.

/// Bitwise and (`OpBitwiseAnd`).
pub fn and(a: u32, b: u32) -> u32 {
    a & b
}

/// Bitwise or (`OpBitwiseOr`).
pub fn or(a: u32, b: u32) -> u32 {
    a | b
}

/// Bitwise exclusive or (`OpBitwiseXor`).
pub fn xor(a: u32, b: u32) -> u32 {
    a ^ b
}

/// Bitwise complement (`OpNot`).
pub fn not(a: u32) -> u32 {
    !a
}

/// Left shift by `b` modulo 32 (`OpShiftLeftLogical`).
pub fn shl(a: u32, b: u32) -> u32 {
    a.wrapping_shl(b)
}

/// Right shift by `b` modulo 32, zeros in (`OpShiftRightLogical`).
pub fn lshr(a: u32, b: u32) -> u32 {
    a.wrapping_shr(b)
}

/// Right shift by `b` modulo 32, sign in (`OpShiftRightArithmetic`).
pub fn ashr(a: i32, b: u32) -> i32 {
    a.wrapping_shr(b)
}

/// Both (`OpLogicalAnd`).
pub fn land(a: bool, b: bool) -> bool {
    a && b
}

/// Either (`OpLogicalOr`).
pub fn lor(a: bool, b: bool) -> bool {
    a || b
}

/// Different (`OpLogicalNotEqual`; `OpLogicalEqual` is its `lnot`).
pub fn lxor(a: bool, b: bool) -> bool {
    a != b
}

/// Neither (`OpLogicalNot`).
pub fn lnot(a: bool) -> bool {
    !a
}
