//! Comparison of results.

use std::fmt::Display;

use crate::Error;

/// Requires all elements to be equal.
pub(crate) fn equal<T: PartialEq + Display>(got: &[T], want: &[T]) -> Result<(), Error> {
    elements(got, want, |got, want| got == want)
}

/// Requires every element to be within `tolerance` times the larger of the expected one and `floor`.
pub(crate) fn close(got: &[f32], want: &[f32], floor: f32, tolerance: f32) -> Result<(), Error> {
    // The comparison is false for NaN.
    elements(got, want, |got, want| (got - want).abs() <= tolerance * want.abs().max(floor))
}

fn elements<T: Display>(got: &[T], want: &[T], same: impl Fn(&T, &T) -> bool) -> Result<(), Error> {
    same_length(got, want)?;
    match got.iter().zip(want).position(|(got, want)| !same(got, want)) {
        None => Ok(()),
        Some(index) => Err(format!("element {index} is {}, not {}", got[index], want[index]).into()),
    }
}

/// Requires all but a share of the elements to be equal.
pub(crate) fn mostly<T>(got: &[T], want: &[T], share: f64, same: impl Fn(&T, &T) -> bool) -> Result<(), Error> {
    same_length(got, want)?;
    let others = got.iter().zip(want).filter(|(got, want)| !same(got, want)).count();
    let differ = others as f64 / got.len() as f64;
    if differ <= share { Ok(()) } else { Err(format!("{:.2} % of the elements differ", differ * 100.0).into()) }
}

fn same_length<T>(got: &[T], want: &[T]) -> Result<(), Error> {
    if got.len() == want.len() { Ok(()) } else { Err(format!("{} elements, not {}", got.len(), want.len()).into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_never_right() {
        assert!(close(&[f32::NAN], &[1.0], 1.0, 0.1).is_err());
    }

    #[test]
    fn tolerance_is_of_the_floor_below_it() {
        assert!(close(&[0.05], &[0.0], 1.0, 0.1).is_ok() && close(&[0.2], &[0.0], 1.0, 0.1).is_err());
        assert!(close(&[105.0], &[100.0], 1.0, 0.1).is_ok() && close(&[115.0], &[100.0], 1.0, 0.1).is_err());
    }

    #[test]
    fn one_wrong_or_missing_element_is_found() {
        assert!(equal(&[1, 2, 3], &[1, 2, 3]).is_ok());
        assert!(equal(&[1, 2, 3], &[1, 7, 3]).is_err() && equal(&[1, 2], &[1, 2, 3]).is_err());
    }

    #[test]
    fn most_is_not_less_than_the_share() {
        let differing = |share| mostly(&[0, 0, 9, 9], &[0; 4], share, |got, want| got == want);
        assert!(differing(0.5).is_ok() && differing(0.4).is_err());
    }
}
