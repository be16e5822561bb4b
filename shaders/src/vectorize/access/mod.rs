//! Loads and stores.
//!
//! `plan` decides once per kernel how each access is done: `pattern` and `segments` classify the words that the lanes
//! have, `interleave` finds groups of accesses that are done together, and `cost` chooses. Then `emit` and
//! `emit_groups` emit the code, `target` and `bounds` its addresses and bounds checks; `subword` handles 8- and 16-bit
//! accesses, and `waterfall` accesses whose buffer differs between lanes.

pub(super) mod bounds;
mod cost;
mod emit;
mod emit_groups;
mod interleave;
pub(super) mod pattern;
pub(super) mod plan;
mod segments;
mod subword;
pub(super) mod target;
mod waterfall;

use self::bounds::MemoryRegion;
use self::interleave::is_private;
use self::plan::{AccessPlan, GroupRole};
use self::target::Target;
use super::{Type, Value, Widen};
use crate::analysis::Shape;
use crate::ir::{self, InstData as Scalar, Op, Place, Width};
use crate::simd::{InstData, WideOp};

impl Widen<'_> {
    /// Translates the instructions of a scalar block.
    pub(super) fn translate(&mut self, block: ir::Block) {
        let (kernel, accesses) = (self.kernel, &self.plans.accesses);
        for &inst in &kernel.blocks[block].insts {
            let (data, result) = (&kernel.insts[inst], kernel.results[inst]);
            match accesses.role(inst) {
                None => {}
                Some(GroupRole::Member) => continue,
                Some(GroupRole::Leader(group)) => {
                    self.access_group(group);
                    continue;
                }
            }
            let is_done = result.is_some_and(|result| self.cache.samples.early.contains(&result));
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
                (Scalar::Reaches { buffer, .. }, Some(result)) => {
                    self.reaches(result, *buffer, &accesses.at(inst).offset)
                }
                (Scalar::ImageField { image, field }, Some(result)) => self.image_field(result, *image, *field),
                (Scalar::Image { .. }, _) => self.image(block, inst),
                (Scalar::Load { ty, width: Width::Word, place, .. }, Some(result)) => {
                    self.load(result, *ty, place, accesses.at(inst))
                }
                (Scalar::Load { width, place, .. }, Some(result)) => {
                    self.load_subword(result, *width, place, accesses.at(inst))
                }
                (Scalar::Store { width: Width::Word, place, value, .. }, _) => {
                    self.store(place, *value, accesses.at(inst))
                }
                (Scalar::Store { width, place, value, .. }, _) => {
                    self.store_subword(*width, place, accesses.at(inst), *value)
                }
                (Scalar::Atomic { .. }, _) => {
                    if !self.reduce_atomic(inst) {
                        self.atomic(result, data, accesses.at(inst));
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
        self.plans.numbers.contains(value)
    }

    /// `buffer`: the number of the descriptor, `u32::MAX` if the index is out of bounds.
    fn buffer(&mut self, result: ir::Value, binding: ir::Binding, index: ir::Value) {
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

    fn load(&mut self, result: ir::Value, ty: ir::Type, place: &Place, plan: &AccessPlan) {
        let is_small = self.plans.is_small_kernel || self.plans.address_words.contains(result);
        // A waterfall loop merges vectors.
        let ty = if self.divergent_buffer(place).is_some() { ir::Type::F32 } else { ty };
        let value = self.for_each_region(place, plan, Some(Type::V32), |widen, region| match *place {
            Place::Variable { variable, .. } if widen.is_private(variable) => {
                let target = widen.private(variable, &plan.offset);
                Some(widen.load_target(target, ty))
            }
            // Push constants are constant during a dispatch: loaded once, before the loops over subgroups and
            // workgroups, where that saves time.
            Place::Push { .. } if ty == ir::Type::I32 && plan.offset.lanes.is_empty() && is_small => {
                let address = widen.word(region, plan);
                Some(widen.builder.emit_one(InstData::Load { ty: Type::S32, address }))
            }
            _ => Some(widen.load_from(region, plan, ty)),
        });
        if let Some(value) = value {
            self.define_as(result, value);
        }
    }

    fn store(&mut self, place: &Place, value: ir::Value, plan: &AccessPlan) {
        if self.divergent_buffer(place).is_some() {
            self.prepare_terms(&plan.offset);
            let stored = self.vector(value);
            self.for_each_region(place, plan, None, |widen, region| {
                let target = widen.target(region, plan);
                widen.store_target(target, stored);
                None
            });
            return;
        }
        let region = self.region_of_place(place);
        match *place {
            Place::Push { .. } => {}
            Place::Variable { variable, .. } if self.is_private(variable) => {
                let target = self.private(variable, &plan.offset);
                self.store_value(target, value);
            }
            _ => self.store_to(region, plan, value),
        }
    }

    /// Stores a value in the form that the target needs.
    fn store_value(&mut self, target: Target, value: ir::Value) {
        let value = match target {
            Target::Word(_) if self.shape(value) == Shape::Uniform => self.get(value),
            _ => self.vector(value),
        };
        self.store_target(target, value);
    }

    pub(super) fn in_lanes(&mut self, value: Value) -> Value {
        if self.builder.ty(value).is_vector() { value } else { self.builder.splat(value) }
    }

    pub(super) fn is_private(&self, variable: ir::Variable) -> bool {
        is_private(self.kernel, variable)
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
