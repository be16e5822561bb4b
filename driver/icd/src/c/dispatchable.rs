//! Dispatchable handles: addresses of blocks that begin with a word for the loader.
//!
//! # Safety
//!
//! Blocks are reused but never freed, so a stale handle still points to a block. Until the block is reused, its key
//! shows that the object is destroyed. The loader writes a block's first word when the call that created the handle
//! returns, before it makes another call with the handle; nothing here reads it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk::Handle;
use spelter_locks::{Mutex, PerProcess};

/// The first word that the loader expects (`ICD_LOADER_MAGIC`).
const LOADER_MAGIC: usize = 0x01CD_C0DE;

/// Marks the blocks of this driver.
const MAGIC: u64 = 0x5350_454C_5445_5221;

/// Spare blocks in quarantine: as many are kept before any is reused, so that stale handles are detected.
const MAX_QUARANTINED: usize = 1024;

#[repr(C)]
struct DispatchableBlock {
    loader: UnsafeCell<usize>,
    magic: AtomicU64,
    /// The object's key in its table; 0 if it is destroyed.
    key: AtomicU64,
    /// The next spare block, if this block is spare.
    next: Mutex<Option<&'static DispatchableBlock>>,
}

// SAFETY: only the loader accesses the first word once the handle is returned; this module writes it before that.
unsafe impl Sync for DispatchableBlock {}

/// Spare blocks, oldest first. The list is linked through the blocks, so that destroying an object allocates nothing.
/// The lock of a block's link is taken under that of the list only.
#[derive(Default)]
struct Spare {
    first: Option<&'static DispatchableBlock>,
    last: Option<&'static DispatchableBlock>,
    len: usize,
}

/// A forked process has the blocks of its parent, unless a thread was using the list at the fork.
static SPARE: PerProcess<Mutex<Spare>> = PerProcess::inheriting(Mutex::default, Mutex::inherit);

impl Spare {
    fn push(&mut self, block: &'static DispatchableBlock) {
        match self.last.replace(block) {
            Some(last) => *last.next.lock() = Some(block),
            None => self.first = Some(block),
        }
        self.len += 1;
    }

    fn pop(&mut self) -> Option<&'static DispatchableBlock> {
        let block = self.first?;
        self.first = block.next.lock().take();
        if self.first.is_none() {
            self.last = None;
        }
        self.len -= 1;
        Some(block)
    }
}

/// A handle for the object with that key.
pub(crate) fn make<H: Handle>(key: u64) -> H {
    let mut spare = SPARE.get().lock();
    let reused = if spare.len > MAX_QUARANTINED { spare.pop() } else { None };
    drop(spare);
    let block: &'static DispatchableBlock = match reused {
        Some(block) => block,
        None => Box::leak(Box::new(DispatchableBlock {
            loader: UnsafeCell::new(LOADER_MAGIC),
            magic: AtomicU64::new(MAGIC),
            key: AtomicU64::new(0),
            next: Mutex::new(None),
        })),
    };
    // SAFETY: no live handle refers to this block.
    unsafe { block.loader.get().write(LOADER_MAGIC) };
    // Release: pairs with the Acquire in `key`.
    block.key.store(key, Ordering::Release);
    H::from_raw(std::ptr::from_ref(block).expose_provenance() as u64)
}

/// The key of a handle's object; 0 for a handle that is null, misaligned, or of a destroyed object whose block was not
/// reused. Any other handle must come from [`make`].
pub(crate) fn key<H: Handle>(handle: H) -> u64 {
    block(handle).map_or(0, |block| block.key.load(Ordering::Acquire))
}

/// Marks the handle's object as destroyed, and its block as spare.
pub(crate) fn retire<H: Handle>(handle: H) {
    if let Some(block) = block(handle)
        && block.key.swap(0, Ordering::AcqRel) != 0
    {
        SPARE.get().lock().push(block);
    }
}

/// The block of a handle that [`make`] returned; `None` for one that is null or misaligned. The mark catches some of
/// the handles of other drivers that a program passes by mistake, but nothing relies on that.
fn block<H: Handle>(handle: H) -> Option<&'static DispatchableBlock> {
    let address = handle.as_raw() as usize;
    if address == 0 || !address.is_multiple_of(align_of::<DispatchableBlock>()) {
        return None;
    }
    let block = std::ptr::with_exposed_provenance::<DispatchableBlock>(address);
    // SAFETY: a handle that a caller passes was created by `make` (Vulkan demands a valid handle), so it is the address
    // of a block, which is never freed.
    let block = unsafe { &*block };
    (block.magic.load(Ordering::Relaxed) == MAGIC).then_some(block)
}

#[cfg(test)]
mod tests {
    use ash::vk;

    use super::*;

    #[test]
    fn stale_handles_are_detected() {
        let queue: vk::Queue = make(7);
        assert_eq!(key(queue), 7);
        // SAFETY: a block begins with a word.
        let first = unsafe { *std::ptr::with_exposed_provenance::<usize>(queue.as_raw() as usize) };
        assert_eq!(first, LOADER_MAGIC);
        retire(queue);
        assert_eq!(key(queue), 0);
        retire(queue);
        assert_eq!(key(vk::Queue::null()), 0);
        assert_eq!(key(vk::Queue::from_raw(1)), 0);
    }
}
