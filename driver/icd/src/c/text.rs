//! C strings: those of callers, and fixed-size arrays in structures.

use std::ffi::{CStr, c_char};

use super::entry::{FromC, Place};
use crate::error::Error;

/// A string of the caller's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(&'a CStr);

impl<'a> Text<'a> {
    /// The string, unless the pointer is null.
    ///
    /// # Safety
    ///
    /// `raw` is null or points to bytes that end in a zero and stay as they are for `'a`.
    pub(super) unsafe fn new(raw: *const c_char) -> Option<Self> {
        if raw.is_null() {
            return None;
        }
        // SAFETY: by this function's contract.
        Some(Self(unsafe { CStr::from_ptr(raw) }))
    }

    /// The string as UTF-8. Empty if it is not UTF-8: it then equals no name that the driver knows.
    pub(crate) fn as_str(self) -> &'a str {
        self.0.to_str().unwrap_or_default()
    }
}

impl<'a> FromC<*const c_char> for Text<'a> {
    unsafe fn from_c(raw: *const c_char, place: Place) -> Result<Self, Error> {
        // SAFETY: by the trait's contract.
        unsafe { Self::new(raw) }.ok_or_else(|| place.invalid("is null"))
    }
}

/// A text truncated to `N` bytes, which include the terminating zero.
pub(crate) fn fixed<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    let len = text.floor_char_boundary(N - 1);
    for (to, from) in array.iter_mut().zip(text.as_bytes()[..len].iter()) {
        *to = from.cast_signed() as c_char;
    }
    array
}

#[cfg(test)]
mod tests {
    use super::fixed;

    #[test]
    fn texts_end_in_a_zero() {
        assert_eq!(fixed::<4>("ab"), [97, 98, 0, 0]);
        assert_eq!(fixed::<4>("abcdef"), [97, 98, 99, 0]);
        assert_eq!(fixed::<3>("aé"), [97, 0, 0]);
    }
}
