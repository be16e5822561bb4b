//! GLSL.std.450 for floats, one scalar at a time.

/// Square root, correctly rounded; NaN for negative numbers (`Sqrt`).
pub fn sqrt(a: f32) -> f32 {
    a.sqrt()
}
