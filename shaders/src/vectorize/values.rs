//! SIMD forms of scalar values, and conversions between them: one scalar for a uniform value, the base of a lane-affine
//! value, or one element per lane.

use super::state::{Form, Widen};
use crate::analysis::{BlockShapes, Shape};
use crate::ir::{self, Op};
use crate::simd::builder::ALL;
use crate::simd::ssa::{Unwritten, Variable, Writers};
use crate::simd::{InstData, Type, Value};

/// The type in which a value of that shape is kept. A lane-affine value is kept as its base.
pub(super) fn type_of(ty: ir::Type, shape: Shape) -> Type {
    match (ty, shape) {
        (ir::Type::Bool, Shape::Uniform) => Type::S1,
        (ir::Type::Bool, _) => Type::Mask,
        (ir::Type::F32, _) => Type::V32,
        (ir::Type::I32, Shape::Uniform | Shape::Affine(_)) | (ir::Type::Buffer, Shape::Uniform) => Type::S32,
        (ir::Type::I32 | ir::Type::Buffer, _) => Type::V32,
    }
}

impl Widen<'_> {
    /// The shapes of values in the current block.
    pub(super) fn shapes(&self) -> BlockShapes<'_> {
        BlockShapes { kernel: self.kernel, uniformity: self.uniformity, block: self.block }
    }

    /// The shape of a value where it is used now.
    pub(super) fn shape(&self, value: ir::Value) -> Shape {
        self.uniformity.shape_in(value, self.block)
    }

    /// Sets the SIMD form of a scalar value.
    pub(super) fn define(&mut self, value: ir::Value, to: Value) {
        debug_assert_eq!(
            self.builder.ty(to),
            type_of(self.kernel.ty(value), self.uniformity.shape(value)),
            "{value} in {:?}",
            self.block
        );
        if let Some(&live_out) = self.live_outs.get(&value) {
            self.update_live_out(value, to, live_out);
        }
        let defining_block = self.uniformity.defining_block(value);
        if self.builder.is_outer(to) && defining_block.is_some_and(|block| !self.is_param(value, block)) {
            self.forms[value] = Some(Form::Outer(to));
            return;
        }
        self.cache.local.insert(value, to);
        if self.plans.cross_block.contains(value) {
            let variable = self.variable(value);
            let within = self.uniformity.loops.of(self.block);
            self.builder.variables.write_only(self.builder.current(), variable, to, within);
        }
    }

    /// Whether a result of the current block has its SIMD form already.
    pub(super) fn is_defined(&self, value: ir::Value) -> bool {
        self.cache.local.contains_key(&value) || matches!(self.forms[value], Some(Form::Outer(_)))
    }

    fn is_param(&self, value: ir::Value, block: ir::Block) -> bool {
        self.kernel.blocks[block].params.contains(&value)
    }

    /// The variable of a value that several blocks use.
    pub(super) fn variable(&mut self, value: ir::Value) -> Variable {
        if let Some(Form::Variable(variable)) = self.forms[value] {
            return variable;
        }
        let ty = type_of(self.kernel.ty(value), self.uniformity.shape(value));
        let position = self.uniformity.defining_block(value).map(|block| self.control.positions[block]);
        let writers = position.map_or(Writers::Everywhere, Writers::only);
        let variable = self.builder.variables.declare_of(ty, Unwritten::Undef, writers);
        self.mark_common(variable, value);
        if self.uniformity.shape(value) == Shape::Uniform {
            self.builder.variables.make_uniform(variable);
        }
        self.forms[value] = Some(Form::Variable(variable));
        variable
    }

    /// Lets a variable be passed over barriers in a loop parameter if all subgroups have the same value.
    pub(super) fn mark_common(&mut self, variable: Variable, value: ir::Value) {
        if self.subgroup.is_common(value) {
            self.builder.variables.make_common(variable);
        }
    }

    /// Temporal divergence: active lanes get the value of this iteration, lanes that left the loop keep theirs.
    fn update_live_out(&mut self, value: ir::Value, to: Value, live_out: Variable) {
        let block = self.builder.current();
        let shape = self.uniformity.shape(value);
        let wide = self.widened(to, shape);
        let before = self.builder.read(live_out, block);
        let after = self.builder.select(self.exec, wide, before);
        self.builder.variables.write(block, live_out, after);
    }

    /// The value in the form in which it is kept, with the type that [`type_of`] gives for its shape in this block.
    pub(super) fn get(&mut self, value: ir::Value) -> Value {
        let block = self.builder.current();
        if let Some(&live_out) = self.live_outs.get(&value)
            && self.uniformity.is_temporally_divergent(value, self.block)
        {
            return self.builder.read(live_out, block);
        }
        if let Some(&local) = self.cache.local.get(&value) {
            return local;
        }
        match self.forms[value] {
            Some(Form::Outer(outer)) => outer,
            Some(Form::Variable(variable)) => self.builder.read(variable, block),
            None => {
                let variable = self.variable(value);
                self.builder.read(variable, block)
            }
        }
    }

    /// A value in its kept form, expanded to one element per lane.
    pub(super) fn widened(&mut self, value: Value, shape: Shape) -> Value {
        let ty = self.builder.ty(value);
        if ty.is_vector() {
            return value;
        }
        let splat = self.builder.splat(value);
        match shape {
            Shape::Affine(offsets) => {
                let values = Box::new(*self.uniformity.lane_offsets.lanes(offsets));
                let lanes = self.builder.emit_one(InstData::Lanes { values });
                self.builder.pure(Op::IAdd, &[splat, lanes])
            }
            _ => splat,
        }
    }

    /// The value in each lane, as `v32` or `mask`.
    pub(super) fn vector(&mut self, value: ir::Value) -> Value {
        let shape = self.shape(value);
        let kept = self.get(value);
        self.widened(kept, shape)
    }

    /// A uniform value as `s1` or `s32`. A uniform float is kept as `v32`, so its bits are extracted.
    pub(super) fn scalar(&mut self, value: ir::Value) -> Value {
        debug_assert_eq!(self.shape(value), Shape::Uniform);
        let kept = self.get(value);
        self.of_all_lanes(kept)
    }

    /// The common value of all 16 lanes, as a scalar. Inactive lanes must hold it, too: otherwise see
    /// [`Widen::of_active_lanes`].
    pub(super) fn of_all_lanes(&mut self, value: Value) -> Value {
        match self.builder.ty(value) {
            Type::V32 => match self.builder.kernel.constant(value) {
                Some(bits) => self.builder.s32(bits as u32),
                None => {
                    let lane = self.builder.s32(0);
                    self.builder.emit_one(InstData::Extract { vector: value, lane })
                }
            },
            Type::Mask => self.builder.any(value),
            _ => value,
        }
    }

    /// Records the execution mask in the SIMD block.
    pub(super) fn record_exec(&mut self) {
        let block = self.builder.current();
        self.builder.kernel.blocks[block].exec = Some(self.exec);
    }

    /// Whether all lanes are known to be active.
    pub(super) fn all_lanes_active(&self) -> bool {
        self.builder.kernel.constant(self.exec) == Some(ALL)
    }

    /// The number of an active lane, `s32`, to read a value that is the same in all active lanes.
    pub(super) fn active_lane(&mut self) -> Value {
        match self.all_lanes_active() {
            true => self.builder.s32(0),
            false => self.builder.emit_one(InstData::FirstLane { mask: self.exec }),
        }
    }

    /// The common value of the active lanes, as `s32`, for a vector with unspecified inactive lanes.
    pub(super) fn of_active_lanes(&mut self, vector: Value) -> Value {
        let lane = self.active_lane();
        self.builder.emit_one(InstData::Extract { vector, lane })
    }

    /// Sets the SIMD form of a scalar value, converted to the form of its shape.
    pub(super) fn define_as(&mut self, value: ir::Value, to: Value) {
        let ty = type_of(self.kernel.ty(value), self.uniformity.shape(value));
        let to = match (ty.is_vector(), self.builder.ty(to).is_vector()) {
            (true, false) => self.builder.splat(to),
            (false, true) => self.of_all_lanes(to),
            _ => to,
        };
        self.define(value, to);
    }
}
