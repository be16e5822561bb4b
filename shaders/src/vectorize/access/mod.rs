//! Loads and stores. The addressing forms, cheapest first; `target` chooses between the first, second and last:
//!
//! - one word for all lanes (uniform address);
//! - a *row*: one contiguous (unit-stride) masked access of 16 words, lane `l` at word `index + l`;
//! - `interleave`, `strided`: interleave groups of loads or stores of the same elements at a constant stride;
//! - `segments`: 2-D blocked accesses, a few contiguous segments with a symbolic step between them;
//! - `coalescing`: constant offsets per lane, a few rows and shuffles;
//! - `clamped`: clamp-to-edge accesses, a row and a permutation;
//! - a gather or scatter, which costs about as much as 12 rows.
//!
//! `subword` handles 8- and 16-bit accesses, `address` decomposes offsets.

pub(super) mod address;
mod clamped;
pub(super) mod coalescing;
pub(super) mod interleave;
pub(super) mod segments;
mod strided;
mod subword;
pub(super) mod target;

use self::address::{MemoryRegion, Offset};
use self::coalescing::covering_rows;
use self::interleave::GroupPlan;
use self::target::Target;
use super::{Type, Value, Widen};
use crate::analysis::Shape;
use crate::ir::{self, InstData as Scalar, Op, Place, VariableSpace, Width};
use crate::simd::{InstData, WideOp};

