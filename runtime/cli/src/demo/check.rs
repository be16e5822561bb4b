//! Comparison of results with a reference; a mismatch names the first wrong element.

use std::fmt::Display;

use crate::failure::Failure;

/// Checks that all elements are equal.
pub(super) fn equal<T: PartialEq + Display>(got: &[T], want: &[T]) -> Result<(), Failure> {
    same_length(got.len(), want.len())?;
    match got.iter().zip(want).position(|(got, want)| got != want) {
        Some(i) => Err(Failure::new(format!("element {i} is {}, should be {}", got[i], want[i]))),
        None => Ok(()),
    }
}

/// Checks that all elements are within `tolerance` of the reference.
pub(super) fn close(got: &[f32], want: &[f64], tolerance: f64) -> Result<(), Failure> {
    same_length(got.len(), want.len())?;
    // Written so that NaN is a mismatch.
    let is_close = |got: f32, want: f64| (f64::from(got) - want).abs() <= tolerance;
    match got.iter().zip(want).position(|(&got, &want)| !is_close(got, want)) {
        Some(i) => Err(Failure::new(format!("element {i} is {}, should be {} within {tolerance:e}", got[i], want[i]))),
        None => Ok(()),
    }
}

/// Compares two pictures with three bytes per pixel. A pixel differs if one of its bytes differs by more than `step`;
/// an error if more than `max_pixels` pixels differ. Returns the number of pixels that differ.
pub(super) fn pictures(got: &[u8], want: &[u8], step: u8, max_pixels: usize) -> Result<usize, Failure> {
    same_length(got.len(), want.len())?;
    let differs = |(got, want): (&[u8], &[u8])| got.iter().zip(want).any(|(g, w)| g.abs_diff(*w) > step);
    let mut wrong = got.chunks_exact(3).zip(want.chunks_exact(3)).enumerate().filter(|(_, pixel)| differs(*pixel));
    let Some((first, (is, should))) = wrong.next() else { return Ok(0) };
    let count = 1 + wrong.count();
    if count > max_pixels {
        return Err(Failure::new(format!("pixel {first} is {is:?}, should be {should:?}; {count} pixels differ")));
    }
    Ok(count)
}

fn same_length(got: usize, want: usize) -> Result<(), Failure> {
    if got == want { Ok(()) } else { Err(Failure::new(format!("{got} elements, should be {want}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T>(result: Result<T, Failure>) -> String {
        result.err().map(|failure| failure.to_string()).unwrap_or_default()
    }

    #[test]
    fn the_first_wrong_element_is_named() {
        assert_eq!(message(equal(&[1, 2, 3, 4], &[1, 2, 5, 6])), "element 2 is 3, should be 5");
        assert_eq!(message(equal(&[1], &[1, 2])), "1 elements, should be 2");
        assert!(message(close(&[0.0, f32::NAN], &[0.0, 1.0], 0.5)).starts_with("element 1 is NaN"));
        assert!(close(&[1.0], &[1.25], 0.5).is_ok());
    }

    #[test]
    fn a_few_pixels_may_differ() {
        let (got, want) = ([0, 0, 9, 5, 5, 5], [0, 0, 1, 5, 5, 6]);
        assert_eq!(pictures(&got, &want, 1, 1).ok(), Some(1));
        assert_eq!(message(pictures(&got, &want, 1, 0)), "pixel 0 is [0, 0, 9], should be [0, 0, 1]; 1 pixels differ");
    }
}
