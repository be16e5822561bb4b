//! Powers, logarithms and blends of GLSL.std.450 on scalars.
//!
//! Transcendental functions are computed in double precision by portable code and then rounded: the error is barely
//! above half a unit in the last place.

/// Square root, correctly rounded; NaN for negative numbers (`Sqrt`).
pub fn sqrt(a: f32) -> f32 {
    a.sqrt()
}

/// `1 / sqrt(a)` (`InverseSqrt`); NaN for negative numbers, an infinity for zeros.
pub fn inverse_sqrt(a: f32) -> f32 {
    (1.0 / f64::from(a).sqrt()) as f32
}

/// `e^a` (`Exp`).
pub fn exp(a: f32) -> f32 {
    libm::exp(f64::from(a)) as f32
}

/// `2^a` (`Exp2`).
pub fn exp2(a: f32) -> f32 {
    libm::exp2(f64::from(a)) as f32
}

/// Natural logarithm (`Log`); NaN for negative numbers.
pub fn log(a: f32) -> f32 {
    libm::log(f64::from(a)) as f32
}

/// Logarithm to base 2 (`Log2`); NaN for negative numbers.
pub fn log2(a: f32) -> f32 {
    libm::log2(f64::from(a)) as f32
}

/// `a^b` as in IEEE 754, also where GLSL leaves the result undefined: for negative `a` and for zeros (`Pow`).
pub fn pow(a: f32, b: f32) -> f32 {
    libm::pow(f64::from(a), f64::from(b)) as f32
}

/// `a * (1 - t) + b * t`, each step rounded (`FMix`).
pub fn fmix(a: f32, b: f32, t: f32) -> f32 {
    a * (1.0 - t) + b * t
}

/// 0 below the edge, else 1 (`Step`).
pub fn step(edge: f32, a: f32) -> f32 {
    if a < edge { 0.0 } else { 1.0 }
}

/// Hermite blend from 0 at `low` to 1 at `high` (`SmoothStep`).
pub fn smoothstep(low: f32, high: f32, a: f32) -> f32 {
    let t = super::float::fclamp((a - low) / (high - low), 0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}
