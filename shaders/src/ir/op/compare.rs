//! Float comparisons. If an operand is NaN, ordered comparisons are false and unordered ones are true.
//!
//! "Greater" comparisons have no operation: the front end swaps the operands.

/// Equal and neither is NaN (`OpFOrdEqual`).
pub fn ford_eq(a: f32, b: f32) -> bool {
    a == b
}

/// Different and neither is NaN (`OpFOrdNotEqual`).
pub fn ford_ne(a: f32, b: f32) -> bool {
    a != b && !a.is_nan() && !b.is_nan()
}

/// Less and neither is NaN (`OpFOrdLessThan`).
pub fn ford_lt(a: f32, b: f32) -> bool {
    a < b
}

/// At most and neither is NaN (`OpFOrdLessThanEqual`).
pub fn ford_le(a: f32, b: f32) -> bool {
    a <= b
}

/// Equal or one is NaN (`OpFUnordEqual`).
pub fn funord_eq(a: f32, b: f32) -> bool {
    !ford_ne(a, b)
}

/// Different or one is NaN (`OpFUnordNotEqual`).
pub fn funord_ne(a: f32, b: f32) -> bool {
    a != b
}

/// Less or one is NaN (`OpFUnordLessThan`).
pub fn funord_lt(a: f32, b: f32) -> bool {
    !ford_le(b, a)
}

/// At most or one is NaN (`OpFUnordLessThanEqual`).
pub fn funord_le(a: f32, b: f32) -> bool {
    !ford_lt(b, a)
}

/// Not a number (`OpIsNan`).
pub fn is_nan(a: f32) -> bool {
    a.is_nan()
}

/// Infinite, of either sign (`OpIsInf`).
pub fn is_inf(a: f32) -> bool {
    a.is_infinite()
}
