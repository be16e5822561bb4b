//! Trigonometric and hyperbolic functions of GLSL.std.450, computed in double precision and rounded.
//!
//! Sine, cosine and tangent reduce their argument with as many digits of pi as needed, so they are accurate for every
//! float, far beyond the range that Vulkan requires.

macro_rules! in_double {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* pub fn $name(a: f32) -> f32 {
            libm::$name(f64::from(a)) as f32
        })*
    };
}

in_double! {
    /// Sine; NaN for infinity (`Sin`).
    sin;
    /// Cosine; NaN for infinity (`Cos`).
    cos;
    /// Tangent; NaN for infinity (`Tan`).
    tan;
    /// Inverse sine; NaN beyond 1 (`Asin`).
    asin;
    /// Inverse cosine; NaN beyond 1 (`Acos`).
    acos;
    /// Inverse tangent (`Atan`).
    atan;
    /// Hyperbolic sine (`Sinh`).
    sinh;
    /// Hyperbolic cosine (`Cosh`).
    cosh;
    /// Hyperbolic tangent (`Tanh`).
    tanh;
    /// Inverse hyperbolic sine (`Asinh`).
    asinh;
    /// Inverse hyperbolic tangent; NaN beyond 1 (`Atanh`).
    atanh;
}

/// Inverse hyperbolic cosine; NaN below 1 (`Acosh`).
pub fn acosh(a: f32) -> f32 {
    // The crate's function returns numbers for large negative arguments.
    if a < 1.0 { f32::NAN } else { libm::acosh(f64::from(a)) as f32 }
}

/// Angle of the point (`x`, `y`), in the right quadrant (`Atan2`).
pub fn atan2(y: f32, x: f32) -> f32 {
    libm::atan2(f64::from(y), f64::from(x)) as f32
}
