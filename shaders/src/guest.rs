//! Guest memory: the only raw loads and stores in the workspace.
//!
//! Kernels, host mappings and copies may race, legally in Vulkan's eyes, so guest memory is never `&[u8]`.
//! A [`GuestSlice`] is a range of it; every access is checked against the range and made with relaxed atomics of
//! the access's width, so a race yields a stale or fresh value and never undefined behaviour.
//!
//! # Safety
//!
//! The one obligation is at [`GuestSlice::new`]: the range stays mapped, readable and writable as long as any copy of
//! the slice is used, and no Rust references point into it but those to atomics. The driver meets it by keeping the
//! allocation alive (an `Arc` in the batch) until the batch that uses it has retired.

mod bulk;

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A range of guest memory. Copying it copies the reference, not the bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GuestSlice {
    base: *mut u8,
    len: u64,
}

// SAFETY: every access through a `GuestSlice` is atomic, and `new` obliges the caller to keep the range mapped whatever
// thread uses it.
unsafe impl Send for GuestSlice {}
// SAFETY: as for `Send`.
unsafe impl Sync for GuestSlice {}

impl GuestSlice {
    /// A range of no bytes: reads give 0, writes are dropped. What a null or missing descriptor becomes.
    pub const EMPTY: Self = Self { base: std::ptr::null_mut(), len: 0 };

    /// # Safety
    ///
    /// `base .. base + len` must stay mapped, readable and writable while any copy of the slice is used, and must not
    /// be accessed through Rust references meanwhile.
    pub const unsafe fn new(base: *mut u8, len: u64) -> Self {
        Self { base, len }
    }

    /// A fresh range of zeroed bytes, 64-byte aligned, which is never freed: safe without an owner. For tests and tools that
    /// run a kernel without a device.
    pub fn leak(bytes: usize) -> Self {
        /// A cache line, so that no kernel's alignment is a matter of luck.
        #[repr(align(64))]
        struct Line(#[expect(dead_code, reason = "read and written through the slice only")] [AtomicU64; 8]);
        let lines = (0..bytes.div_ceil(64)).map(|_| Line(std::array::from_fn(|_| AtomicU64::new(0))));
        let base = Box::into_raw(lines.collect::<Box<[Line]>>()).cast::<u8>();
        // SAFETY: the memory was given up for good, so it stays mapped and no Rust reference points into it.
        unsafe { Self::new(base, bytes as u64) }
    }

    /// Length in bytes.
    pub const fn len(self) -> u64 {
        self.len
    }

    /// Whether the range has no bytes.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Address of the first byte; for tests of alignment and for identity.
    pub fn address(self) -> usize {
        self.base.addr()
    }

    /// The part from `offset` of at most `len` bytes, cut at the end of this range.
    #[must_use]
    pub fn slice(self, offset: u64, len: u64) -> Self {
        if offset >= self.len {
            return Self::EMPTY;
        }
        let len = len.min(self.len - offset);
        // The sum stays inside the range, so `wrapping_add` keeps the provenance of `base`.
        Self { base: self.base.wrapping_add(offset as usize), len }
    }

    /// Pointer to `size` bytes at `offset` if they lie in the range.
    fn at(self, offset: u64, size: u64) -> Option<*mut u8> {
        let end = offset.checked_add(size)?;
        (end <= self.len).then(|| self.base.wrapping_add(offset as usize))
    }

    fn word(&self, offset: u64) -> Option<&AtomicU32> {
        let at = self.at(offset, 4)?.cast::<u32>();
        // SAFETY: in bounds by `at`, mapped by the contract of `new`, aligned by this test, accessed only atomically.
        at.is_aligned().then(|| unsafe { AtomicU32::from_ptr(at) })
    }

    /// The 32-bit word at byte `offset`, little-endian; 0 outside the range.
    #[inline]
    pub fn load_u32(self, offset: u64) -> u32 {
        match self.word(offset) {
            Some(word) => u32::from_le(word.load(Relaxed)),
            None => self.load_unaligned(offset),
        }
    }

    /// Stores a 32-bit word at byte `offset`, little-endian; dropped outside the range.
    #[inline]
    pub fn store_u32(self, offset: u64, value: u32) {
        match self.word(offset) {
            Some(word) => word.store(value.to_le(), Relaxed),
            None if self.at(offset, 4).is_some() => {
                for (i, byte) in value.to_le_bytes().into_iter().enumerate() {
                    self.store_u8(offset + i as u64, byte);
                }
            }
            None => {}
        }
    }

    #[cold]
    fn load_unaligned(self, offset: u64) -> u32 {
        if self.at(offset, 4).is_none() {
            return 0;
        }
        u32::from_le_bytes(std::array::from_fn(|i| self.load_u8(offset + i as u64)))
    }

    /// The word at `offset` as an atomic; `None` outside the range or where it is not aligned.
    #[inline]
    pub fn atomic_u32(&self, offset: u64) -> Option<&AtomicU32> {
        self.word(offset)
    }

    /// The byte at `offset`; 0 outside the range.
    pub fn load_u8(self, offset: u64) -> u8 {
        match self.at(offset, 1) {
            // SAFETY: in bounds by `at`, mapped by the contract of `new`, any address is aligned for a byte.
            Some(at) => unsafe { AtomicU8::from_ptr(at) }.load(Relaxed),
            None => 0,
        }
    }

    /// Stores the byte at `offset`; dropped outside the range.
    pub fn store_u8(self, offset: u64, value: u8) {
        if let Some(at) = self.at(offset, 1) {
            // SAFETY: in bounds by `at`, mapped by the contract of `new`, any address is aligned for a byte.
            unsafe { AtomicU8::from_ptr(at) }.store(value, Relaxed);
        }
    }

    /// The aligned 64-bit words of the range, and how many bytes come before them.
    fn double_words(&self) -> (usize, &[AtomicU64]) {
        let head = self.base.addr().wrapping_neg() as u64 % 8;
        let count = self.len.saturating_sub(head) / 8;
        if count == 0 {
            return (self.len.min(head) as usize, &[]);
        }
        let at = self.base.wrapping_add(head as usize).cast::<AtomicU64>();
        // SAFETY: `head + count * 8` is at most `len`, so mapped by the contract of `new`; aligned by `head`; a slice of
        // atomics may be accessed by others meanwhile, as long as they, too, access it atomically, as they do.
        (head as usize, unsafe { std::slice::from_raw_parts(at, count as usize) })
    }
}
