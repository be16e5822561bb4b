//! A worker's own stack for kernels with large frames: how much of the caller's stack is left is unknown, and the
//! caller may be an application's thread with a stack of some ten pages.
//!
//! The code switches to it on entry, and back to the caller's stack for calls (`encode/frame.rs`). It thus holds one
//! frame, the registers saved around calls, and the frames of signal handlers.
//!
//! # Safety
//!
//! The caller of the code (`call.rs`) relies on this file: below the top there are as many writable bytes as requested
//! and [`ROOM`] more, at a fixed address until the next call of [`Stack::top`], and below them an inaccessible guard
//! page. The memory has no other user: it is reached through the `Stack` alone, which is borrowed mutably while code
//! runs.

use std::io;

use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::{MprotectFlags, mprotect};

use super::code_memory::PAGE;

/// Bytes below the frame: for registers saved around calls (some 3 KiB), and for signal handlers without an alternate
/// stack. The system saves up to 11 KiB of registers there; untouched pages take no memory.
const ROOM: usize = 64 << 10;

/// Memory for one large frame at a time: mapped when first needed, then reused for the next kernel.
#[derive(Debug, Default)]
pub struct Stack {
    map: Option<MmapRaw>,
}

impl Stack {
    /// Size of the mapping in bytes.
    pub fn bytes(&self) -> usize {
        self.map.as_ref().map_or(0, MmapRaw::len)
    }

    /// The upper end of a stack with room for a frame of `frame` bytes, page-aligned.
    pub(super) fn top(&mut self, frame: usize) -> io::Result<*mut u8> {
        let needed = frame.saturating_add(PAGE + ROOM);
        let map = match self.map.take() {
            Some(map) if map.len() >= needed => map,
            small => {
                drop(small);
                new_map(needed.checked_next_multiple_of(ROOM).unwrap_or(needed))?
            }
        };
        Ok(self.map.insert(map).as_mut_ptr().wrapping_add(self.bytes()))
    }
}

/// Maps zeroed memory with a guard page at its lower end.
fn new_map(bytes: usize) -> io::Result<MmapRaw> {
    let map: MmapRaw = MmapOptions::new().len(bytes).stack().map_anon()?.into();
    // SAFETY: the page is the first of the mapping, which was made here and has no other user yet.
    unsafe { mprotect(map.as_mut_ptr().cast(), PAGE, MprotectFlags::empty()) }?;
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_made_once_and_grows() {
        let mut stack = Stack::default();
        assert_eq!(stack.bytes(), 0);
        let first = stack.top(50_000).expect("memory");
        assert!(first.addr().is_multiple_of(PAGE));
        for frame in [50_000, 10, 4_000] {
            assert_eq!(stack.top(frame).expect("memory"), first);
        }
        let small = stack.bytes();
        assert!((50_000 + ROOM + PAGE..200_000).contains(&small), "{small}");
        stack.top(700_000).expect("memory");
        assert!(stack.bytes() >= 700_000 + ROOM + PAGE);
    }

    #[test]
    fn without_memory_there_is_an_error_and_no_stack() {
        let mut stack = Stack::default();
        stack.top(1).expect("memory");
        for frame in [usize::MAX / 2, usize::MAX - PAGE, usize::MAX] {
            assert!(stack.top(frame).is_err());
            assert_eq!(stack.bytes(), 0);
        }
        stack.top(1).expect("memory");
    }
}