impl Widen<'_> {
    /// Translates the instructions of a scalar block.
    pub(super) fn translate(&mut self, block: ir::Block) {
        let kernel = self.kernel;
        let plans = self.plan_groups(block);
        for &inst in &kernel.blocks[block].insts {
            let (data, result) = (&kernel.insts[inst], kernel.results[inst]);
            self.index_bound = self.serial.below.get(&inst).copied();
            match plans.at(inst) {
                None => {}
                Some(GroupPlan::NonLeader) => continue,
                Some(GroupPlan::Load(group)) => {
                    self.load_group(&plans, group);
                    continue;
                }
                Some(GroupPlan::Store(group)) => {
                    self.store_group(&plans, group);
                    continue;
                }
            }
            let is_done = result.is_some_and(|result| self.samples.early.contains(&result));
            if is_done || self.computes(result, data) {
                continue;
            }
            match (data, result) {
                (Scalar::Element { base, index, stride }, Some(result)) => {
                    if self.is_number(result) {
                        self.element(result, *base, *index, *stride);
                    }
                }
                (Scalar::Buffer { binding, index }, Some(result)) => self.buffer(result, *binding, *index),
                (Scalar::BufferSize { buffer }, Some(result)) => self.buffer_size(result, *buffer),
                (Scalar::BufferNumber { buffer }, Some(result)) => self.renumber(result, *buffer, 1),
                (Scalar::BufferOf { number }, Some(result)) => self.renumber(result, *number, u32::MAX),
                (Scalar::BufferAt { low, high }, Some(result)) => self.buffer_at(result, *low, *high),
                (Scalar::BufferNear { low, high }, Some(result)) => self.buffer_near(result, *low, *high),
                (Scalar::BufferOffset { buffer, low, high }, Some(result)) => {
                    self.buffer_offset(result, *buffer, [*low, *high]);
                }
                (Scalar::Reaches { buffer, offset }, Some(result)) => self.reaches(result, *buffer, *offset),
                (Scalar::ImageField { image, field }, Some(result)) => self.image_field(result, *image, *field),
                (Scalar::Image { .. }, _) => self.image(block, inst),
                (Scalar::Load { ty, width: Width::Word, place, .. }, Some(result)) => self.load(result, *ty, place),
                (Scalar::Load { width, place, .. }, Some(result)) => self.load_subword(result, *width, place),
                (Scalar::Store { width: Width::Word, place, value, .. }, _) => self.store(place, *value),
                (Scalar::Store { width, place, value, .. }, _) => self.store_subword(*width, place, *value),
                (Scalar::Atomic { .. }, _) => {
                    if !self.reduce_atomic(inst) {
                        self.atomic(result, data);
                    }
                }
                (Scalar::Clock { .. }, Some(result)) => self.clock(result),
                (Scalar::Print { message, args }, _) => self.print(*message, args),
                (Scalar::HighWord { of }, Some(result)) => self.high_word(result, *of),
                (Scalar::Subgroup { op, args }, Some(result)) => self.subgroup_op(result, *op, args),
                (Scalar::Barrier { memory, semantics, .. }, _) => {
                    self.fence(*memory, *semantics);
                    self.barrier(data);
                }
                (Scalar::Fence { scope, semantics }, _) => self.fence(*scope, *semantics),
                _ => self.leave(data),
            }
        }
    }

    /// Whether the result of an `element` is used as a number, not only as an offset that is decomposed.
    fn is_number(&self, value: ir::Value) -> bool {
        self.numbers.contains(value)
    }

    /// `buffer`: the number of the descriptor, `u32::MAX` if the index is out of bounds.
    fn buffer(&mut self, result: ir::Value, binding: ir::Binding, index: ir::Value) {
        let (first, count) = (self.descriptors[binding], self.kernel.bindings[binding].count);
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

    fn buffer_size(&mut self, result: ir::Value, buffer: ir::Value) {
        if self.shape(buffer) == Shape::Uniform {
            let buffer = self.scalar(buffer);
            let len = self.builder.emit_one(InstData::BufferLen { buffer });
            let len = self.builder.wide(WideOp::Truncate, &[len]);
            return self.define_as(result, len);
        }
        let ty = Type::V32;
        let size = self.for_each_buffer(buffer, Some(ty), |widen, buffer, _| {
            let len = widen.builder.emit_one(InstData::BufferLen { buffer });
            let len = widen.builder.wide(WideOp::Truncate, &[len]);
            Some(widen.builder.splat(len))
        });
        if let Some(size) = size {
            self.define_as(result, size);
        }
    }

    /// The memory of a descriptor.
    pub(super) fn descriptor(&mut self, buffer: Value) -> MemoryRegion {
        let base = self.builder.emit_one(InstData::BufferBase { buffer });
        let len = self.builder.emit_one(InstData::BufferLen { buffer });
        MemoryRegion { base, len }
    }

    /// Waterfall loop over a buffer operand that differs between lanes. Each iteration takes the buffer of the first
    /// remaining lane and runs `each` with the descriptor's number and the mask of the lanes with that buffer. The results
    /// of type `ty` are merged by mask.
    pub(super) fn for_each_buffer(
        &mut self,
        buffer: ir::Value,
        ty: Option<Type>,
        mut each: impl FnMut(&mut Self, Value, Value) -> Option<Value>,
    ) -> Option<Value> {
        use crate::simd::dominance::Extent;
        use crate::simd::ssa::Unwritten;
        let numbers = self.vector(buffer);
        let rest = self.builder.variables.declare(Type::Mask, Unwritten::Empty);
        let found = ty.map(|ty| self.builder.variables.declare(ty, Unwritten::Undef));
        let [top, body, end] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.variables.write(self.builder.current(), rest, self.exec);
        if let (Some(found), Some(ty)) = (found, ty) {
            let undef = self.builder.emit_one(InstData::Undef { ty });
            self.builder.variables.write(self.builder.current(), found, undef);
        }
        // The callers have read the values that the body uses in this block, which dominates the body.
        self.builder.jump(top);
        self.builder.switch_to(top);
        self.builder.variables.dominance.open_loop(top, Extent::Within);
        self.note_exec();
        let left = self.builder.read(rest, top);
        let any = self.builder.emit_value(InstData::Any { mask: left });
        self.builder.branch(any, body, end);
        self.builder.switch_to(body);
        self.builder.seal(body);
        self.note_exec();
        let lane = self.builder.emit_value(InstData::FirstLane { mask: left });
        let number = self.builder.emit_value(InstData::Extract { vector: numbers, lane });
        let same = self.builder.splat(number);
        let same = self.builder.pure(Op::IEq, &[numbers, same]);
        let lanes = self.builder.and(left, same);
        let exec = std::mem::replace(&mut self.exec, lanes);
        let result = each(self, number, lanes);
        self.exec = exec;
        let last = self.builder.current();
        if let (Some(found), Some(result)) = (found, result) {
            let before = self.builder.read(found, last);
            let after = self.builder.select(lanes, result, before);
            self.builder.variables.write(last, found, after);
        }
        let after = self.builder.and_not(left, same);
        self.builder.variables.write(last, rest, after);
        self.builder.jump(top);
        self.builder.seal(top);
        self.builder.variables.dominance.close_loop();
        self.builder.switch_to(end);
        self.builder.seal(end);
        self.note_exec();
        found.map(|found| self.builder.read(found, end))
    }

    fn load(&mut self, result: ir::Value, ty: ir::Type, place: &Place) {
        if let Place::Buffer { buffer, offset, .. } = *place
            && self.shape(buffer) != Shape::Uniform
        {
            let offset = self.offset(offset);
            self.prepare_terms(&offset);
            let value = self.for_each_buffer(buffer, Some(Type::V32), |widen, number, _| {
                let region = widen.descriptor(number);
                let value = widen.load_from(region, &offset, ir::Type::F32);
                Some(widen.in_lanes(value))
            });
            if let Some(value) = value {
                self.define_as(result, value);
            }
            return;
        }
        let (region, offset) = self.place_of(place);
        let value = match place {
            Place::Variable { variable, .. } if self.is_private(*variable) => {
                let target = self.private(*variable, &offset);
                self.load_target(target, ty)
            }
            // Push constants are constant during a dispatch: loaded once, before the loops over subgroups and workgroups,
            // where that saves time.
            Place::Push { .. }
                if ty == ir::Type::I32
                    && offset.lanes.is_empty()
                    && (self.is_small_kernel || self.address_words.contains(result)) =>
            {
                let address = self.word(region, &offset);
                self.builder.emit_one(InstData::Load { ty: Type::S32, address })
            }
            _ => match self.load_segments(region, &offset) {
                Some(value) => value,
                None => self.load_from(region, &offset, ty),
            },
        };
        self.define_as(result, value);
    }

    fn store(&mut self, place: &Place, value: ir::Value) {
        if let Place::Buffer { buffer, offset, .. } = *place
            && self.shape(buffer) != Shape::Uniform
        {
            let offset = self.offset(offset);
            self.prepare_terms(&offset);
            let stored = self.vector(value);
            self.for_each_buffer(buffer, None, |widen, number, _| {
                let region = widen.descriptor(number);
                let target = widen.target(region, &offset);
                widen.store_target(target, stored);
                None
            });
            return;
        }
        let (region, offset) = self.place_of(place);
        let target = match place {
            Place::Push { .. } => return,
            Place::Variable { variable, .. } if self.is_private(*variable) => self.private(*variable, &offset),
            _ if self.all_lanes_active() && self.try_store_coalesced(region, &offset, value) => return,
            _ if self.store_segments(region, &offset, value) => return,
            _ => self.target(region, &offset),
        };
        let value = match target {
            Target::Word(_) => {
                let kept = self.get(value);
                if self.shape(value) == Shape::Uniform { kept } else { self.vector(value) }
            }
            _ => self.vector(value),
        };
        self.store_target(target, value);
    }

    /// Stores words at constant offsets per lane as a few rows, if that is profitable.
    fn try_store_coalesced(&mut self, region: MemoryRegion, offset: &Offset, value: ir::Value) -> bool {
        let Some(constants) = self.lane_constants(offset) else { return false };
        let words = constants.words(0);
        let rows = covering_rows(words);
        let profitable = Self::rows_are_profitable(&rows, 1);
        if profitable {
            let value = self.vector(value);
            let at = self.coalesced_start(region, offset, &constants);
            self.store_coalesced(at, &rows, &[words], &[value]);
        }
        profitable
    }

    /// Reads the values of an offset's terms in the block before a waterfall loop that uses them.
    pub(super) fn prepare_terms(&mut self, offset: &Offset) {
        for term in offset.uniform.iter().chain(&offset.lanes) {
            self.get(term.value);
        }
    }

    pub(super) fn in_lanes(&mut self, value: Value) -> Value {
        if self.builder.ty(value).is_vector() { value } else { self.builder.splat(value) }
    }

    pub(super) fn is_private(&self, variable: ir::Variable) -> bool {
        self.kernel.variables[variable].space == VariableSpace::Private
    }

    fn load_from(&mut self, region: MemoryRegion, offset: &Offset, ty: ir::Type) -> Value {
        if let Some(constants) = self.lane_constants(offset) {
            let words = constants.words(0);
            let rows = covering_rows(words);
            if Self::rows_are_profitable(&rows, 1) {
                let at = self.coalesced_start(region, offset, &constants);
                return self.load_coalesced(at, &rows, &[words])[0];
            }
        }
        if let Some(clamped) = self.clamped(offset) {
            return self.load_clamped(region, offset, &clamped);
        }
        let target = self.target(region, offset);
        self.load_target(target, ty)
    }

    pub(super) fn load_target(&mut self, target: Target, ty: ir::Type) -> Value {
        let ty = if ty == ir::Type::I32 { Type::S32 } else { Type::V32 };
        match target {
            Target::Word(address) => self.builder.emit_value(InstData::Load { ty, address }),
            Target::Row(row) => self.builder.emit_value(InstData::LoadRow { row }),
            Target::Lanes(lanes, mask) => self.builder.emit_value(InstData::Gather { lanes, mask }),
        }
    }

    pub(super) fn store_target(&mut self, target: Target, value: Value) {
        let mask = self.exec;
        match target {
            Target::Word(address) => self.builder.emit(InstData::Store { address, value, mask }),
            Target::Row(row) => {
                let value = self.in_lanes(value);
                self.builder.emit(InstData::StoreRow { row, value, mask })
            }
            Target::Lanes(lanes, mask) => {
                let value = self.in_lanes(value);
                self.builder.emit(InstData::Scatter { width: Width::Word, lanes, value, mask })
            }
        };
    }
}
