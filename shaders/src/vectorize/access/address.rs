//! Byte offsets taken apart: a constant, what all lanes share, and what lanes have for themselves.
//!
//! `element` clamps instead of wrapping, so the exact sum of the parts tells whether an access is in bounds: a sum that
//! would be clamped is out of bounds, as no buffer is that long.

use smallvec::SmallVec;

use crate::analysis::Shape;
use crate::ir::{self, InstData as Scalar, Op, ValueDef};
use crate::simd::{InstData, WideOp};
use crate::vectorize::{Type, Value, Widen};

/// `value * stride` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vectorize) struct Term {
    pub(in crate::vectorize) value: ir::Value,
    pub(in crate::vectorize) stride: u32,
}

/// A byte offset: the sum of its parts, exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::vectorize) struct Offset {
    pub(in crate::vectorize) constant: u64,
    /// What all lanes share.
    pub(in crate::vectorize) uniform: SmallVec<[Term; 2]>,
    /// What they do not.
    pub(in crate::vectorize) lanes: SmallVec<[Term; 2]>,
}

/// Memory that offsets go into.
#[derive(Clone, Copy, Debug)]
pub(in crate::vectorize) struct Region {
    /// Address of its beginning, `s64`.
    pub(in crate::vectorize) base: Value,
    /// Its bytes, `s64`.
    pub(in crate::vectorize) len: Value,
}

/// An offset behind the end of any memory.
const BEYOND: u64 = 1 << 32;

impl Offset {
    /// Whether the offset is a multiple of 4 in all lanes.
    pub(in crate::vectorize) fn is_aligned(&self) -> bool {
        let parts = self.uniform.iter().chain(&self.lanes);
        self.constant.is_multiple_of(4) && parts.into_iter().all(|term| term.stride.is_multiple_of(4))
    }
}

