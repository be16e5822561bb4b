//! Guest memory: the only raw loads and stores in the workspace.
//!
//! Kernels, host mappings and copies may race, legally in Vulkan's eyes, so guest memory is never `&[u8]`.
//! A [`GuestSlice`] is a range of it. Every access is checked against the range and is a relaxed access of an aligned
//! 32-bit word, so a race yields a stale or fresh word and never undefined behaviour.
//!
//! # Safety
//!
//! The one obligation is at [`GuestSlice::new`]: the range, rounded outwards to multiples of 4 bytes, stays mapped,
//! readable and writable as long as any copy of the slice is used, and is accessed through guest slices only. The
//! driver meets it by mapping whole pages and by keeping the allocation alive (an `Arc` in the batch) until the batch
//! that uses it has retired.
//!
//! This is sufficient. Memory is touched in two places: `words` gives the aligned words that a range touches,
//! `atomic_u32` an aligned word inside it, both as [`AtomicU32`]. They are mapped, because the rounded range is, and a
//! subrange of a slice rounds to a subrange of the rounded slice. Two accesses touch the same word or words that share
//! no byte, since all are aligned and of one size: Rust lets atomics of one size race, and forbids races of atomics
//! that overlap partly. A byte is therefore accessed through its word: loaded with it, and stored by a compare-exchange
//! that keeps the other bytes as another thread made them. No reference other than to these atomics points into the
//! memory. Only machine code accesses it otherwise: kernels, and on x86-64 the string instructions of `move_string` and
//! `fill_words`. Those are not Rust's accesses, so its rules about races do not apply; a racing read yields old or new
//! values, byte by byte.

mod bulk;

use std::sync::atomic::{AtomicU32, Ordering, Ordering::Relaxed};

/// A range of guest memory. Copying it copies the reference, not the bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GuestSlice {
    base: *mut u8,
    len: u64,
}

// SAFETY: every access through a `GuestSlice` is an atomic one of an aligned word, and `new` obliges the caller to keep
// the range mapped whatever thread uses it.
unsafe impl Send for GuestSlice {}
// SAFETY: as for `Send`.
unsafe impl Sync for GuestSlice {}

impl GuestSlice {
    /// A range of no bytes: reads give 0, writes are dropped. What a null or missing descriptor becomes.
    pub const EMPTY: Self = Self { base: std::ptr::null_mut(), len: 0 };

    /// # Safety
    ///
    /// `base .. base + len`, rounded outwards to multiples of 4 bytes, must stay mapped, readable and writable while
    /// any copy of the slice is used; `base` must be a pointer to all of it; and meanwhile it must be accessed through
    /// guest slices only.
    pub const unsafe fn new(base: *mut u8, len: u64) -> Self {
        Self { base, len }
    }

