//! Properties of memory operations: place, access, scope, semantics, and atomic operations.

use super::{Value, Variable};

/// The address of a memory operation. Offsets are in bytes, `i32` read as unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a descriptor's buffer.
    Buffer {
        /// The declared kind of buffer.
        space: BufferSpace,
        /// The range.
        buffer: Value,
        /// Byte offset in the buffer.
        offset: Value,
    },
    /// In the push constants.
    Push {
        /// Byte offset.
        offset: Value,
    },
    /// In a workgroup, private or function variable.
    Variable {
        /// The variable.
        variable: Variable,
        /// Byte offset in the variable.
        offset: Value,
    },
}

impl Place {
    /// The byte offset.
    pub fn offset(&self) -> Value {
        match *self {
            Self::Buffer { offset, .. } | Self::Push { offset } | Self::Variable { offset, .. } => offset,
        }
    }

    pub(super) fn for_each_use(mut self, visit: &mut impl FnMut(&Value)) {
        self.for_each_use_mut(&mut |value| visit(value));
    }

    pub(super) fn for_each_use_mut(&mut self, visit: &mut impl FnMut(&mut Value)) {
        match self {
            Self::Buffer { buffer, offset, .. } => {
                visit(buffer);
                visit(offset);
            }
            Self::Push { offset } | Self::Variable { offset, .. } => visit(offset),
        }
    }
}

/// The declared kind of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferSpace {
    /// Storage buffer: writable, by other invocations, too.
    Storage,
    /// Uniform buffer: constant during the dispatch.
    Uniform,
}

/// Memory operands of a load or store, kept for the checked mode and for optimisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// `Volatile`.
    pub volatile: bool,
    /// `NonPrivatePointer`, or `Coherent` in a module of the GLSL450 model.
    pub non_private: bool,
    /// `MakePointerAvailable` or `MakePointerVisible` with this scope.
    pub available_visible: Option<Scope>,
}

/// Scope of an atomic, barrier or memory operand (SPIR-V `Scope`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `CrossDevice`.
    CrossDevice,
    /// `Device`.
    Device,
    /// `Workgroup`.
    Workgroup,
    /// `Subgroup`.
    Subgroup,
    /// `Invocation`.
    Invocation,
    /// `QueueFamily`.
    QueueFamily,
}

/// Memory semantics: the bits of SPIR-V's `Memory Semantics`, unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Semantics(pub u32);

/// The operation of an atomic on one word, or on two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// `OpAtomicLoad`.
    Load,
    /// `OpAtomicStore`: no result.
    Store,
    /// `OpAtomicExchange`.
    Exchange,
    /// `OpAtomicCompareExchange`.
    CompareExchange,
    /// `OpAtomicIAdd`; also increment.
    Add,
    /// `OpAtomicISub`; also decrement.
    Sub,
    /// `OpAtomicSMin`.
    SMin,
    /// `OpAtomicUMin`.
    UMin,
    /// `OpAtomicSMax`.
    SMax,
    /// `OpAtomicUMax`.
    UMax,
    /// `OpAtomicAnd`.
    And,
    /// `OpAtomicOr`.
    Or,
    /// `OpAtomicXor`.
    Xor,
    /// `OpAtomicFAddEXT` on floats, or on doubles.
    FAdd,
    /// `OpAtomicFMinEXT`.
    FMin,
    /// `OpAtomicFMaxEXT`.
    FMax,
    /// As [`AtomicOp::FAdd`] on a float that is rounded to a half: adds halves that are stored one per word.
    FAddHalf,
    /// As [`AtomicOp::Load`], 16 bits; all 16-bit operations have an offset that is a multiple of 2.
    HalfLoad,
    /// As [`AtomicOp::Store`].
    HalfStore,
    /// As [`AtomicOp::Exchange`].
    HalfExchange,
    /// As [`AtomicOp::FAdd`], on halves.
    HalfAdd,
    /// As [`AtomicOp::FMin`].
    HalfMin,
    /// As [`AtomicOp::FMax`].
    HalfMax,
}

impl AtomicOp {
    /// Whether the operands are bits of floats.
    pub fn is_float(self) -> bool {
        matches!(
            self,
            Self::FAdd | Self::FMin | Self::FMax | Self::FAddHalf | Self::HalfAdd | Self::HalfMin | Self::HalfMax
        )
    }

    /// Whether it only reads memory.
    pub fn is_load(self) -> bool {
        matches!(self, Self::Load | Self::HalfLoad)
    }

    /// Whether it has no result.
    pub fn is_store(self) -> bool {
        matches!(self, Self::Store | Self::HalfStore)
    }

    /// Whether it accesses 16 bits of memory: the low bits of operand and result, with zeros above.
    pub fn is_half(self) -> bool {
        use AtomicOp::{HalfAdd, HalfExchange, HalfLoad, HalfMax, HalfMin, HalfStore};
        matches!(self, HalfLoad | HalfStore | HalfExchange | HalfAdd | HalfMin | HalfMax)
    }

    /// The 16-bit form of the operation, if there is one.
    pub fn on_halves(self) -> Option<Self> {
        Some(match self {
            Self::Load => Self::HalfLoad,
            Self::Store => Self::HalfStore,
            Self::Exchange => Self::HalfExchange,
            Self::FAdd => Self::HalfAdd,
            Self::FMin => Self::HalfMin,
            Self::FMax => Self::HalfMax,
            _ => return None,
        })
    }
}
