//! Bitwise and boolean operations. Shift amounts are modulo 32, as on CPUs; SPIR-V leaves larger ones undefined.

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

/// Logical right shift by `b` modulo 32 (`OpShiftRightLogical`).
pub fn lshr(a: u32, b: u32) -> u32 {
    a.wrapping_shr(b)
}

/// Arithmetic right shift by `b` modulo 32 (`OpShiftRightArithmetic`).
pub fn ashr(a: i32, b: u32) -> i32 {
    a.wrapping_shr(b)
}

/// Conjunction (`OpLogicalAnd`).
pub fn land(a: bool, b: bool) -> bool {
    a && b
}

/// Disjunction (`OpLogicalOr`).
pub fn lor(a: bool, b: bool) -> bool {
    a || b
}

/// Exclusive or (`OpLogicalNotEqual`; `OpLogicalEqual` is its `lnot`).
pub fn lxor(a: bool, b: bool) -> bool {
    a != b
}

/// Negation (`OpLogicalNot`).
pub fn lnot(a: bool) -> bool {
    !a
}