    /// A fresh range of zeroed bytes, 64-byte aligned, which is never freed: safe without an owner. For tests and tools
    /// that run a kernel without a device.
    pub fn leak(bytes: usize) -> Self {
        /// A cache line, so that no kernel's alignment is a matter of luck.
        #[repr(align(64))]
        struct CacheLine(#[expect(dead_code, reason = "read and written through the slice only")] [AtomicU32; 16]);
        let lines = (0..bytes.div_ceil(64)).map(|_| CacheLine(std::array::from_fn(|_| AtomicU32::new(0))));
        let base = Box::into_raw(lines.collect::<Box<[CacheLine]>>()).cast::<u8>();
        // SAFETY: the memory was given up for good, so it stays mapped and nothing else accesses it; lines are whole
        // words.
        unsafe { Self::new(base, bytes as u64) }
    }

    /// Copies as many bytes as both ranges have, from the first byte on, at the speed of the machine's string moves;
    /// `false` where it has none that are known to be fast.
    fn move_bytes(self, source: Self) -> bool {
        let len = self.len.min(source.len) as usize;
        // SAFETY: both ranges are mapped and writable by `new`'s contract, and `len` bytes lie in both.
        unsafe { move_string(self.base, source.base, len) }
    }

    /// As [`GuestSlice::move_bytes`], to memory of the host.
    fn move_out(self, into: &mut [u8]) -> bool {
        let len = into.len().min(self.len as usize);
        // SAFETY: the range is mapped by `new`'s contract, `len` bytes lie in both, and `into` is the caller's alone.
        unsafe { move_string(into.as_mut_ptr(), self.base, len) }
    }

    /// As [`GuestSlice::move_bytes`], from memory of the host.
    fn move_in(self, from: &[u8]) -> bool {
        let len = from.len().min(self.len as usize);
        // SAFETY: the range is mapped and writable by `new`'s contract, and `len` bytes lie in both.
        unsafe { move_string(self.base, from.as_ptr(), len) }
    }

    /// Fills as many whole words as the range has, from the first byte on; `false` where the machine has no fast way.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn fill_words(self, word: u32) -> bool {
        let words = self.len as usize / 4;
        // SAFETY: as for `move_bytes`; this number of words lies in the range.
        unsafe {
            std::arch::asm!(
                "rep stosd",
                inout("rcx") words => _,
                inout("rdi") self.base => _,
                in("eax") word,
                options(nostack, preserves_flags)
            );
        }
        true
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    fn fill_words(self, _: u32) -> bool {
        false
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

    /// Pointer to the first byte, for programs that map memory. Writes through it may race with kernels, like those of
    /// other devices.
    pub fn pointer(self) -> *mut u8 {
        self.base
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

    /// Whether `size` bytes at `offset` lie in the range.
    fn has(self, offset: u64, size: u64) -> bool {
        offset.checked_add(size).is_some_and(|end| end <= self.len)
    }

    /// The aligned words that the range touches, and how many bytes of the first come before the range.
    #[inline]
    fn words(&self) -> (usize, &[AtomicU32]) {
        if self.len == 0 {
            return (0, &[]);
        }
        let phase = self.base.addr() % 4;
        let at = self.base.wrapping_sub(phase).cast::<AtomicU32>();
        let count = (phase + self.len as usize).div_ceil(4);
        // SAFETY: these are the words of the range rounded outwards, mapped by the contract of `new`; `at` is aligned
        // by `phase`; whatever else accesses them does so as the same `AtomicU32`s.
        (phase, unsafe { std::slice::from_raw_parts(at, count) })
    }

    /// The words that lie in the range as a whole, and how many bytes of the range come before them.
    fn whole_words(&self) -> (usize, &[AtomicU32]) {
        let (phase, words) = self.words();
        let head = (phase.wrapping_neg() % 4).min(self.len as usize);
        let count = (self.len as usize - head) / 4;
        let first = usize::from(phase != 0);
        (head, words.get(first..first + count).unwrap_or_default())
    }

    /// The words that lie in the range as a whole, if it begins with one.
    #[inline]
    pub(crate) fn aligned_words(&self) -> Option<&[AtomicU32]> {
        match self.whole_words() {
            (0, words) => Some(words),
            _ => None,
        }
    }

    /// The word at `offset` as an atomic; `None` outside the range or where it is not aligned.
    #[inline]
    pub fn atomic_u32(&self, offset: u64) -> Option<&AtomicU32> {
        if !self.has(offset, 4) {
            return None;
        }
        let at = self.base.wrapping_add(offset as usize).cast::<u32>();
        // SAFETY: in the range by the test above, so mapped by the contract of `new`; aligned by this test; whatever
        // else accesses the word does so as the same `AtomicU32`.
        at.is_aligned().then(|| unsafe { AtomicU32::from_ptr(at) })
    }

    /// The 32-bit word at byte `offset`, little-endian; 0 outside the range.
    #[inline]
    pub fn load_u32(self, offset: u64) -> u32 {
        match self.atomic_u32(offset) {
            Some(word) => u32::from_le(word.load(Relaxed)),
            None => self.load_unaligned(offset),
        }
    }

    /// Stores a 32-bit word at byte `offset`, little-endian; dropped outside the range. Unaligned, it is two stores.
    #[inline]
    pub fn store_u32(self, offset: u64, value: u32) {
        match self.atomic_u32(offset) {
            Some(word) => word.store(value.to_le(), Relaxed),
            None => self.store_unaligned(offset, value),
        }
    }

    #[cold]
    fn load_unaligned(self, offset: u64) -> u32 {
        if !self.has(offset, 4) {
            return 0;
        }
        match self.slice(offset, 4).words() {
            (phase, [low, high]) => {
                let both = [low, high].map(|word| u64::from(u32::from_le(word.load(Relaxed))));
                ((both[0] | both[1] << 32) >> (phase * 8)) as u32
            }
            _ => 0,
        }
    }

    #[cold]
    fn store_unaligned(self, offset: u64, value: u32) {
        if !self.has(offset, 4) {
            return;
        }
        if let (phase, [low, high]) = self.slice(offset, 4).words() {
            let place = |bits: u32| u64::from(bits) << (phase * 8);
            let (mask, value) = (place(u32::MAX), place(value));
            replace_bits(low, mask as u32, value as u32);
            replace_bits(high, (mask >> 32) as u32, (value >> 32) as u32);
        }
    }

    /// The byte at `offset`; 0 outside the range.
    pub fn load_u8(self, offset: u64) -> u8 {
        match self.slice(offset, 1).words() {
            (phase, [word, ..]) => (u32::from_le(word.load(Relaxed)) >> (phase * 8)) as u8,
            _ => 0,
        }
    }

    /// Stores the byte at `offset`, and leaves its neighbours as they are; dropped outside the range.
    pub fn store_u8(self, offset: u64, value: u8) {
        if let (phase, [word, ..]) = self.slice(offset, 1).words() {
            replace_bits(word, 0xff << (phase * 8), u32::from(value) << (phase * 8));
        }
    }
}

impl GuestSlice {
    /// The 16-bit word at byte `offset`, little-endian; 0 outside the range.
    pub fn load_u16(self, offset: u64) -> u16 {
        if !self.has(offset, 2) {
            return 0;
        }
        match self.slice(offset, 2).words() {
            (phase, [word]) => (u32::from_le(word.load(Relaxed)) >> (phase * 8)) as u16,
            _ => u16::from_le_bytes([self.load_u8(offset), self.load_u8(offset + 1)]),
        }
    }

    /// Stores a 16-bit word at byte `offset`, and leaves its neighbours as they are; dropped outside the range. Across
    /// two words it is two stores.
    pub fn store_u16(self, offset: u64, value: u16) {
        if !self.has(offset, 2) {
            return;
        }
        match self.slice(offset, 2).words() {
            (phase, [word]) => replace_bits(word, 0xffff << (phase * 8), u32::from(value) << (phase * 8)),
            _ => {
                let [low, high] = value.to_le_bytes();
                self.store_u8(offset, low);
                self.store_u8(offset + 1, high);
            }
        }
    }
}

impl GuestSlice {
    /// The 16-bit word at byte `offset`, which `new` may replace in one step; `None` outside the range, or where the
    /// address is not a multiple of 2. Orders are those of the exchange, and of the load where there is none.
    pub fn update_u16(
        self,
        offset: u64,
        [exchange, load]: [Ordering; 2],
        mut new: impl FnMut(u16) -> Option<u16>,
    ) -> Option<u16> {
        if !self.has(offset, 2) {
            return None;
        }
        match self.slice(offset, 2).words() {
            (phase @ (0 | 2), [word]) => {
                let half = |old: u32| (u32::from_le(old) >> (phase * 8)) as u16;
                let with = |old: u32, new: u16| {
                    (u32::from_le(old) & !(0xffff << (phase * 8)) | u32::from(new) << (phase * 8)).to_le()
                };
                let old = word.fetch_update(exchange, load, |old| new(half(old)).map(|new| with(old, new)));
                Some(half(old.unwrap_or_else(|old| old)))
            }
            _ => None,
        }
    }
}

/// Replaces the bits of `mask` in a little-endian word; the others stay as another thread may make them meanwhile.
fn replace_bits(word: &AtomicU32, mask: u32, value: u32) {
    let (mask, value) = (mask.to_le(), value.to_le());
    let mut old = word.load(Relaxed);
    while let Err(now) = word.compare_exchange_weak(old, old & !mask | value, Relaxed, Relaxed) {
        old = now;
    }
}

/// Copies `len` bytes by the machine's string move; `false`, without a copy, where there is none that is known to be
/// fast.
///
/// # Safety
///
/// `len` bytes must be readable at `from` and writable at `to`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn move_string(to: *mut u8, from: *const u8, len: usize) -> bool {
    // SAFETY: the bytes are the caller's obligation. The instruction changes the three registers and memory, and the
    // direction flag is clear as the ABI demands.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
    true
}

/// # Safety
///
/// None is needed: it does nothing.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe fn move_string(_: *mut u8, _: *const u8, _: usize) -> bool {
    false
}
