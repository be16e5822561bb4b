//! Expected results, and the error of a result in units in the last place.

/// A correct 32-bit result.
#[derive(Clone, Copy, Debug)]
pub(super) enum CorrectResult {
    /// Exactly these bits.
    Bits(u32),
    /// This number. The unit in the last place is that of `scale`: the number itself, or, for a sum, the sum of the
    /// terms' magnitudes, since rounding errors of terms remain even if the terms cancel.
    Near { value: f64, scale: f64 },
    /// Unspecified.
    Open,
}

/// A number, measured in its own last place.
pub(super) fn near(value: f64) -> CorrectResult {
    CorrectResult::Near { value, scale: value }
}

/// A sum of terms, measured by their magnitudes.
pub(super) fn sum(terms: &[f64]) -> CorrectResult {
    CorrectResult::Near { value: terms.iter().sum(), scale: terms.iter().map(|term| term.abs()).sum() }
}

/// The error in units in the last place; infinite if it is not such a number.
pub(super) fn error_of(found: u32, wanted: &CorrectResult) -> f64 {
    match *wanted {
        CorrectResult::Open => 0.0,
        CorrectResult::Bits(bits) => wrong_unless(found == bits),
        CorrectResult::Near { value, scale } => distance(f32::from_bits(found), value, scale),
    }
}

fn distance(found: f32, value: f64, scale: f64) -> f64 {
    // Infinity as a rounded result stands for the first number that is too large.
    let limit = 2f64.powi(128);
    if value.is_nan() {
        return wrong_unless(found.is_nan());
    }
    if value.is_infinite() {
        return wrong_unless(f64::from(found) == value);
    }
    let found = f64::from(found).clamp(-limit, limit);
    let value = value.clamp(-limit, limit);
    // A NaN makes the comparison false.
    let error = (found - value).abs() / unit(scale);
    if error.is_nan() { f64::INFINITY } else { error }
}

/// The unit in the last place of a float of this magnitude.
fn unit(scale: f64) -> f64 {
    let exponent = ((scale.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    2f64.powi(exponent.clamp(-126, 127) - 23)
}

fn wrong_unless(right: bool) -> f64 {
    if right { 0.0 } else { f64::INFINITY }
}
