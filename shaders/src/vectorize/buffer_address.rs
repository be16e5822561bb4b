//! Pointers as values: buffer numbers, and look-up of the address range of a buffer device address; libcalls.
//!
//! `buffer_near` looks up the address of the first active lane only: the fast path, valid if all active addresses lie
//! in the same range. `buffer_at` looks up each lane's address; accesses then go through a waterfall loop.

use super::access::bounds::{MemoryRegion, element_count, lane_index, uniform_part};
use super::access::offset::{Offset, OffsetTerm};
use super::access::waterfall::for_each_buffer;
use super::image::ROW;
use super::state::Widen;
use crate::analysis::{LaneOffsetTable, Shape};
use crate::ir;
use crate::ir::Op;
use crate::simd::{ContextField, InstData, Routine, Type, Value, WideOp};

impl Widen<'_> {
    /// `buffer`: the number of the descriptor, `u32::MAX` if the index is out of bounds.
    pub(super) fn buffer(&mut self, result: ir::Value, binding: ir::Binding, index: ir::Value) {
        let (first, count) = (self.plans.layout.descriptors[binding], self.kernel.bindings[binding].count);
        if let Some(bits) = self.kernel.constant(index) {
            let number = if bits < u64::from(count) { first + bits as u32 } else { u32::MAX };
            let number = self.builder.s32(number);
            return self.define_as(result, number);
        }
        let uniform = self.shape(index) == Shape::Uniform;
        let index = if uniform { self.scalar(index) } else { self.vector(index) };
        let ty = self.builder.ty(index);
        let [first, count, none] = [first, count, u32::MAX].map(|bits| self.builder.constant(ty, u64::from(bits)));
        let number = self.builder.pure(Op::IAdd, &[index, first]);
        let inside = self.builder.pure(Op::ULt, &[index, count]);
        let number = self.builder.select(inside, number, none);
        self.define_as(result, number);
    }

    /// `buffer_size`: the length in bytes.
    pub(super) fn buffer_size(&mut self, result: ir::Value, buffer: ir::Value) {
        if self.shape(buffer) == Shape::Uniform {
            let buffer = self.scalar(buffer);
            let len = self.builder.emit_one(InstData::BufferLen { buffer });
            let len = self.builder.wide(WideOp::Truncate, &[len]);
            return self.define_as(result, len);
        }
        let ty = Type::V32;
        let size = for_each_buffer(self, buffer, Some(ty), |widen, buffer, _| {
            let len = widen.builder.emit_one(InstData::BufferLen { buffer });
            let len = widen.builder.wide(WideOp::Truncate, &[len]);
            Some(widen.builder.splat(len))
        });
        if let Some(size) = size {
            self.define_as(result, size);
        }
    }

    /// `buffer_number` and `buffer_of`: a buffer value is a descriptor's number, `u32::MAX` for none. Numbers in memory
    /// are higher by one, so that 0 is no buffer.
    pub(super) fn renumber(&mut self, result: ir::Value, value: ir::Value, by: u32) {
        let value = if self.shape(value) == Shape::Uniform { self.scalar(value) } else { self.vector(value) };
        let ty = self.builder.ty(value);
        let limit = u64::from(self.builder.kernel.descriptors) + u64::from(by == 1);
        let by = self.builder.constant(ty, by.into());
        let sum = self.builder.pure(Op::IAdd, &[value, by]);
        let none = self.builder.kernel.constant(sum).is_some_and(|number| number >= limit);
        let sum = if none { self.builder.constant(ty, u32::MAX.into()) } else { sum };
        self.define_as(result, sum);
    }

    /// `buffer_at`: one look-up for a uniform address, a libcall for one address per lane.
    pub(super) fn buffer_at(&mut self, result: ir::Value, low: ir::Value, high: ir::Value) {
        if self.are_uniform([low, high]) {
            let [low, high] = [low, high].map(|word| self.scalar(word));
            let number = self.builder.emit_one(InstData::BufferAt { low, high });
            return self.define_as(result, number);
        }
        let operands = [low, high].map(|word| self.vector(word));
        let found = self.call(Routine::BufferAt, &operands, 2);
        self.cache.address_offsets.insert(result, found[1]);
        self.define_as(result, found[0]);
    }

    /// `buffer_near`: looks up the address of the first active lane, for all lanes.
    pub(super) fn buffer_near(&mut self, result: ir::Value, low: ir::Value, high: ir::Value) {
        let [low, high] = if self.are_uniform([low, high]) {
            [low, high].map(|word| self.scalar(word))
        } else {
            let lane = self.builder.emit_one(InstData::FirstLane { mask: self.exec });
            [low, high].map(|word| {
                let vector = self.vector(word);
                self.builder.emit_one(InstData::Extract { vector, lane })
            })
        };
        let number = self.builder.emit_one(InstData::BufferAt { low, high });
        self.define_as(result, number);
    }

    fn are_uniform(&self, words: [ir::Value; 2]) -> bool {
        words.iter().all(|&word| self.shape(word) == Shape::Uniform)
    }

    /// `buffer_offset`: the byte offset of an address in a buffer, `u32::MAX` if it lies elsewhere.
    pub(super) fn buffer_offset(&mut self, result: ir::Value, buffer: ir::Value, address: [ir::Value; 2]) {
        let is_uniform = self.are_uniform(address);
        let is_looked_up = self.is_looked_up(buffer, address);
        if self.shape(buffer) != Shape::Uniform {
            if let Some(&offset) = self.cache.address_offsets.get(&buffer).filter(|_| is_looked_up) {
                return self.define_as(result, offset);
            }
            let address = address.map(|word| self.vector(word));
            let offset = for_each_buffer(self, buffer, Some(Type::V32), |widen, buffer, _| {
                Some(widen.offset_in(buffer, address, is_looked_up))
            });
            if let Some(offset) = offset {
                self.define_as(result, offset);
            }
            return;
        }
        // The look-up may have been for another lane's address, which may lie in another buffer.
        let buffer = self.scalar(buffer);
        let offset = if is_uniform && is_looked_up {
            let low = self.scalar(address[0]);
            let base = self.builder.emit_one(InstData::BufferBase { buffer });
            let base = self.builder.wide(WideOp::Truncate, &[base]);
            self.builder.pure(Op::ISub, &[low, base])
        } else {
            let address = address.map(|word| self.vector(word));
            let offset = self.offset_in(buffer, address, false);
            if is_uniform && self.uniformity.shape(result) == Shape::Uniform {
                let lane = self.builder.s32(0);
                self.builder.emit_one(InstData::Extract { vector: offset, lane })
            } else {
                offset
            }
        };
        self.define_as(result, offset);
    }

    /// Whether the buffer is the result of looking up this address: then the address lies in it, or in none.
    fn is_looked_up(&self, buffer: ir::Value, address: [ir::Value; 2]) -> bool {
        let ir::ValueDef::Result { inst, .. } = self.kernel.values[buffer] else { return false };
        match self.kernel.insts[inst] {
            ir::InstData::BufferAt { low, high } | ir::InstData::BufferNear { low, high } => [low, high] == address,
            _ => false,
        }
    }

    /// Byte offsets of addresses from the start of one buffer, `v32`; `u32::MAX` for differences of 4 GiB and more.
    fn offset_in(&mut self, buffer: Value, [low, high]: [Value; 2], is_looked_up: bool) -> Value {
        let base = self.builder.emit_one(InstData::BufferBase { buffer });
        let first = self.builder.wide(WideOp::Truncate, &[base]);
        let first = self.builder.splat(first);
        let bytes = self.builder.pure(Op::ISub, &[low, first]);
        if is_looked_up {
            return bytes;
        }
        let amount = self.builder.s64(32);
        let base_high = self.builder.wide(WideOp::Shr, &[base, amount]);
        let base_high = self.builder.wide(WideOp::Truncate, &[base_high]);
        let base_high = self.builder.splat(base_high);
        // The high word of the 64-bit difference has to be 0.
        let borrows = self.builder.pure(Op::ULt, &[low, first]);
        let [none, one] = [0, 1].map(|bits| self.builder.constant(Type::V32, bits));
        let borrow = self.builder.select(borrows, one, none);
        let base_high = self.builder.pure(Op::IAdd, &[base_high, borrow]);
        let fits = self.builder.pure(Op::IEq, &[high, base_high]);
        let far = self.builder.constant(Type::V32, u64::from(u32::MAX));
        self.builder.select(fits, bytes, far)
    }

    /// `reaches`: a conservative in-bounds predicate: true only if all active lanes access one buffer in bounds.
    pub(super) fn reaches(&mut self, result: ir::Value, buffer: ir::Value, offset: &Offset) {
        if self.shape(buffer) != Shape::Uniform {
            let no = self.builder.constant(Type::S1, 0);
            return self.define_as(result, no);
        }
        let buffer = self.scalar(buffer);
        let region = MemoryRegion::of_descriptor(&mut self.builder, buffer);
        let skip = uniform_part(self, offset);
        if offset.lanes.is_empty() {
            let inside = self.builder.wide(WideOp::Lt, &[skip, region.len]);
            return self.define_as(result, inside);
        }
        // The first byte of an access has to be in bounds, while `element_count` counts whole words: 3 bytes more.
        let three = self.builder.s64(3);
        let rest = region.skip(&mut self.builder, skip).len;
        let rest = self.builder.wide(WideOp::Add, &[rest, three]);
        let inside = if let [OffsetTerm { value, stride }] = offset.lanes[..]
            && self.shape(value) == Shape::Affine(LaneOffsetTable::CONTIGUOUS)
        {
            let limit = element_count(&mut self.builder, rest, stride);
            let bits = self.builder.mask_bits(self.exec);
            let last = self.builder.pure(Op::FindUMsb, &[bits]);
            let first = self.get(value);
            // In 64 bits, so that a row that wraps modulo 2^32 is out of bounds.
            let [first, last, limit] = [first, last, limit].map(|word| self.builder.wide(WideOp::Extend, &[word]));
            let last = self.builder.wide(WideOp::Add, &[first, last]);
            self.builder.wide(WideOp::Lt, &[last, limit])
        } else {
            let inside = lane_index(self, &offset.lanes, rest).inside;
            let outside = self.builder.and_not(self.exec, inside);
            let any = self.builder.any(outside);
            self.builder.pure(Op::LNot, &[any])
        };
        self.define_as(result, inside);
    }

    /// Emits a libcall with `results` result vectors. Operands and results are rows of 16 words in the call area.
    pub(super) fn call(
        &mut self,
        routine: Routine,
        operands: &[Value],
        results: u32,
    ) -> smallvec::SmallVec<[Value; 4]> {
        let area = self.builder.emit_one(InstData::Context { field: ContextField::Calls });
        for (row, &value) in (0..).zip(operands) {
            let value = if self.builder.ty(value) == Type::V32 { value } else { self.builder.splat(value) };
            self.builder.emit(InstData::FrameStore { frame: area, at: row * ROW, value });
        }
        self.builder.call(routine, area, self.exec);
        let first = operands.len() as u32;
        let load = |row| InstData::FrameLoad { ty: Type::V32, frame: area, at: (first + row) * ROW };
        (0..results).map(|row| self.builder.emit_value(load(row))).collect()
    }

    /// `clock`: a 64-bit counter.
    pub(super) fn clock(&mut self, result: ir::Value) {
        let words = self.call(Routine::Clock, &[], 2);
        self.high_words.insert(result, words[1]);
        self.define_as(result, words[0]);
    }

    /// `print`: the first operand vector is the mask of active lanes, all ones or 0 per lane.
    pub(super) fn print(&mut self, message: u32, args: &[ir::Value]) {
        let active = self.builder.constant(Type::V32, u32::MAX.into());
        let inactive = self.builder.constant(Type::V32, 0);
        let mut rows = vec![self.builder.select(self.exec, active, inactive)];
        rows.extend(args.iter().map(|&arg| self.vector(arg)));
        let words = (args.len() as u32).saturating_sub(3);
        self.call(Routine::Print { message, words }, &rows, 0);
    }
}
