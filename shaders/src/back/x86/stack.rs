//! Kernels with large frames run on a stack made for them: nobody knows how much of the caller's is left, which may be an
//! application's thread with a stack of some ten pages.

use std::thread::{Builder, scope};

/// Bytes of a frame that any thread has room for.
const SMALL: usize = 32 << 10;

/// Bytes for everything but the kernel's frame: calls back into the host, and messages that are printed there.
const REST: usize = 256 << 10;

/// Calls `run` where there is room for a frame of so many bytes; none if there is no memory for a stack.
pub(super) fn with_room<T: Send>(frame: usize, run: impl FnOnce() -> T + Send) -> Option<T> {
    if frame <= SMALL {
        return Some(run());
    }
    scope(|scope| {
        let thread =
            Builder::new().name("spelter-deep".into()).stack_size(frame + REST).spawn_scoped(scope, run).ok()?;
        // What it panicked with is the caller's to tell.
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use std::thread::current;

    use super::*;

    #[test]
    fn small_frames_stay_and_large_ones_get_their_own_stack() {
        let here = current().id();
        assert_eq!(with_room(SMALL, || current().id()), Some(here));
        assert_ne!(with_room(SMALL + 1, || current().id()), Some(here));
    }
}
