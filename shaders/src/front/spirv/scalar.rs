//! Scalar types, into which values of all types are exploded.

use crate::ir;

/// A scalar type. Only built-ins and constants have a signedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    F16,
    F32,
    F64,
    /// An image or sampler: its descriptor.
    Handle,
    /// The buffer part of a pointer.
    Buffer,
}

impl Scalar {
    /// The IR type of its values; [`Scalar::words`] gives their number.
    pub(super) fn ty(self) -> ir::Type {
        match self {
            Self::Bool => ir::Type::Bool,
            Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::F64 => ir::Type::I32,
            Self::F16 | Self::F32 => ir::Type::F32,
            Self::Handle | Self::Buffer => ir::Type::Buffer,
        }
    }

    /// The scalar for one value of an IR type.
    pub(super) fn of(ty: ir::Type) -> Self {
        match ty {
            ir::Type::Bool => Self::Bool,
            ir::Type::F32 => Self::F32,
            ir::Type::I32 => Self::I32,
            ir::Type::Buffer => Self::Handle,
        }
    }

    /// Number of values that hold it.
    pub(super) fn words(self) -> u32 {
        if matches!(self, Self::I64 | Self::F64) { 2 } else { 1 }
    }

    /// Bit width of a number.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::I8 => 8,
            Self::I16 | Self::F16 => 16,
            Self::Bool | Self::I32 | Self::F32 | Self::Handle | Self::Buffer => 32,
            Self::I64 | Self::F64 => 64,
        }
    }

    /// Size in memory in bytes, with an explicit layout.
    pub(super) fn bytes(self) -> u32 {
        self.bits() / 8
    }

    pub(super) fn is_int(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Handle => "image or sampler",
            Self::Buffer => "pointer",
        })
    }
}
