//! Environment variables, which are ignored in programs with more rights than their caller.
//!
//! The caller of a program chooses its environment. A program that is set-user-ID or has capabilities could be made to
//! write files where its caller cannot. The kernel marks such processes (`AT_SECURE`, which `secure_getenv` checks,
//! too); then all variables are ignored.

use std::ffi::OsString;

use spelter_locks::Computed;

/// `AT_SECURE` of `<elf.h>`.
const AT_SECURE: usize = 23;

/// The value of a variable, if it is not empty and may be trusted.
pub fn variable(name: &str) -> Option<OsString> {
    static SECURE: Computed<bool> = Computed::new();
    let secure = *SECURE.get_or_compute(|| {
        // If the auxiliary vector cannot be read, the process is not trusted.
        std::fs::read("/proc/self/auxv").map_or(true, |vector| is_secure(&vector))
    });
    trusted(secure, std::env::var_os(name))
}

fn trusted(secure: bool, value: Option<OsString>) -> Option<OsString> {
    value.filter(|value| !secure && !value.is_empty())
}

/// `AT_SECURE` in the auxiliary vector, which is pairs of words (type, value); `None` if there is no such entry.
fn is_secure(vector: &[u8]) -> bool {
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).ok();
    let pairs = vector.chunks_exact(2 * size_of::<usize>()).map(|pair| pair.split_at(size_of::<usize>()));
    let mut values = pairs.filter(|(number, _)| word(number) == Some(AT_SECURE)).map(|(_, value)| word(value));
    values.next() != Some(Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(pairs: &[[usize; 2]]) -> Vec<u8> {
        pairs.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn the_auxiliary_vector_marks_secure_processes() {
        assert!(!is_secure(&vector(&[[6, 4096], [AT_SECURE, 0], [0, 0]])));
        assert!(is_secure(&vector(&[[6, 4096], [AT_SECURE, 1], [0, 0]])));
        assert!(is_secure(&vector(&[[6, 23], [0, 0]])) && is_secure(&[]));
    }

    #[test]
    fn a_secure_process_ignores_all_variables() {
        let value = || Some(OsString::from("/tmp/trace.json"));
        assert_eq!((trusted(false, value()), trusted(true, value())), (value(), None));
        assert_eq!(trusted(false, Some(OsString::new())), None);
        assert!(variable("PATH").is_some(), "this process has the rights of its caller");
    }
}
