//! The accesses that a kernel of checked mode settles in its own code, and the planes of the shadow that they concern.
//! Kernels of both IRs and the detector need these; what the planes hold is the detector's (`check/planes.rs`).

use super::{ObservedVariable, Site};

/// One of the planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plane {
    /// Cells of the last writes.
    Written,
    /// Cells of the last reads.
    Read,
    /// The number of the instruction that wrote last.
    Wrote,
    /// The number of the instruction that read last.
    HasRead,
}

/// Some of the planes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaneSet(u8);

impl PlaneSet {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self::of(Plane::Written).and(Plane::Read).and(Plane::Wrote).and(Plane::HasRead);
    /// Those that have cells.
    pub(crate) const CELLS: Self = Self::of(Plane::Written).and(Plane::Read);

    /// One of them.
    pub const fn of(plane: Plane) -> Self {
        Self(1 << plane as u8)
    }

    /// These and another one.
    #[must_use]
    pub const fn and(self, plane: Plane) -> Self {
        self.or(Self::of(plane))
    }

    /// All planes of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The planes that are in both sets.
    pub(crate) const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The planes of this set only.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all planes of another set are in this one.
    pub(crate) const fn has(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// How many there are.
    pub(crate) const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The planes, one after another.
    pub(crate) fn planes(self) -> impl Iterator<Item = Plane> {
        let all = [Plane::Written, Plane::Read, Plane::Wrote, Plane::HasRead];
        all.into_iter().filter(move |&plane| self.has(Self::of(plane)))
    }
}

/// Planes of a descriptor.
pub(crate) const PLANES: u32 = 4;

/// The memory that checks in machine code concern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineChecks {
    /// Numbers of descriptors, each once.
    pub descriptors: Vec<u32>,
    /// Of each of them, the planes that machine code may write.
    pub planes: Vec<PlaneSet>,
    /// Of each of them, the bytes of memory that a cell stands for: those of its accesses, or of a word.
    pub grains: Vec<u32>,
    /// Of each of them, whether the plain accesses to its memory are private; `None` if some are and others are not.
    pub private: Vec<Option<bool>>,
    /// Of each of them, whether the kernel only reads through its binding.
    pub only_read: Vec<bool>,
    /// Workgroup variables, each once.
    pub variables: Vec<ObservedVariable>,
    /// Of each of them, the bytes that a cell stands for.
    pub variable_grains: Vec<u32>,
    /// Of each of them, whether the plain accesses to it are private; `None` if some are and others are not.
    pub variable_private: Vec<Option<bool>>,
    /// The instructions, with the descriptor that each accesses.
    pub sites: Vec<(Site, u32)>,
}

impl InlineChecks {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.descriptors.is_empty() && self.variables.is_empty()
    }

    /// The bytes that a cell of a descriptor's memory stands for.
    pub(crate) fn grain_of_descriptor(&self, number: u32) -> Option<u32> {
        let at = self.descriptors.iter().position(|&known| known == number)?;
        self.grains.get(at).copied()
    }

    /// The bytes that a cell of a workgroup variable stands for.
    pub(crate) fn grain_of_variable(&self, number: u32) -> Option<u32> {
        let at = self.variables.iter().position(|known| known.number == number)?;
        self.variable_grains.get(at).copied()
    }

    /// Slices after those of the kernel's descriptors.
    pub fn slices(&self) -> u32 {
        if self.is_empty() { 0 } else { PLANES * self.descriptors.len() as u32 + 3 }
    }
}
