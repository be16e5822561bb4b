//! Settings of a detector: the memory model's profile, the size of a dispatch, bounds of what is kept.

use super::planes::GRANULE;
use crate::ir::PlaneSet;

/// How strictly the memory model is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// What compilers emit without a guarantee by the model is accepted inside a workgroup, with a note.
    #[default]
    Common,
    /// As the specification says.
    Spec,
    /// As the specification says; reports also contain advice.
    Strict,
}

/// The size of a dispatch, and what its module is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
    /// Whether the module declares the Vulkan memory model.
    pub vulkan_model: bool,
}

/// Bounds of what a detector keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of shadow memory and of what belongs to it, about.
    pub bytes: u64,
    /// Bytes of records, of these: a quarter, at most, whatever this says.
    pub records: u64,
    /// Kinds of candidates.
    pub kinds: usize,
    /// Candidates that are kept of each kind.
    pub examples: usize,
}

impl Limits {
    /// The least number of bytes with which something is checked, whatever a kernel accesses first: a page of device
    /// memory and one of workgroup memory, with the tables that belong to them.
    pub const MIN_BYTES: u64 = PlaneSet::ALL.bytes() + PlaneSet::CELLS.bytes() + GRANULE / 2;
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 1 << 30, records: u64::MAX, kinds: 4096, examples: 8 }
    }
}
