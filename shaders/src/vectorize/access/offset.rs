//! Decomposition of byte offsets into constant, uniform and varying terms.
//!
//! `element` saturates at `u32::MAX`, so the exact sum of an offset's terms decides whether an access is in bounds: a
//! sum that would saturate is out of bounds, since no buffer is that long.

use smallvec::SmallVec;

use crate::analysis::BlockShapes;
use crate::ir::{self, InstData as ScalarInst, VariableSpace};

/// An offset past the end of any memory.
const BEYOND: u64 = 1 << 32;

/// `value * stride` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vectorize) struct OffsetTerm {
    pub(in crate::vectorize) value: ir::Value,
    pub(in crate::vectorize) stride: u32,
}

/// A byte offset: the exact sum of a constant and terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::vectorize) struct Offset {
    pub(in crate::vectorize) constant: u64,
    /// Terms that are the same in all lanes.
    pub(in crate::vectorize) uniform: SmallVec<[OffsetTerm; 2]>,
    /// Terms that differ between lanes.
    pub(in crate::vectorize) lanes: SmallVec<[OffsetTerm; 2]>,
}

impl Offset {
    /// Decomposes a byte offset: each `element` of a chain adds a term.
    pub(super) fn new(shapes: BlockShapes, mut value: ir::Value) -> Self {
        let mut offset = Self::default();
        loop {
            if let Some(bits) = shapes.kernel.constant(value) {
                // A saturated sum was folded to this constant: out of bounds, but a multiple of 4.
                offset.constant += if bits == u64::from(u32::MAX) { BEYOND } else { bits };
                return offset;
            }
            let Some(&ScalarInst::Element { base, index, stride }) = shapes.definition(value) else {
                offset.add_term(shapes, value, 1);
                return offset;
            };
            offset.add_term(shapes, index, stride);
            value = base;
        }
    }

    fn add_term(&mut self, shapes: BlockShapes, value: ir::Value, stride: u32) {
        if let Some(bits) = shapes.kernel.constant(value) {
            self.constant += bits * u64::from(stride);
        } else if stride > 0 {
            let list = if shapes.is_uniform(value) { &mut self.uniform } else { &mut self.lanes };
            list.push(OffsetTerm { value, stride });
        }
    }

    pub(in crate::vectorize) fn terms(&self) -> impl Iterator<Item = &OffsetTerm> {
        self.uniform.iter().chain(&self.lanes)
    }

    /// The offset times a factor; `None` if a stride is too large.
    pub(in crate::vectorize) fn scaled(&self, factor: u32) -> Option<Self> {
        let scaled = |terms: &SmallVec<[OffsetTerm; 2]>| -> Option<SmallVec<[OffsetTerm; 2]>> {
            let term = |term: &OffsetTerm| Some(OffsetTerm { stride: term.stride.checked_mul(factor)?, ..*term });
            terms.iter().map(term).collect()
        };
        let constant = self.constant * u64::from(factor);
        Some(Self { constant, uniform: scaled(&self.uniform)?, lanes: scaled(&self.lanes)? })
    }

    /// Whether the offset is a multiple of `bytes` in all lanes.
    pub(in crate::vectorize) fn is_multiple_of(&self, bytes: u32) -> bool {
        self.constant.is_multiple_of(bytes.into()) && self.terms().all(|term| term.stride.is_multiple_of(bytes))
    }

    /// Whether the offset is a multiple of 4 in all lanes.
    pub(in crate::vectorize) fn is_aligned(&self) -> bool {
        self.is_multiple_of(4)
    }
}

/// Whether each lane has its own memory for a variable.
pub(in crate::vectorize) fn is_private(kernel: &ir::Kernel, variable: ir::Variable) -> bool {
    kernel.variables[variable].space == VariableSpace::Private
}
