//! 64-bit scalars (addresses, lengths) and the context fields that they come from.

use super::Type;

/// 64-bit operations on scalars, all unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WideOp {
    /// `s32` to `s64`, zero-extended.
    Extend,
    /// `s64` to `s32`, the low half.
    Truncate,
    /// Wrapping sum.
    Add,
    /// Saturating difference: 0 instead of a negative result.
    SubSat,
    /// Low half of the product.
    Mul,
    /// High half of the 128-bit product.
    MulHigh,
    /// Lesser.
    Min,
    /// First shifted right by the second, a constant below 64.
    Shr,
    /// First less than second: `s1`.
    Lt,
}

impl WideOp {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Extend,
        Self::Truncate,
        Self::Add,
        Self::SubSat,
        Self::Mul,
        Self::MulHigh,
        Self::Min,
        Self::Shr,
        Self::Lt,
    ];

    /// The name in the text form, after `wide.`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Extend => "extend",
            Self::Truncate => "truncate",
            Self::Add => "add",
            Self::SubSat => "sub_sat",
            Self::Mul => "mul",
            Self::MulHigh => "mul_high",
            Self::Min => "min",
            Self::Shr => "shr",
            Self::Lt => "lt",
        }
    }

    /// Types of the operands.
    pub fn params(self) -> &'static [Type] {
        match self {
            Self::Extend => &[Type::S32],
            Self::Truncate => &[Type::S64],
            _ => &[Type::S64, Type::S64],
        }
    }

    /// Type of the result.
    pub fn result(self) -> Type {
        match self {
            Self::Truncate => Type::S32,
            Self::Lt => Type::S1,
            _ => Type::S64,
        }
    }

    /// The result of the operation; 32-bit operands are zero-extended.
    pub fn fold(self, args: &[u64]) -> u64 {
        match (self, args) {
            (Self::Extend, &[a]) => a,
            (Self::Truncate, &[a]) => u64::from(a as u32),
            (Self::Add, &[a, b]) => a.wrapping_add(b),
            (Self::SubSat, &[a, b]) => a.saturating_sub(b),
            (Self::Mul, &[a, b]) => a.wrapping_mul(b),
            (Self::MulHigh, &[a, b]) => ((u128::from(a) * u128::from(b)) >> 64) as u64,
            (Self::Min, &[a, b]) => a.min(b),
            (Self::Shr, &[a, b]) => a.checked_shr(b as u32).unwrap_or(0),
            (Self::Lt, &[a, b]) => u64::from(a < b),
            _ => unreachable!("operands of {}: {args:?}", self.name()),
        }
    }
}

/// A field of the context that a kernel is called with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContextField {
    /// `NumWorkgroups`, component 0 to 2: `s32`.
    NumWorkgroups(u8),
    /// `WorkgroupId`, component 0 to 2: `s32`.
    WorkgroupId(u8),
    /// Exclusive upper bound of `WorkgroupId`'s component 0 in the run of workgroups to run: `s32`.
    RowEnd,
    /// Address of the push constants: `s64`.
    Push,
    /// Address of workgroup memory: `s64`.
    Shared,
    /// Address of private memory, [`Kernel::private_bytes`](super::Kernel::private_bytes) for each subgroup: `s64`.
    Private,
    /// Address of the frames, [`Kernel::frame_bytes`](super::Kernel::frame_bytes) for each subgroup: `s64`.
    Frames,
    /// Address of the rows of calls, [`Kernel::call_bytes`](super::Kernel::call_bytes) of them: `s64`.
    Calls,
    /// Address of [`Kernel::tables`](super::Kernel::tables): `s64`.
    Tables,
    /// Address of the order of the workgroup's subgroups, [`Kernel::subgroup_order`](super::Kernel::subgroup_order)
    /// words, each subgroup's number once: `s64`.
    SubgroupOrder,
}

impl ContextField {
    /// Type of the field.
    pub fn ty(self) -> Type {
        match self {
            Self::NumWorkgroups(_) | Self::WorkgroupId(_) | Self::RowEnd => Type::S32,
            Self::Push | Self::Shared | Self::Private | Self::Frames => Type::S64,
            Self::Calls | Self::Tables | Self::SubgroupOrder => Type::S64,
        }
    }
}
