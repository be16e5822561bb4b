//! Constants, built-ins and pure operations: on scalars where all lanes agree, else in each lane.

use super::{Type, Value, Widen};
use crate::analysis::Shape;
use crate::ir::{self, BuiltIn, InstData as Scalar, Op};
use crate::lower::math::{works_on_doubles, works_on_parts};
use crate::simd::{Field, InstData, LANES};

/// Whether scalars can do an operation: floats are always in lanes.
fn is_integer(op: Op) -> bool {
    let word = |ty: &ir::Type| matches!(ty, ir::Type::I32 | ir::Type::Bool);
    op.params().iter().all(word) && word(&op.result()) && !works_on_doubles(op) && !works_on_parts(op)
}

impl Widen<'_> {
    /// An operation of the table.
    pub(super) fn pure(&mut self, result: ir::Value, op: Op, args: &[ir::Value]) {
        let shape = self.uniformity.shape(result);
        let value = match shape {
            Shape::Pattern(_) => self.on_bases(op, args),
            Shape::Uniform if is_integer(op) => {
                let args: smallvec::SmallVec<[Value; 4]> = args.iter().map(|&arg| self.base(arg)).collect();
                self.builder.pure(op, &args)
            }
            _ => {
                let args: smallvec::SmallVec<[Value; 4]> = args.iter().map(|&arg| self.vector(arg)).collect();
                self.builder.pure(op, &args)
            }
        };
        self.define_as(result, value);
    }

    /// A uniform value, or the base of a pattern: two patterns may differ by what is uniform.
    fn base(&mut self, value: ir::Value) -> Value {
        if self.shape(value) == Shape::Uniform { self.scalar(value) } else { self.get(value) }
    }

    /// Sums, differences and products of patterns: what is left for the bases.
    fn on_bases(&mut self, op: Op, args: &[ir::Value]) -> Value {
        let args: smallvec::SmallVec<[Value; 4]> = args.iter().map(|&arg| self.get(arg)).collect();
        self.builder.pure(op, &args)
    }

    /// A constant.
    pub(super) fn constant(&mut self, result: ir::Value, ty: ir::Type, bits: u64) {
        let value = match ty {
            ir::Type::Bool => self.builder.constant(Type::S1, bits),
            ir::Type::F32 => self.builder.constant(Type::V32, bits),
            ir::Type::I32 | ir::Type::Buffer => self.builder.constant(Type::S32, bits),
        };
        self.define(result, value);
    }

    /// `select`.
    pub(super) fn select(&mut self, result: ir::Value, [condition, then, otherwise]: [ir::Value; 3]) {
        let value = if self.shape(condition) == Shape::Uniform {
            let condition = self.scalar(condition);
            // Patterns with the same lanes differ in their bases only; else both come as the result is kept.
            let same = self.shape(then) == self.shape(otherwise);
            let [then, otherwise] =
                [then, otherwise].map(|value| if same { self.get(value) } else { self.vector(value) });
            self.builder.select(condition, then, otherwise)
        } else {
            let [condition, then, otherwise] = [condition, then, otherwise].map(|value| self.vector(value));
            self.builder.select(condition, then, otherwise)
        };
        self.define_as(result, value);
    }

    /// A component of a built-in; of a pattern the base, which is lane 0's.
    pub(super) fn builtin(&mut self, result: ir::Value, builtin: BuiltIn, component: u8) {
        let component = component.min(2);
        let varying = self.uniformity.shape(result) == Shape::Varying;
        let value = match builtin {
            BuiltIn::NumWorkgroups => self.context(Field::NumWorkgroups(component)),
            BuiltIn::WorkgroupId => self.context(Field::WorkgroupId(component)),
            BuiltIn::NumSubgroups if component > 0 => self.builder.s32(0),
            BuiltIn::NumSubgroups => self.builder.s32(self.kernel.invocations().div_ceil(LANES)),
            BuiltIn::SubgroupId if component > 0 => self.builder.s32(0),
            BuiltIn::SubgroupId => self.subgroup.number,
            BuiltIn::SubgroupLocalInvocationId | BuiltIn::LocalInvocationIndex if component > 0 => self.builder.s32(0),
            BuiltIn::SubgroupLocalInvocationId => self.builder.s32(0),
            BuiltIn::LocalInvocationIndex => self.first_index(),
            BuiltIn::LocalInvocationId => self.local_id(component, varying),
            BuiltIn::GlobalInvocationId => {
                let local = self.local_id(component, varying);
                let group = self.context(Field::WorkgroupId(component));
                let size = self.builder.s32(self.kernel.workgroup_size[usize::from(component)]);
                let first = self.builder.pure(Op::IMul, &[group, size]);
                let first = if varying { self.builder.splat(first) } else { first };
                self.builder.pure(Op::IAdd, &[first, local])
            }
        };
        self.define_as(result, value);
    }

    fn context(&mut self, field: Field) -> Value {
        self.builder.emit_one(InstData::Context { field })
    }

    /// The index of the invocation in lane 0.
    fn first_index(&mut self) -> Value {
        let sixteen = self.builder.s32(LANES);
        let number = self.subgroup.number;
        self.builder.pure(Op::IMul, &[number, sixteen])
    }

    /// A component of the id in lane 0, or in each lane.
    fn local_id(&mut self, component: u8, varying: bool) -> Value {
        let [x, y, _] = self.kernel.workgroup_size;
        let size = self.kernel.workgroup_size[usize::from(component)];
        let below = match component {
            0 => 1,
            1 => x,
            _ => x * y,
        };
        let last = below * size == self.kernel.invocations();
        if !varying {
            // Subgroups are whole steps apart, or steps whole subgroups.
            let number = self.subgroup.number;
            let step = if LANES.is_multiple_of(below) && (LANES / below).is_multiple_of(size) {
                return self.builder.s32(0);
            } else if below.is_multiple_of(LANES) {
                self.divide(number, below / LANES)
            } else {
                let index = self.first_index();
                self.divide(index, below)
            };
            return if last { step } else { self.remainder(step, size) };
        }
        let index = self.first_index();
        let splat = self.builder.splat(index);
        let lanes =
            self.builder.emit_one(InstData::Lanes { values: Box::new(std::array::from_fn(|lane| lane as u32)) });
        let index = self.builder.pure(Op::IAdd, &[splat, lanes]);
        let step = self.divide(index, below);
        if last { step } else { self.remainder(step, size) }
    }

    /// An invocation's index, which is small, divided by a constant.
    fn divide(&mut self, index: Value, by: u32) -> Value {
        let vector = self.builder.ty(index).is_vector();
        let mut constant = |value: u32| {
            let value = self.builder.s32(value);
            if vector { self.builder.splat(value) } else { value }
        };
        if by.is_power_of_two() {
            let amount = constant(by.trailing_zeros());
            return if by == 1 { index } else { self.builder.pure(Op::LShr, &[index, amount]) };
        }
        // Rounded up, the reciprocal is exact for numbers and divisors below 2^16.
        let reciprocal = constant((1u64 << 32).div_ceil(u64::from(by)) as u32);
        self.builder.pure(Op::UMulHigh, &[index, reciprocal])
    }

    fn remainder(&mut self, index: Value, by: u32) -> Value {
        let vector = self.builder.ty(index).is_vector();
        let quotient = self.divide(index, by);
        let by = self.builder.s32(by);
        let by = if vector { self.builder.splat(by) } else { by };
        let whole = self.builder.pure(Op::IMul, &[quotient, by]);
        self.builder.pure(Op::ISub, &[index, whole])
    }

    /// An instruction without memory or control flow; `false` for others.
    pub(super) fn computes(&mut self, result: Option<ir::Value>, data: &Scalar) -> bool {
        let Some(result) = result else { return false };
        match data {
            Scalar::Const { ty, bits } => self.constant(result, *ty, *bits),
            Scalar::Pure { op, args } => self.pure(result, *op, args),
            Scalar::Select { condition, then, otherwise } => self.select(result, [*condition, *then, *otherwise]),
            Scalar::BuiltIn { builtin, component } => self.builtin(result, *builtin, *component),
            _ => return false,
        }
        true
    }
}
