//! Bounds of accesses: regions of memory, how many elements they have, and which lanes are in bounds.

use smallvec::SmallVec;

use super::offset::{Offset, OffsetTerm};
use crate::abi::MAX_PUSH_BYTES;
use crate::ir::{self, Op, Place, VariableSpace};
use crate::simd::builder::{ALL, Builder};
use crate::simd::{ContextField, InstData, LaneAddress, Type, Value, WideOp};
use crate::vectorize::state::Widen;

/// The memory of an access: a descriptor's range, a variable or the push constants.
#[derive(Clone, Copy, Debug)]
pub(in crate::vectorize) struct MemoryRegion {
    /// Host address of its first byte, `s64`.
    pub(in crate::vectorize) base: Value,
    /// Its length in bytes, `s64`.
    pub(in crate::vectorize) len: Value,
}

/// Addresses of lanes.
#[derive(Clone, Copy, Debug)]
pub(in crate::vectorize) struct MaskedLanes {
    pub(in crate::vectorize) lanes: LaneAddress,
    /// The lanes that are active and in bounds.
    pub(in crate::vectorize) mask: Value,
}

impl MemoryRegion {
    /// The memory of a place about whose buffer the lanes agree.
    pub(in crate::vectorize) fn of_place(widen: &mut Widen<'_>, place: &Place) -> Self {
        match *place {
            Place::Buffer { buffer, .. } => {
                let number = widen.scalar(buffer);
                Self::of_descriptor(&mut widen.builder, number)
            }
            Place::Push { .. } => {
                let base = widen.builder.emit_one(InstData::Context { field: ContextField::Push });
                let len = widen.builder.s64(MAX_PUSH_BYTES as u64);
                Self { base, len }
            }
            Place::Variable { variable, .. } => {
                let constant = widen.kernel.variables[variable].space == VariableSpace::Constant;
                let field = if constant { ContextField::Tables } else { ContextField::Shared };
                let base = widen.builder.emit_one(InstData::Context { field });
                let skip = widen.builder.s64(u64::from(widen.plans.layout.variable_offsets[variable]));
                let base = widen.builder.wide(WideOp::Add, &[base, skip]);
                let len = widen.builder.s64(u64::from(widen.kernel.variables[variable].bytes));
                Self { base, len }
            }
        }
    }

    /// The memory of a descriptor.
    pub(in crate::vectorize) fn of_descriptor(builder: &mut Builder, buffer: Value) -> Self {
        let base = builder.emit_one(InstData::BufferBase { buffer });
        let len = builder.emit_one(InstData::BufferLen { buffer });
        Self { base, len }
    }

    /// The rest of a region from byte `skip` on. Its length is 0 if `skip` is past the end.
    pub(in crate::vectorize) fn skip(self, builder: &mut Builder, skip: Value) -> Self {
        let base = builder.wide(WideOp::Add, &[self.base, skip]);
        let len = builder.wide(WideOp::SubSat, &[self.len, skip]);
        Self { base, len }
    }

    /// The rest of a region from a constant and uniform terms on.
    pub(in crate::vectorize) fn skip_uniform(
        self,
        widen: &mut Widen<'_>,
        constant: u64,
        uniform: &[OffsetTerm],
    ) -> Self {
        let before = Offset { constant, uniform: SmallVec::from_slice(uniform), lanes: SmallVec::new() };
        let skip = uniform_part(widen, &before);
        self.skip(&mut widen.builder, skip)
    }
}

/// The sum of the constant and the uniform terms, `s64`. A constant above 2^40 is reduced to that: out of bounds,
/// too.
pub(in crate::vectorize) fn uniform_part(widen: &mut Widen<'_>, offset: &Offset) -> Value {
    let mut sum = widen.builder.s64(offset.constant.min(1 << 40));
    for &OffsetTerm { value, stride } in &offset.uniform {
        let term = scaled(widen, value, stride);
        sum = widen.builder.wide(WideOp::Add, &[sum, term]);
    }
    sum
}

/// A uniform term, `s64`.
pub(in crate::vectorize) fn scaled(widen: &mut Widen<'_>, value: ir::Value, stride: u32) -> Value {
    let value = widen.scalar(value);
    scaled_base(&mut widen.builder, value, stride)
}

