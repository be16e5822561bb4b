//! Memory for code: written first, then executable, never both.
//!
//! # Safety
//!
//! Making memory executable is safe in itself. What calls into it (`call.rs`) relies on this file: the pages hold exactly
//! the bytes they were filled with, stay mapped as long as [`CodeMemory`] lives, and nobody can write them.

use memmap2::{Mmap, MmapMut};

/// Pages with code.
#[derive(Debug)]
pub(super) struct CodeMemory {
    pages: Mmap,
    bytes: usize,
}

impl CodeMemory {
    /// Maps pages, fills them and makes them executable.
    pub(super) fn new(bytes: &[u8]) -> std::io::Result<Self> {
        let mut pages = MmapMut::map_anon(bytes.len().max(1))?;
        pages[..bytes.len()].copy_from_slice(bytes);
        Ok(Self { pages: pages.make_exec()?, bytes: bytes.len() })
    }

    /// The bytes as they were given; they can be executed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.pages[..self.bytes]
    }
}
