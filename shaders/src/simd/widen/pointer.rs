//! Pointers that are values: numbers of buffers, and the pieces of device memory that addresses lie in; other calls.

use super::image::ROW;
use super::{Type, Value, Widen};
use crate::analysis::Shape;
use crate::ir;
use crate::ir::Op;
use crate::simd::{Field, InstData, Routine, WideOp};

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

    /// `buffer_at`, by a call.
    pub(super) fn buffer_at(&mut self, result: ir::Value, low: ir::Value, high: ir::Value) {
        let operands = [low, high].map(|word| self.vector(word));
        let numbers = self.call(Routine::BufferAt, &operands, 1);
        self.define_as(result, numbers[0]);
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

    /// `buffer_address`.
    pub(super) fn buffer_address(&mut self, result: ir::Value, buffer: ir::Value) {
        if self.shape(buffer) == Shape::Uniform {
            let buffer = self.scalar(buffer);
            let base = self.builder.emit_one(InstData::BufferBase { buffer });
            let low = self.builder.wide(WideOp::Truncate, &[base]);
            return self.define_as(result, low);
        }
        let low = self.for_each_buffer(buffer, Some(Type::V32), |widen, buffer, _| {
            let base = widen.builder.emit_one(InstData::BufferBase { buffer });
            let low = widen.builder.wide(WideOp::Truncate, &[base]);
            Some(widen.builder.splat(low))
        });
        if let Some(low) = low {
            self.define_as(result, low);
        }
    }
}
