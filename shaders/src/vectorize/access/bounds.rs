//! Bounds of accesses: regions of memory, how many elements they have, and which lanes are in bounds.

use smallvec::SmallVec;

use super::pattern::{Offset, OffsetTerm};
use crate::analysis::Shape;
use crate::ir::{self, Op};
use crate::simd::{InstData, WideOp};
use crate::vectorize::{Type, Value, Widen};

/// The memory of an access: a descriptor's range, a variable or the push constants.
#[derive(Clone, Copy, Debug)]
pub(in crate::vectorize) struct MemoryRegion {
    /// Host address of its first byte, `s64`.
    pub(in crate::vectorize) base: Value,
    /// Its length in bytes, `s64`.
    pub(in crate::vectorize) len: Value,
}

impl Widen<'_> {
    /// The memory of a descriptor.
    pub(in crate::vectorize) fn descriptor(&mut self, buffer: Value) -> MemoryRegion {
        let base = self.builder.emit_one(InstData::BufferBase { buffer });
        let len = self.builder.emit_one(InstData::BufferLen { buffer });
        MemoryRegion { base, len }
    }

    /// The sum of the constant and the uniform terms, `s64`. A constant above 2^40 is reduced to that: out of bounds,
    /// too.
    pub(in crate::vectorize) fn uniform_part(&mut self, offset: &Offset) -> Value {
        let mut sum = self.builder.s64(offset.constant.min(1 << 40));
        for &OffsetTerm { value, stride } in &offset.uniform {
            let term = self.scaled(value, stride);
            sum = self.builder.wide(WideOp::Add, &[sum, term]);
        }
        sum
    }

    /// A uniform term, `s64`.
    pub(in crate::vectorize) fn scaled(&mut self, value: ir::Value, stride: u32) -> Value {
        let value = self.scalar(value);
        self.scaled_base(value, stride)
    }

    /// An `s32` times `stride` bytes, `s64`.
    pub(in crate::vectorize) fn scaled_base(&mut self, value: Value, stride: u32) -> Value {
        let wide = self.builder.wide(WideOp::Extend, &[value]);
        let factor = self.builder.s64(u64::from(stride));
        let term = self.builder.wide(WideOp::Mul, &[wide, factor]);
        if stride < 1 << 16 {
            return term;
        }
        // Sums of terms must not wrap in 64 bits.
        let max = self.builder.s64(1 << 56);
        self.builder.wide(WideOp::Min, &[term, max])
    }

    /// The rest of a region from byte `skip` on. Its length is 0 if `skip` is past the end.
    pub(in crate::vectorize) fn skip(&mut self, region: MemoryRegion, skip: Value) -> MemoryRegion {
        let base = self.builder.wide(WideOp::Add, &[region.base, skip]);
        let len = self.builder.wide(WideOp::SubSat, &[region.len, skip]);
        MemoryRegion { base, len }
    }

    /// The rest of a region from a constant and uniform terms on.
    pub(in crate::vectorize) fn skip_uniform(
        &mut self,
        region: MemoryRegion,
        constant: u64,
        uniform: &[OffsetTerm],
    ) -> MemoryRegion {
        let before = Offset { constant, uniform: SmallVec::from_slice(uniform), lanes: SmallVec::new() };
        let skip = self.uniform_part(&before);
        self.skip(region, skip)
    }

    /// The number of elements of `stride` bytes, from the start on, the first word of which is within `len` bytes:
    /// `s32`.
    pub(in crate::vectorize) fn count(&mut self, len: Value, stride: u32) -> Value {
        // (len - 4) / stride + 1, or 0 if there is no word: as (len + stride - 4) / stride where stride is at least 4.
        let rounded = if stride >= 4 {
            let more = self.builder.s64(u64::from(stride - 4));
            self.builder.wide(WideOp::Add, &[len, more])
        } else {
            let less = self.builder.s64(u64::from(4 - stride));
            self.builder.wide(WideOp::SubSat, &[len, less])
        };
        let count = if stride.is_power_of_two() {
            let amount = self.builder.s64(u64::from(stride.trailing_zeros()));
            self.builder.wide(WideOp::Shr, &[rounded, amount])
        } else {
            // Exact for dividends and divisors of 32 bits, and slightly above.
            let reciprocal = self.builder.s64(u64::MAX / u64::from(stride) + 1);
            self.builder.wide(WideOp::MulHigh, &[rounded, reciprocal])
        };
        self.builder.wide(WideOp::Truncate, &[count])
    }

    /// The varying terms as one index (`v32`) in units of `scale` bytes (1, 2, 4 or 8), `scale`, and the mask of the
    /// lanes that are in bounds. In other lanes the index may have wrapped. `len` is the rest of the region.
    pub(in crate::vectorize) fn lane_index(&mut self, lanes: &[OffsetTerm], len: Value) -> (Value, u8, Value) {
        if let &[OffsetTerm { value, stride }] = lanes
            && stride > 0
        {
            return self.one_lane_term(value, stride, len);
        }
        let unit = if lanes.iter().all(|term| term.stride.is_multiple_of(4)) { 4 } else { 1 };
        let mut sum = self.builder.constant(Type::V32, 0);
        let mut valid = self.builder.constant(Type::Mask, crate::simd::builder::ALL);
        for &OffsetTerm { value, stride } in lanes {
            let units = stride / unit;
            let index = self.vector(value);
            // A share of 2^32 for each term, so that their sum cannot wrap. A term above it is out of bounds.
            let max = u32::MAX / lanes.len() as u32 / units;
            let max = self.builder.constant(Type::V32, u64::from(max));
            let fits = self.builder.pure(Op::ULe, &[index, max]);
            valid = self.builder.and(valid, fits);
            let term = self.times(index, units);
            sum = self.builder.pure(Op::IAdd, &[sum, term]);
        }
        let limit = self.count(len, unit);
        let limit = self.builder.splat(limit);
        let inside = self.builder.pure(Op::ULt, &[sum, limit]);
        (sum, unit as u8, self.builder.and(valid, inside))
    }

    fn one_lane_term(&mut self, value: ir::Value, stride: u32, len: Value) -> (Value, u8, Value) {
        let index = self.vector(value);
        let limit = self.count(len, stride);
        let limit = self.builder.splat(limit);
        let inside = self.builder.pure(Op::ULt, &[index, limit]);
        let unit = match stride {
            1 | 2 => stride,
            8 => 8,
            _ if stride.is_multiple_of(4) => 4,
            _ => 1,
        };
        (self.times(index, stride / unit), unit as u8, inside)
    }

    /// A vector times a constant.
    pub(in crate::vectorize) fn times(&mut self, vector: Value, factor: u32) -> Value {
        if factor == 1 {
            return vector;
        }
        if factor.is_power_of_two() {
            let amount = self.builder.constant(Type::V32, u64::from(factor.trailing_zeros()));
            return self.builder.pure(Op::Shl, &[vector, amount]);
        }
        let factor = self.builder.constant(Type::V32, u64::from(factor));
        self.builder.pure(Op::IMul, &[vector, factor])
    }

    /// `element` as a number: the sum saturates at `u32::MAX`.
    pub(in crate::vectorize) fn element(&mut self, result: ir::Value, base: ir::Value, index: ir::Value, stride: u32) {
        let value = if self.uniformity.shape(result) == Shape::Uniform {
            let base = self.scalar(base);
            let base = self.builder.wide(WideOp::Extend, &[base]);
            let index = self.scalar(index);
            let index = self.builder.wide(WideOp::Extend, &[index]);
            let factor = self.builder.s64(u64::from(stride));
            let term = self.builder.wide(WideOp::Mul, &[index, factor]);
            let sum = self.builder.wide(WideOp::Add, &[base, term]);
            let max = self.builder.s64(u64::from(u32::MAX));
            let saturated = self.builder.wide(WideOp::Min, &[sum, max]);
            self.builder.wide(WideOp::Truncate, &[saturated])
        } else {
            let (base, index) = (self.vector(base), self.vector(index));
            let factor = self.builder.constant(Type::V32, u64::from(stride));
            let high = self.builder.pure(Op::UMulHigh, &[index, factor]);
            let term = self.times(index, stride);
            let sum = self.builder.pure(Op::IAdd, &[base, term]);
            let zero = self.builder.constant(Type::V32, 0);
            let overflow = self.builder.pure(Op::INe, &[high, zero]);
            let carry = self.builder.pure(Op::ULt, &[sum, term]);
            let saturates = self.builder.or(overflow, carry);
            let max = self.builder.constant(Type::V32, u64::from(u32::MAX));
            self.builder.select(saturates, max, sum)
        };
        self.define_as(result, value);
    }

    /// The lane numbers 0 to 15, `v32`.
    pub(in crate::vectorize) fn lane_ids(&mut self) -> Value {
        self.builder.emit_one(InstData::Lanes { values: Box::new(std::array::from_fn(|lane| lane as u32)) })
    }
}