impl Widen<'_> {
    /// Takes an offset apart.
    pub(in crate::vectorize) fn offset(&self, value: ir::Value) -> Offset {
        let mut offset = Offset::default();
        let mut value = value;
        // A chain of elements; each step is one more index.
        loop {
            if let Some(bits) = self.kernel.constant(value) {
                // What an index far outside was folded to is no odd offset.
                offset.constant += if bits == u64::from(u32::MAX) { BEYOND } else { bits };
                return offset;
            }
            let element = match self.kernel.values[value] {
                ValueDef::Result { inst, .. } if !self.is_kept_apart(value) => match self.kernel.insts[inst] {
                    Scalar::Element { base, index, stride } => Some((base, index, stride)),
                    _ => None,
                },
                _ => None,
            };
            let Some((base, index, stride)) = element else {
                self.add_term(&mut offset, value, 1);
                return offset;
            };
            self.add_term(&mut offset, index, stride);
            value = base;
        }
    }

    /// Whether lanes took the value out of a loop: what it was made of has gone on.
    pub(in crate::vectorize) fn is_kept_apart(&self, value: ir::Value) -> bool {
        self.uniformity.is_frozen(value, self.block)
    }

    fn add_term(&self, offset: &mut Offset, value: ir::Value, stride: u32) {
        if let Some(bits) = self.kernel.constant(value) {
            offset.constant += bits * u64::from(stride);
        } else if stride > 0 {
            let list = if self.shape(value) == Shape::Uniform { &mut offset.uniform } else { &mut offset.lanes };
            list.push(Term { value, stride });
        }
    }

    /// The constant and uniform parts, added up; huge sums stay huge.
    pub(in crate::vectorize) fn uniform_part(&mut self, offset: &Offset) -> Value {
        let mut sum = self.builder.s64(offset.constant.min(1 << 40));
        for &Term { value, stride } in &offset.uniform {
            let term = self.scaled(value, stride);
            sum = self.builder.wide(WideOp::Add, &[sum, term]);
        }
        sum
    }

    /// A uniform term in 64 bits.
    pub(in crate::vectorize) fn scaled(&mut self, value: ir::Value, stride: u32) -> Value {
        let value = self.scalar(value);
        self.scaled_base(value, stride)
    }

    /// An `s32` times so many bytes.
    pub(in crate::vectorize) fn scaled_base(&mut self, value: Value, stride: u32) -> Value {
        let wide = self.builder.wide(WideOp::Extend, &[value]);
        let factor = self.builder.s64(u64::from(stride));
        let term = self.builder.wide(WideOp::Mul, &[wide, factor]);
        if stride < 1 << 16 {
            return term;
        }
        // Sums of terms must not wrap in 64 bits.
        let most = self.builder.s64(1 << 56);
        self.builder.wide(WideOp::Min, &[term, most])
    }

    /// What is left of a region behind `skip` bytes: its address and its length, which is 0 beyond the end.
    pub(in crate::vectorize) fn skip(&mut self, region: Region, skip: Value) -> Region {
        let base = self.builder.wide(WideOp::Add, &[region.base, skip]);
        let len = self.builder.wide(WideOp::SubSat, &[region.len, skip]);
        Region { base, len }
    }

    /// How many elements of `stride` bytes, from the beginning on, have their first word in a region of `len` bytes:
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
            // Exact for numbers and divisors of 32 bits, and a little more.
            let reciprocal = self.builder.s64(u64::MAX / u64::from(stride) + 1);
            self.builder.wide(WideOp::MulHigh, &[rounded, reciprocal])
        };
        self.builder.wide(WideOp::Truncate, &[count])
    }

    /// The lanes' parts as one index in units of `scale` bytes (1, 4 or 8), and a mask of the lanes in which it counts: in
    /// the others it wrapped. `len` is what is left of the region.
    pub(in crate::vectorize) fn lane_index(&mut self, lanes: &[Term], len: Value) -> (Value, u8, Value) {
        if let &[Term { value, stride }] = lanes
            && stride > 0
        {
            return self.one_lane_term(value, stride, len);
        }
        let unit = if lanes.iter().all(|term| term.stride.is_multiple_of(4)) { 4 } else { 1 };
        let mut sum = self.builder.constant(Type::V32, 0);
        let mut valid = self.builder.constant(Type::Mask, crate::simd::builder::ALL);
        for &Term { value, stride } in lanes {
            let units = stride / unit;
            let index = self.vector(value);
            // Each term stays so small that the sum of all cannot wrap, or is out of bounds anyway.
            let most = u32::MAX / lanes.len() as u32 / units;
            let most = self.builder.constant(Type::V32, u64::from(most));
            let fits = self.builder.pure(Op::ULe, &[index, most]);
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

    /// `element` where it is used as a number: clamped.
    pub(in crate::vectorize) fn element(&mut self, result: ir::Value, base: ir::Value, index: ir::Value, stride: u32) {
        let value = if self.uniformity.shape(result) == Shape::Uniform {
            let base = self.scalar(base);
            let base = self.builder.wide(WideOp::Extend, &[base]);
            let index = self.scalar(index);
            let index = self.builder.wide(WideOp::Extend, &[index]);
            let factor = self.builder.s64(u64::from(stride));
            let term = self.builder.wide(WideOp::Mul, &[index, factor]);
            let sum = self.builder.wide(WideOp::Add, &[base, term]);
            let most = self.builder.s64(u64::from(u32::MAX));
            let clamped = self.builder.wide(WideOp::Min, &[sum, most]);
            self.builder.wide(WideOp::Truncate, &[clamped])
        } else {
            let (base, index) = (self.vector(base), self.vector(index));
            let factor = self.builder.constant(Type::V32, u64::from(stride));
            let high = self.builder.pure(Op::UMulHigh, &[index, factor]);
            let term = self.times(index, stride);
            let sum = self.builder.pure(Op::IAdd, &[base, term]);
            let zero = self.builder.constant(Type::V32, 0);
            let lost = self.builder.pure(Op::INe, &[high, zero]);
            let carry = self.builder.pure(Op::ULt, &[sum, term]);
            let clamp = self.builder.or(lost, carry);
            let most = self.builder.constant(Type::V32, u64::from(u32::MAX));
            self.builder.select(clamp, most, sum)
        };
        self.define_as(result, value);
    }

    /// Lane numbers.
    pub(in crate::vectorize) fn lane_ids(&mut self) -> Value {
        self.builder.emit_one(InstData::Lanes { values: Box::new(std::array::from_fn(|lane| lane as u32)) })
    }
}
