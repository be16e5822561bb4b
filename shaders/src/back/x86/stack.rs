//! A worker's own stack, for kernels with large frames: nobody knows how much of the caller's is left, which may be an
//! application's thread with a stack of some ten pages.
//!
//! The code switches to it when it is entered, and back to the caller's for calls out of it (`encode/frame.rs`). So nothing
//! lies here but one frame, what calls keep, and now and then a handler of signals.
//!
//! # Safety
//!
//! What calls the code (`call.rs`) relies on this file: from the top down there are as many writable bytes as were asked for and
//! [`ROOM`] more, at one place until the next call of [`Stack::top`], and below them a page that nobody can access. Nobody
//! else has the memory: it is reached through the `Stack` alone, which is borrowed mutably while code runs.

use std::io;

use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::{MprotectFlags, mprotect};

use super::code_memory::PAGE;

/// Bytes below the frame: for registers that calls keep (some 3 KiB), and for handlers of signals that have no stack of
/// their own. The system puts up to 11 KiB of registers there, and pages that are never touched take no memory.
const ROOM: usize = 64 << 10;

/// Memory for one large frame at a time: none before it is needed, then kept for the next kernel.
#[derive(Debug, Default)]
pub struct Stack {
    map: Option<MmapRaw>,
}

impl Stack {
    /// Bytes of address space that it has.
    pub fn bytes(&self) -> usize {
        self.map.as_ref().map_or(0, MmapRaw::len)
    }

    /// The upper end of a stack that has room for a frame of so many bytes; a multiple of the page size.
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

/// Zeros, and a page that ends the process if it is reached.
fn new_map(bytes: usize) -> io::Result<MmapRaw> {
    let map: MmapRaw = MmapOptions::new().len(bytes).stack().map_anon()?.into();
    // SAFETY: the page is the first of the mapping, which was made here and is unknown to anybody else.
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
