//! Float arithmetic, IEEE 754 with rounding to nearest even. Denormals are kept, and nothing is contracted.
//!
//! The bits of a NaN result are unspecified: all NaNs are one value to these functions.

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

/// Exact remainder with the sign of the dividend (`OpFRem`); NaN for a divisor of 0.
pub fn frem(a: f32, b: f32) -> f32 {
    libm::fmodf(a, b)
}

/// Remainder with the sign of the divisor (`OpFMod`), rounded once from the exact one; NaN for a divisor of 0.
pub fn fmod(a: f32, b: f32) -> f32 {
    let rem = libm::fmodf(a, b);
    if rem == 0.0 {
        rem.copysign(b)
    } else if (rem < 0.0) != (b < 0.0) {
        rem + b
    } else {
        rem
    }
}

/// `a * b + c`, rounded once (`Fma`).
pub fn fma(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

/// Magnitude: clears the sign bit (`FAbs`).
pub fn fabs(a: f32) -> f32 {
    a.abs()
}

/// -1 or 1; zeros and NaN are returned unchanged (`FSign`).
pub fn fsign(a: f32) -> f32 {
    if a > 0.0 {
        1.0
    } else if a < 0.0 {
        -1.0
    } else {
        a
    }
}

/// Minimum; for a number and a NaN, the number (`NMin`, and `FMin`, which may return either). For equal zeros, the
/// first.
pub fn fmin(a: f32, b: f32) -> f32 {
    if b < a || a.is_nan() { b } else { a }
}

/// Maximum; for a number and a NaN, the number (`NMax`, and `FMax`, which may return either). For equal zeros, the
/// first.
pub fn fmax(a: f32, b: f32) -> f32 {
    if b > a || a.is_nan() { b } else { a }
}

/// `fmin(fmax(a, low), high)` (`NClamp` and `FClamp`): `low` for NaN, `high` if `low > high`.
pub fn fclamp(a: f32, low: f32, high: f32) -> f32 {
    fmin(fmax(a, low), high)
}
