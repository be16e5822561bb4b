//! What a right answer is, and how far another is from it.

/// A right result of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// These bits.
    Bits(u32),
    /// This number. Its unit in the last place is that of `scale`: the number itself, or the sum of the magnitudes of
    /// the terms that it is a sum of, since rounding a term counts even where the terms cancel.
    Near { value: f64, scale: f64 },
    /// Nothing is asked.
    Open,
}

/// A number measured by its own last place.
pub(super) fn near(value: f64) -> Answer {
    Answer::Near { value, scale: value }
}

/// A sum of terms measured by their magnitudes.
pub(super) fn sum(terms: &[f64]) -> Answer {
    Answer::Near { value: terms.iter().sum(), scale: terms.iter().map(|term| term.abs()).sum() }
}

/// The error in units of the last place; infinite where no such number says it.
pub(super) fn error_of(found: u32, wanted: &Answer) -> f64 {
    match *wanted {
        Answer::Open => 0.0,
        Answer::Bits(bits) => wrong_unless(found == bits),
        Answer::Near { value, scale } => distance(f32::from_bits(found), value, scale),
    }
}

fn distance(found: f32, value: f64, scale: f64) -> f64 {
    // Where rounding goes to infinity, infinity stands for the first number too large.
    let limit = 2f64.powi(128);
    if value.is_nan() {
        return wrong_unless(found.is_nan());
    }
    if value.is_infinite() {
        return wrong_unless(f64::from(found) == value);
    }
    let found = f64::from(found).clamp(-limit, limit);
    let value = value.clamp(-limit, limit);
    // A NaN found makes the comparison false.
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
