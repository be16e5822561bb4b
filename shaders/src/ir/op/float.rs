//! Float arithmetic and comparison, IEEE 754 with round to nearest even; denormals are kept.

/// Sum (`OpFAdd`).
pub fn fadd(a: f32, b: f32) -> f32 {
    a + b
}

/// Difference (`OpFSub`).
pub fn fsub(a: f32, b: f32) -> f32 {
    a - b
}

/// Product (`OpFMul`).
pub fn fmul(a: f32, b: f32) -> f32 {
    a * b
}

/// Quotient (`OpFDiv`).
pub fn fdiv(a: f32, b: f32) -> f32 {
    a / b
}

/// Negation: flips the sign bit, of NaN too (`OpFNegate`).
pub fn fneg(a: f32) -> f32 {
    -a
}

/// Equal and neither is NaN (`OpFOrdEqual`).
pub fn ford_eq(a: f32, b: f32) -> bool {
    a == b
}

/// Less and neither is NaN (`OpFOrdLessThan`).
pub fn ford_lt(a: f32, b: f32) -> bool {
    a < b
}
