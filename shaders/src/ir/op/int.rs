//! Integer arithmetic and comparison. Overflow wraps, and division by zero yields 0.
//!
//! Vulkan leaves the result of a division by zero undefined; a defined one makes all back ends agree.

/// Wrapping sum (`OpIAdd`).
pub fn iadd(a: u32, b: u32) -> u32 {
    a.wrapping_add(b)
}

/// Wrapping difference (`OpISub`).
pub fn isub(a: u32, b: u32) -> u32 {
    a.wrapping_sub(b)
}

/// Low word of the product (`OpIMul`).
pub fn imul(a: u32, b: u32) -> u32 {
    a.wrapping_mul(b)
}

/// High word of the unsigned product (`OpUMulExtended`).
pub fn umul_high(a: u32, b: u32) -> u32 {
    ((u64::from(a) * u64::from(b)) >> 32) as u32
}

/// High word of the signed product (`OpSMulExtended`).
pub fn smul_high(a: i32, b: i32) -> i32 {
    ((i64::from(a) * i64::from(b)) >> 32) as i32
}

/// Unsigned quotient (`OpUDiv`); 0 for a divisor of 0.
pub fn udiv(a: u32, b: u32) -> u32 {
    a.checked_div(b).unwrap_or(0)
}

/// Signed quotient, rounded to zero (`OpSDiv`); 0 for a divisor of 0, wraps for `i32::MIN / -1`.
pub fn sdiv(a: i32, b: i32) -> i32 {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

/// Unsigned remainder (`OpUMod`); 0 for a divisor of 0.
pub fn umod(a: u32, b: u32) -> u32 {
    a.checked_rem(b).unwrap_or(0)
}

/// Remainder with the sign of the dividend (`OpSRem`); 0 for a divisor of 0.
pub fn srem(a: i32, b: i32) -> i32 {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

/// Remainder with the sign of the divisor (`OpSMod`); 0 for a divisor of 0.
pub fn smod(a: i32, b: i32) -> i32 {
    let rem = srem(a, b);
    if rem != 0 && (rem < 0) != (b < 0) { rem.wrapping_add(b) } else { rem }
}

/// Wrapping negation (`OpSNegate`).
pub fn ineg(a: u32) -> u32 {
    a.wrapping_neg()
}

/// Magnitude; that of `i32::MIN` is itself (`SAbs`).
pub fn sabs(a: i32) -> i32 {
    a.wrapping_abs()
}

/// -1, 0 or 1 (`SSign`).
pub fn ssign(a: i32) -> i32 {
    a.signum()
}

/// Unsigned minimum (`UMin`).
pub fn umin(a: u32, b: u32) -> u32 {
    a.min(b)
}

/// Unsigned maximum (`UMax`).
pub fn umax(a: u32, b: u32) -> u32 {
    a.max(b)
}

/// Signed minimum (`SMin`).
pub fn smin(a: i32, b: i32) -> i32 {
    a.min(b)
}

/// Signed maximum (`SMax`).
pub fn smax(a: i32, b: i32) -> i32 {
    a.max(b)
}

/// 1 if the unsigned sum overflows (`OpIAddCarry`, second member).
pub fn ucarry(a: u32, b: u32) -> u32 {
    u32::from(a.overflowing_add(b).1)
}

/// 1 if the unsigned difference underflows (`OpISubBorrow`, second member).
pub fn uborrow(a: u32, b: u32) -> u32 {
    u32::from(a < b)
}

/// Equal (`OpIEqual`).
pub fn ieq(a: u32, b: u32) -> bool {
    a == b
}

/// Different (`OpINotEqual`).
pub fn ine(a: u32, b: u32) -> bool {
    a != b
}

/// Less, unsigned (`OpULessThan`; `OpUGreaterThan` with swapped operands).
pub fn ult(a: u32, b: u32) -> bool {
    a < b
}

/// Less or equal, unsigned (`OpULessThanEqual`).
pub fn ule(a: u32, b: u32) -> bool {
    a <= b
}

/// Less, signed (`OpSLessThan`).
pub fn slt(a: i32, b: i32) -> bool {
    a < b
}

/// Less or equal, signed (`OpSLessThanEqual`).
pub fn sle(a: i32, b: i32) -> bool {
    a <= b
}

/// `a` clamped to `low` and `high`, unsigned (`UClamp`); `high` if `low > high`.
pub fn uclamp(a: u32, low: u32, high: u32) -> u32 {
    a.max(low).min(high)
}

/// `a` clamped to `low` and `high`, signed (`SClamp`); `high` if `low > high`.
pub fn sclamp(a: i32, low: i32, high: i32) -> i32 {
    a.max(low).min(high)
}
