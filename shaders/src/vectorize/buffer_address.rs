//! Pointers that are values: numbers of buffers, and the pieces of device memory that addresses lie in; other calls.

use cranelift_entity::EntitySet;

use super::access::address::Term;
use super::image::ROW;
use super::{Type, Value, Widen};
use crate::analysis::{Patterns, Shape};
use crate::ir;
use crate::ir::Op;
use crate::simd::{Field, InstData, Routine, WideOp};

/// The words of addresses that are looked up.
pub(super) fn looked_up(kernel: &ir::Kernel) -> EntitySet<ir::Value> {
    let mut words = EntitySet::new();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        if let ir::InstData::BufferAt { low, high } | ir::InstData::BufferNear { low, high } = kernel.insts[inst] {
            words.extend([low, high]);
        }
    }
    words
}

impl Widen<'_> {
    /// `buffer_number` and `buffer_of`: a buffer is its descriptor's number here, of which there is none for `u32::MAX`; in
    /// memory all numbers are one more.
    pub(super) fn renumber(&mut self, result: ir::Value, value: ir::Value, by: u32) {
        let value = if self.shape(value) == Shape::Uniform { self.scalar(value) } else { self.vector(value) };
        let ty = self.builder.ty(value);
        let most = u64::from(self.builder.kernel.descriptors) + u64::from(by == 1);
        let by = self.builder.constant(ty, by.into());
        let sum = self.builder.pure(Op::IAdd, &[value, by]);
        let none = self.builder.kernel.constant(sum).is_some_and(|number| number >= most);
        let sum = if none { self.builder.constant(ty, u32::MAX.into()) } else { sum };
        self.define_as(result, sum);
    }

    /// `buffer_at`: a call for addresses of which each lane has its own.
    pub(super) fn buffer_at(&mut self, result: ir::Value, low: ir::Value, high: ir::Value) {
        if self.are_shared([low, high]) {
            let [low, high] = [low, high].map(|word| self.scalar(word));
            let number = self.builder.emit_one(InstData::BufferAt { low, high });
            return self.define_as(result, number);
        }
        let operands = [low, high].map(|word| self.vector(word));
        let found = self.call(Routine::BufferAt, &operands, 2);
        self.behind.insert(result, found[1]);
        self.define_as(result, found[0]);
    }

    /// `buffer_near`: for the first lane that is on, which speaks for all.
    pub(super) fn buffer_near(&mut self, result: ir::Value, low: ir::Value, high: ir::Value) {
        let [low, high] = if self.are_shared([low, high]) {
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

    fn are_shared(&self, words: [ir::Value; 2]) -> bool {
        words.iter().all(|&word| self.shape(word) == Shape::Uniform)
    }

    /// `buffer_offset`.
    pub(super) fn buffer_offset(&mut self, result: ir::Value, buffer: ir::Value, address: [ir::Value; 2]) {
        let is_shared = self.are_shared(address);
        let lies_there = self.lies_there(buffer, address);
        if self.shape(buffer) != Shape::Uniform {
            if let Some(&offset) = self.behind.get(&buffer).filter(|_| lies_there) {
                return self.define_as(result, offset);
            }
            let address = address.map(|word| self.vector(word));
            let offset = self.for_each_buffer(buffer, Some(Type::V32), |widen, buffer, _| {
                Some(widen.offset_in(buffer, address, lies_there))
            });
            if let Some(offset) = offset {
                self.define_as(result, offset);
            }
            return;
        }
        // A lane that speaks for all may have another address than the others.
        let buffer = self.scalar(buffer);
        let offset = if is_shared && lies_there {
            let low = self.scalar(address[0]);
            let base = self.builder.emit_one(InstData::BufferBase { buffer });
            let base = self.builder.wide(WideOp::Truncate, &[base]);
            self.builder.pure(Op::ISub, &[low, base])
        } else {
            let address = address.map(|word| self.vector(word));
            let offset = self.offset_in(buffer, address, false);
            if is_shared && self.uniformity.shape(result) == Shape::Uniform {
                let lane = self.builder.s32(0);
                self.builder.emit_one(InstData::Extract { vector: offset, lane })
            } else {
                offset
            }
        };
        self.define_as(result, offset);
    }

    /// Whether an address lies in a buffer, or in none, since that was found by it.
    fn lies_there(&self, buffer: ir::Value, address: [ir::Value; 2]) -> bool {
        let ir::ValueDef::Result { inst, .. } = self.kernel.values[buffer] else { return false };
        match self.kernel.insts[inst] {
            ir::InstData::BufferAt { low, high } | ir::InstData::BufferNear { low, high } => [low, high] == address,
            _ => false,
        }
    }

    /// How many bytes addresses lie behind the beginning of one buffer, in vectors.
    fn offset_in(&mut self, buffer: Value, [low, high]: [Value; 2], lies_there: bool) -> Value {
        let base = self.builder.emit_one(InstData::BufferBase { buffer });
        let first = self.builder.wide(WideOp::Truncate, &[base]);
        let first = self.builder.splat(first);
        let bytes = self.builder.pure(Op::ISub, &[low, first]);
        if lies_there {
            return bytes;
        }
        let amount = self.builder.s64(32);
        let above = self.builder.wide(WideOp::Shr, &[base, amount]);
        let above = self.builder.wide(WideOp::Truncate, &[above]);
        let above = self.builder.splat(above);
        // The high word of the difference has to be 0.
        let borrows = self.builder.pure(Op::ULt, &[low, first]);
        let [none, one] = [0, 1].map(|bits| self.builder.constant(Type::V32, bits));
        let borrow = self.builder.select(borrows, one, none);
        let above = self.builder.pure(Op::IAdd, &[above, borrow]);
        let fits = self.builder.pure(Op::IEq, &[high, above]);
        let far = self.builder.constant(Type::V32, u64::from(u32::MAX));
        self.builder.select(fits, bytes, far)
    }

    /// `reaches`: for all lanes that are on at once.
    pub(super) fn reaches(&mut self, result: ir::Value, buffer: ir::Value, offset: ir::Value) {
        if self.shape(buffer) != Shape::Uniform {
            let no = self.builder.constant(Type::S1, 0);
            return self.define_as(result, no);
        }
        let buffer = self.scalar(buffer);
        let region = self.descriptor(buffer);
        let offset = self.offset(offset);
        let skip = self.uniform_part(&offset);
        if offset.lanes.is_empty() {
            let inside = self.builder.wide(WideOp::Lt, &[skip, region.len]);
            return self.define_as(result, inside);
        }
        // Bytes that begin inside, not whole words.
        let three = self.builder.s64(3);
        let rest = self.skip(region, skip).len;
        let rest = self.builder.wide(WideOp::Add, &[rest, three]);
        let inside = if let [Term { value, stride }] = offset.lanes[..]
            && self.shape(value) == Shape::Pattern(Patterns::ROW)
        {
            let limit = self.count(rest, stride);
            let bits = self.builder.mask_bits(self.exec);
            let last = self.builder.pure(Op::FindUMsb, &[bits]);
            let first = self.get(value);
            // In 64 bits: a row that wraps is outside.
            let [first, last, limit] = [first, last, limit].map(|word| self.builder.wide(WideOp::Extend, &[word]));
            let last = self.builder.wide(WideOp::Add, &[first, last]);
            self.builder.wide(WideOp::Lt, &[last, limit])
        } else {
            let (_, _, inside) = self.lane_index(&offset.lanes, rest);
            let outside = self.builder.and_not(self.exec, inside);
            let any = self.builder.any(outside);
            self.builder.pure(Op::LNot, &[any])
        };
        self.define_as(result, inside);
    }

    /// Calls a routine, which gives `results` vectors.
    pub(super) fn call(
        &mut self,
        routine: Routine,
        operands: &[Value],
        results: u32,
    ) -> smallvec::SmallVec<[Value; 4]> {
        let area = self.builder.emit_one(InstData::Context { field: Field::Calls });
        for (row, &value) in (0..).zip(operands) {
            let value = if self.builder.ty(value) == Type::V32 { value } else { self.builder.splat(value) };
            self.builder.emit(InstData::FrameStore { frame: area, at: row * ROW, value });
        }
        self.builder.emit(InstData::Call { routine, area, mask: self.exec });
        self.builder.kernel.call_bytes = self.builder.kernel.call_bytes.max(routine.bytes());
        let first = operands.len() as u32;
        let load = |row| InstData::FrameLoad { ty: Type::V32, frame: area, at: (first + row) * ROW };
        (0..results).map(|row| self.builder.emit_value(load(row))).collect()
    }

    /// `clock`.
    pub(super) fn clock(&mut self, result: ir::Value) {
        let words = self.call(Routine::Clock, &[], 2);
        self.highs.insert(result, words[1]);
        self.define_as(result, words[0]);
    }

    /// `print`.
    pub(super) fn print(&mut self, message: u32, args: &[ir::Value]) {
        let (on, off) = (self.builder.constant(Type::V32, u32::MAX.into()), self.builder.constant(Type::V32, 0));
        let mut rows = vec![self.builder.select(self.exec, on, off)];
        rows.extend(args.iter().map(|&arg| self.vector(arg)));
        let words = (args.len() as u32).saturating_sub(3);
        self.call(Routine::Print { message, words }, &rows, 0);
    }
}
