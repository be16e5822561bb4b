//! In which form a scalar value is, and how it gets into the form that an instruction wants.

use super::{Form, Type, Value, Widen};
use crate::analysis::Shape;
use crate::ir::{self, InstData as Scalar, Op};
use crate::simd::InstData;
use crate::simd::ssa::{Unwritten, Variable, Writers};

/// The type in which a value of that shape is kept. A pattern is kept as its base.
pub(super) fn type_of(ty: ir::Type, shape: Shape) -> Type {
    match (ty, shape) {
        (ir::Type::Bool, Shape::Uniform) => Type::S1,
        (ir::Type::Bool, _) => Type::Mask,
        (ir::Type::F32, _) => Type::V32,
        (ir::Type::I32, Shape::Uniform | Shape::Pattern(_)) | (ir::Type::Buffer, Shape::Uniform) => Type::S32,
        (ir::Type::I32 | ir::Type::Buffer, _) => Type::V32,
    }
}

impl Widen<'_> {
    /// Finds the values that are used outside the block that defines them.
    pub(super) fn find_shared(&mut self) {
        let kernel = self.kernel;
        for &block in &kernel.layout {
            self.block = block;
            for &inst in &kernel.blocks[block].insts {
                kernel.insts[inst].for_each_use(|value| self.note_use(value));
                if let Some(&below) = self.serial.below.get(&inst) {
                    self.note_use(below);
                }
                // An access looks at the parts of its offset, wherever they were put together.
                if let Scalar::Load { place, .. } | Scalar::Store { place, .. } | Scalar::Atomic { place, .. } =
                    &kernel.insts[inst]
                {
                    let offset = self.offset(place.offset());
                    offset.uniform.iter().chain(&offset.lanes).for_each(|term| self.note_use(term.value));
                    self.uses_of_elements(&offset).into_iter().for_each(|value| self.note_use(value));
                    if let Some(clamped) = self.clamped(&offset) {
                        clamped.uses().for_each(|value| self.note_use(value));
                    }
                    if let Some(strips) = self.strips(&offset) {
                        strips.uses().for_each(|value| self.note_use(value));
                    }
                }
                if let Scalar::Reaches { offset, .. } = kernel.insts[inst] {
                    let offset = self.offset(offset);
                    offset.uniform.iter().chain(&offset.lanes).for_each(|term| self.note_use(term.value));
                }
            }
        }
    }

    fn note_use(&mut self, value: ir::Value) {
        let block = self.block;
        if self.uniformity.home(value) == Some(block) {
            return;
        }
        self.shared.insert(value);
        if self.uniformity.is_frozen(value, block) {
            let ty = type_of(self.kernel.ty(value), Shape::Varying);
            let variables = &mut self.builder.variables;
            self.frozen.entry(value).or_insert_with(|| variables.declare(ty, Unwritten::Undef));
            self.note_left(value);
        }
    }

    /// Notes the outermost divergent loop that lanes leave with a value on the way to the current block.
    fn note_left(&mut self, value: ir::Value) {
        let (loops, flow) = (&self.uniformity.loops, &self.uniformity.flow);
        let around = |block| std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
        let Some(home) = self.uniformity.home(value) else { return };
        let left = around(home).take_while(|&number| !loops.contains(number, self.block));
        if let Some(outermost) = left.filter(|&number| flow.is_divergent(number)).last() {
            let noted = self.left.entry(value).or_insert(outermost);
            // Loops come before those inside.
            *noted = outermost.min(*noted);
        }
    }

    /// The shape of a value where it is used now.
    pub(super) fn shape(&self, value: ir::Value) -> Shape {
        self.uniformity.shape_in(value, self.block)
    }

    /// Notes what a scalar value became.
    pub(super) fn define(&mut self, value: ir::Value, to: Value) {
        debug_assert_eq!(
            self.builder.ty(to),
            type_of(self.kernel.ty(value), self.uniformity.shape(value)),
            "{value} in {:?}",
            self.block
        );
        if let Some(&frozen) = self.frozen.get(&value) {
            self.freeze(value, to, frozen);
        }
        if self.builder.is_outer(to) && self.uniformity.home(value).is_some_and(|home| !self.is_param(value, home)) {
            self.forms[value] = Some(Form::Outer(to));
            return;
        }
        self.local.insert(value, to);
        if self.shared.contains(value) {
            let variable = self.variable(value);
            let within = self.uniformity.loops.of(self.block);
            self.builder.variables.write_only(self.builder.current(), variable, to, within);
        }
    }

    /// Whether a result of the current block has its value already.
    pub(super) fn is_defined(&self, value: ir::Value) -> bool {
        self.local.contains_key(&value) || matches!(self.forms[value], Some(Form::Outer(_)))
    }

    fn is_param(&self, value: ir::Value, home: ir::Block) -> bool {
        self.kernel.blocks[home].params.contains(&value)
    }

    /// The variable of a value that several blocks use.
    pub(super) fn variable(&mut self, value: ir::Value) -> Variable {
        if let Some(Form::Variable(variable)) = self.forms[value] {
            return variable;
        }
        let ty = type_of(self.kernel.ty(value), self.uniformity.shape(value));
        let home = self.uniformity.home(value).map(|home| self.control.positions[home]);
        let writers = home.map_or(Writers::Everywhere, Writers::only);
        let variable = self.builder.variables.declare_of(ty, Unwritten::Undef, writers);
        self.note_common(variable, value);
        self.forms[value] = Some(Form::Variable(variable));
        variable
    }

    /// Lets a variable be carried over barriers if all subgroups have the value.
    pub(super) fn note_common(&mut self, variable: Variable, value: ir::Value) {
        if self.subgroup.is_common(value) {
            self.builder.variables.make_common(variable);
        }
    }

    /// Lanes that are on take the value along; lanes that left keep theirs.
    fn freeze(&mut self, value: ir::Value, to: Value, frozen: Variable) {
        let block = self.builder.current();
        let shape = self.uniformity.shape(value);
        let wide = self.widened(to, shape);
        let before = self.builder.read(frozen, block);
        let after = self.builder.select(self.exec, wide, before);
        self.builder.variables.write(block, frozen, after);
    }

    /// The value in the form that it is kept in here: the type is that of [`type_of`] for the shape here.
    pub(super) fn get(&mut self, value: ir::Value) -> Value {
        let block = self.builder.current();
        if let Some(&frozen) = self.frozen.get(&value)
            && self.uniformity.is_frozen(value, self.block)
        {
            return self.builder.read(frozen, block);
        }
        if let Some(&local) = self.local.get(&value) {
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

    /// A kept value in each lane.
    pub(super) fn widened(&mut self, value: Value, shape: Shape) -> Value {
        let ty = self.builder.ty(value);
        if ty.is_vector() {
            return value;
        }
        let splat = self.builder.splat(value);
        match shape {
            Shape::Pattern(pattern) => {
                let values = Box::new(*self.uniformity.patterns.lanes(pattern));
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

    /// A uniform value as `s1` or `s32`; the lanes of a uniform float have the same bits.
    pub(super) fn scalar(&mut self, value: ir::Value) -> Value {
        debug_assert_eq!(self.shape(value), Shape::Uniform);
        let kept = self.get(value);
        self.of_all_lanes(kept)
    }

    /// What all lanes of a vector have.
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

    /// The lane that stands for all active ones, where those have the same.
    pub(super) fn active_lane(&mut self) -> Value {
        match self.all_lanes_are_on() {
            true => self.builder.s32(0),
            false => self.builder.emit_one(InstData::FirstLane { mask: self.exec }),
        }
    }

    /// What all active lanes of a vector have, as `s32`: of a value that inactive lanes do not hold.
    pub(super) fn of_active_lanes(&mut self, vector: Value) -> Value {
        let lane = self.active_lane();
        self.builder.emit_one(InstData::Extract { vector, lane })
    }

    /// A result that is kept as its shape says.
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
