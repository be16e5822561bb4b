//! Error boundary around naga: a panic inside becomes an error instead of reaching the program that requested a kernel.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::front::Error;

thread_local! {
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread will become an error: a panic hook, which belongs to the program and not to this
/// crate, may stay silent then.
pub fn is_catching() -> bool {
    IS_CATCHING.get()
}

/// The result of `work`, or an error that naga panicked while `doing` something.
pub(super) fn caught<T>(doing: &str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let before = IS_CATCHING.replace(true);
    // State that `work` changes is dropped on a panic: it only reads modules, and creates others.
    let ended = catch_unwind(AssertUnwindSafe(work));
    IS_CATCHING.set(before);
    ended.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        let said = said.unwrap_or("a panic without a message");
        let message = format!("naga failed inside, {doing}: {said}; this is a fault of the WGSL front end");
        Err(Error { message, word: None, line: None })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let error = caught::<()>("reading the text", || {
            assert!(is_catching());
            panic!("oh {}", 1)
        });
        let expected = "naga failed inside, reading the text: oh 1; this is a fault of the WGSL front end";
        assert_eq!(error.unwrap_err().message, expected);
        assert!(!is_catching());
        assert_eq!(caught("", || Ok(1)).unwrap(), 1);
    }
}
