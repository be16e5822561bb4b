//! Rounding, and splitting floats into fraction, significand and exponent. All results but one are exact.

/// Rounds to the nearest integer, ties to even (`RoundEven`, and `Round`, which leaves ties open).
pub fn round_even(a: f32) -> f32 {
    a.round_ties_even()
}

/// Rounds towards zero (`Trunc`; the whole part of `Modf`).
pub fn trunc(a: f32) -> f32 {
    a.trunc()
}

/// Rounds down (`Floor`).
pub fn floor(a: f32) -> f32 {
    a.floor()
}

/// Rounds up (`Ceil`).
pub fn ceil(a: f32) -> f32 {
    a.ceil()
}

/// `a - floor(a)`, rounded: 1 for negative numbers near 0, NaN for infinity (`Fract`).
pub fn fract(a: f32) -> f32 {
    a - a.floor()
}

/// The fraction of `Modf`, with the sign of `a`: a zero for infinity.
pub fn modf_fract(a: f32) -> f32 {
    let fraction = if a.is_infinite() { 0.0 } else { a - a.trunc() };
    fraction.copysign(a)
}

/// The significand of `Frexp`: in [0.5, 1), with the sign of `a`; zeros, infinities and NaN are returned unchanged.
pub fn frexp_significand(a: f32) -> f32 {
    if a == 0.0 || !a.is_finite() { a } else { libm::frexpf(a).0 }
}

/// The exponent of `Frexp`; 0 for zeros, infinity and NaN.
pub fn frexp_exponent(a: f32) -> i32 {
    if a == 0.0 || !a.is_finite() { 0 } else { libm::frexpf(a).1 }
}

/// `a * 2^exponent`, rounded once (`Ldexp`).
pub fn ldexp(a: f32, exponent: i32) -> f32 {
    // Beyond 300 every result is 0 or infinity; up to there the double precision product is exact.
    libm::scalbn(f64::from(a), exponent.clamp(-300, 300)) as f32
}

/// The significand of a non-negative number, in [0.75, 1.5); 1 for zeros and infinity, NaN for negative numbers. With
/// [`exponent`], the argument reduction of logarithms.
pub fn significand(a: f32) -> f32 {
    if a.is_nan() || a < 0.0 {
        return f32::NAN;
    }
    if a == 0.0 || a.is_infinite() {
        return 1.0;
    }
    let half = libm::frexpf(a).0;
    if half < 0.75 { half * 2.0 } else { half }
}

/// The exponent of the greatest power of 2 that is at most the magnitude: -infinity for zeros, infinity for infinities.
pub fn exponent(a: f32) -> f32 {
    if a == 0.0 {
        return f32::NEG_INFINITY;
    }
    if a.is_finite() { (libm::frexpf(a).1 - 1) as f32 } else { a.abs() }
}

/// `a * 2^floor(n)`, rounded once; NaN for zero times infinity and infinity times zero. For a NaN and an infinite `n`,
/// machines may return a number, so expansions avoid that.
pub fn scale(a: f32, n: f32) -> f32 {
    if a.is_nan() || n.is_nan() {
        return f32::NAN;
    }
    if n.is_infinite() {
        let (opposite, limit) = if n > 0.0 { (a == 0.0, f32::INFINITY) } else { (a.is_infinite(), 0.0) };
        return if opposite { f32::NAN } else { limit.copysign(a) };
    }
    ldexp(a, n.floor() as i32)
}
