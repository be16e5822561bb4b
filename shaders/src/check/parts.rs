//! Cells for less than a word. Where all accesses through a descriptor or variable are of 2 bytes, or all of 1, its
//! memory has a cell for each this many bytes, so that they need no history, and machine code may settle them.
//!
//! Such cells lie at addresses of their own, which no memory has, as if each were that of a word: the shadow makes no
//! difference. A descriptor or variable has them only if nothing else accesses its memory (`offer.rs`).

use std::ops::Range;

use super::attributes::index;
use super::detector::Detector;
use super::inline::{MAX_SCALE, first_cell_of_variable};
use super::observer::{Memory, Target};
use crate::ir::{InlineChecks, StorageClass};

/// Above all addresses of memory: where sub-word cells of device memory are.
const BEYOND: u64 = 1 << 62;

/// Where the cells of some memory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    /// The first byte of the memory.
    start: u64,
    /// The address of its cell.
    at: u64,
    /// Cells for each word.
    scale: u64,
}

impl Parts {
    /// A cell for each word, at its address.
    pub(super) const WORDS: Self = Self { start: 0, at: 0, scale: 1 };

    /// Of device memory from an address on, with a cell for each `grain` bytes.
    pub(super) fn of_device(start: u64, grain: u32) -> Self {
        if grain >= 4 { Self::WORDS } else { Self { start, at: Self::address(start), scale: u64::from(4 / grain) } }
    }

    /// Of a workgroup variable.
    pub(super) fn of_variable(first: u32, grain: u32) -> Self {
        let (start, scale) = (u64::from(first), 4 / grain.clamp(1, 4));
        let at = first_cell_of_variable(start, scale);
        if scale == 1 { Self::WORDS } else { Self { start, at, scale: scale.into() } }
    }

    /// Where the cells of device memory are that begins there, if it has several for each word.
    pub(super) fn address(start: u64) -> u64 {
        BEYOND + MAX_SCALE * start
    }

    /// The addresses of the cells of some bytes.
    #[inline]
    pub(super) fn cells(self, bytes: Range<u64>) -> Range<u64> {
        let cell = |byte: u64| self.at + byte.saturating_sub(self.start).saturating_mul(self.scale);
        cell(bytes.start)..cell(bytes.end)
    }

    /// The byte with this cell.
    #[inline]
    pub(super) fn byte(self, cell: u64) -> u64 {
        self.start + cell.saturating_sub(self.at) / self.scale
    }

    /// The bytes for which this many bytes of cells stand.
    pub(super) fn bytes(self, cells: u32) -> u32 {
        (cells / self.scale as u32).max(1)
    }

    /// Cells for each word.
    #[inline]
    pub(super) fn scale(self) -> u32 {
        self.scale as u32
    }
}

/// Where the cells of each reference's memory are, as far as they are not those of its words.
#[derive(Debug, Default)]
pub(super) struct AllParts {
    descriptors: Vec<Parts>,
    variables: Vec<Parts>,
}

impl AllParts {
    /// All memory has a cell for each word.
    pub(super) fn clear(&mut self) {
        self.descriptors.clear();
        self.variables.clear();
    }

    pub(super) fn set_descriptor(&mut self, number: u32, parts: Parts) {
        set(&mut self.descriptors, number, parts);
    }

    pub(super) fn set_variable(&mut self, number: u32, parts: Parts) {
        set(&mut self.variables, number, parts);
    }
}

fn set(list: &mut Vec<Parts>, number: u32, parts: Parts) {
    let number = number as usize;
    if parts != Parts::WORDS {
        list.resize(list.len().max(number + 1), Parts::WORDS);
        list[number] = parts;
    }
}

impl Detector {
    /// Where the cells of a target's memory are, which is of a class.
    #[inline]
    pub(super) fn parts(&self, target: Target, class: usize) -> Parts {
        let list = match target.memory {
            // Images have numbers of their own.
            Memory::Device(_) if class != index(StorageClass::Uniform) => return Parts::WORDS,
            Memory::Device(_) => &self.parts.descriptors,
            Memory::Workgroup(_) => &self.parts.variables,
        };
        list.get(target.reference as usize).copied().unwrap_or(Parts::WORDS)
    }

    /// Whether cells of device memory for less than a word are possible, if the checks need any: no other class may
    /// have the memory.
    pub(super) fn may_divide(&mut self, checks: &InlineChecks) -> bool {
        if checks.grains.iter().all(|&grain| grain >= 4) {
            return true;
        }
        self.reserve_parts()
    }
}