/// An `s32` times `stride` bytes, `s64`.
pub(in crate::vectorize) fn scaled_base(builder: &mut Builder, value: Value, stride: u32) -> Value {
    let wide = builder.wide(WideOp::Extend, &[value]);
    let factor = builder.s64(u64::from(stride));
    let term = builder.wide(WideOp::Mul, &[wide, factor]);
    if stride < 1 << 16 {
        return term;
    }
    // Sums of terms must not wrap in 64 bits.
    let max = builder.s64(1 << 56);
    builder.wide(WideOp::Min, &[term, max])
}

/// The number of elements of `stride` bytes, from the start on, the first word of which is within `len` bytes:
/// `s32`.
pub(in crate::vectorize) fn element_count(builder: &mut Builder, len: Value, stride: u32) -> Value {
    // (len - 4) / stride + 1, or 0 if there is no word: as (len + stride - 4) / stride where stride is at least 4.
    let rounded = if stride >= 4 {
        let more = builder.s64(u64::from(stride - 4));
        builder.wide(WideOp::Add, &[len, more])
    } else {
        let less = builder.s64(u64::from(4 - stride));
        builder.wide(WideOp::SubSat, &[len, less])
    };
    let count = if stride.is_power_of_two() {
        let amount = builder.s64(u64::from(stride.trailing_zeros()));
        builder.wide(WideOp::Shr, &[rounded, amount])
    } else {
        // Exact for dividends and divisors of 32 bits, and slightly above.
        let reciprocal = builder.s64(u64::MAX / u64::from(stride) + 1);
        builder.wide(WideOp::MulHigh, &[rounded, reciprocal])
    };
    builder.wide(WideOp::Truncate, &[count])
}

/// The varying terms of an offset as one index.
#[derive(Clone, Copy, Debug)]
pub(in crate::vectorize) struct LaneIndex {
    /// In units of `scale` bytes, `v32`. In lanes out of bounds it may have wrapped.
    pub(in crate::vectorize) index: Value,
    /// 1, 2, 4 or 8.
    pub(in crate::vectorize) scale: u8,
    /// The mask of the lanes that are in bounds.
    pub(in crate::vectorize) inside: Value,
}

/// The index of varying terms. `len` is the rest of the region.
pub(in crate::vectorize) fn lane_index(widen: &mut Widen<'_>, lanes: &[OffsetTerm], len: Value) -> LaneIndex {
    if let &[OffsetTerm { value, stride }] = lanes
        && stride > 0
    {
        return one_lane_term(widen, value, stride, len);
    }
    let unit = if lanes.iter().all(|term| term.stride.is_multiple_of(4)) { 4 } else { 1 };
    let mut sum = widen.builder.constant(Type::V32, 0);
    let mut valid = widen.builder.constant(Type::Mask, ALL);
    for &OffsetTerm { value, stride } in lanes {
        let units = stride / unit;
        let index = widen.vector(value);
        // A share of 2^32 for each term, so that their sum cannot wrap. A term above it is out of bounds.
        let max = u32::MAX / lanes.len() as u32 / units;
        let max = widen.builder.constant(Type::V32, u64::from(max));
        let fits = widen.builder.pure(Op::ULe, &[index, max]);
        valid = widen.builder.and(valid, fits);
        let term = widen.builder.times(index, units);
        sum = widen.builder.pure(Op::IAdd, &[sum, term]);
    }
    let limit = element_count(&mut widen.builder, len, unit);
    let limit = widen.builder.splat(limit);
    let inside = widen.builder.pure(Op::ULt, &[sum, limit]);
    LaneIndex { index: sum, scale: unit as u8, inside: widen.builder.and(valid, inside) }
}

fn one_lane_term(widen: &mut Widen<'_>, value: ir::Value, stride: u32, len: Value) -> LaneIndex {
    let index = widen.vector(value);
    let limit = element_count(&mut widen.builder, len, stride);
    let limit = widen.builder.splat(limit);
    let inside = widen.builder.pure(Op::ULt, &[index, limit]);
    let unit = match stride {
        1 | 2 => stride,
        8 => 8,
        _ if stride.is_multiple_of(4) => 4,
        _ => 1,
    };
    LaneIndex { index: widen.builder.times(index, stride / unit), scale: unit as u8, inside }
}
