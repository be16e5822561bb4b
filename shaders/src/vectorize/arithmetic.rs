//! Constants, built-ins and pure operations: scalar for uniform and lane-affine results, else one element per lane.

use super::state::Widen;
use crate::analysis::Shape;
use crate::ir::op::{works_on_doubles, works_on_subwords};
use crate::ir::{self, BuiltIn, InstData as ScalarInst, Op};
use crate::simd::{ContextField, InstData, LANES, Type, Value, WideOp};

/// Whether an operation has a scalar form: floats are always kept in vectors.
fn is_integer(op: Op) -> bool {
    let word = |ty: &ir::Type| matches!(ty, ir::Type::I32 | ir::Type::Bool);
    op.params().iter().all(word) && word(&op.result()) && !works_on_doubles(op) && !works_on_subwords(op)
}

impl Widen<'_> {
    /// `pure`: an operation of the table [`Op`].
    pub(super) fn pure(&mut self, result: ir::Value, op: Op, args: &[ir::Value]) {
        let shape = self.uniformity.shape(result);
        let value = match shape {
            Shape::Affine(_) => self.on_bases(op, args),
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

    /// A uniform value as scalar, or the base of a lane-affine value: the difference of two lane-affine values with the
    /// same lane offsets is uniform.
    fn base(&mut self, value: ir::Value) -> Value {
        if self.shape(value) == Shape::Uniform { self.scalar(value) } else { self.get(value) }
    }

    /// Sums, differences and products of lane-affine values: the analysis knows the lane offsets of the result, so only
    /// its base is computed.
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
            // Operands with equal lane offsets differ in their bases only, so the bases are selected.
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

    /// A component of a built-in. The base of a lane-affine one is the value of lane 0.
    pub(super) fn builtin(&mut self, result: ir::Value, builtin: BuiltIn, component: u8) {
        let component = component.min(2);
        let varying = self.uniformity.shape(result) == Shape::Varying;
        let value = match builtin {
            BuiltIn::NumWorkgroups => self.context(ContextField::NumWorkgroups(component)),
            BuiltIn::WorkgroupId => self.context(ContextField::WorkgroupId(component)),
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
                let group = self.context(ContextField::WorkgroupId(component));
                let size = self.builder.s32(self.kernel.workgroup_size[usize::from(component)]);
                let first = self.builder.pure(Op::IMul, &[group, size]);
                let first = if varying { self.builder.splat(first) } else { first };
                self.builder.pure(Op::IAdd, &[first, local])
            }
        };
        self.define_as(result, value);
    }

    fn context(&mut self, field: ContextField) -> Value {
        self.builder.emit_one(InstData::Context { field })
    }

    /// The local invocation index of lane 0.
    fn first_index(&mut self) -> Value {
        let sixteen = self.builder.s32(LANES);
        let number = self.subgroup.number;
        self.builder.pure(Op::IMul, &[number, sixteen])
    }

    /// A component of the local invocation id: per lane if `varying`, else that of lane 0.
    fn local_id(&mut self, component: u8, varying: bool) -> Value {
        let [x, y, _] = self.kernel.workgroup_size;
        let size = self.kernel.workgroup_size[usize::from(component)];
        let stride = match component {
            0 => 1,
            1 => x,
            _ => x * y,
        };
        let last = stride * size == self.kernel.invocations();
        if !varying {
            // A subgroup of whole periods of the component starts at 0. A component that changes after a multiple of 16
            // invocations depends on the subgroup's number only.
            let number = self.subgroup.number;
            let step = if LANES.is_multiple_of(stride) && (LANES / stride).is_multiple_of(size) {
                return self.builder.s32(0);
            } else if stride.is_multiple_of(LANES) {
                self.divide(number, stride / LANES)
            } else {
                let index = self.first_index();
                self.divide(index, stride)
            };
            return if last { step } else { self.remainder(step, size) };
        }
        let index = self.first_index();
        let splat = self.builder.splat(index);
        let lanes = self.builder.lane_ids();
        let index = self.builder.pure(Op::IAdd, &[splat, lanes]);
        let step = self.divide(index, stride);
        if last { step } else { self.remainder(step, size) }
    }

    /// An invocation's index, which is below 2^16, divided by a constant.
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
        // The reciprocal, rounded up, gives exact quotients for numbers and divisors below 2^16.
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

    /// `element` as a number: the sum saturates at `u32::MAX`.
    pub(super) fn element(&mut self, result: ir::Value, base: ir::Value, index: ir::Value, stride: u32) {
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
            let term = self.builder.times(index, stride);
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

    /// Translates an instruction without memory access or control flow; `false` for others.
    pub(super) fn computes(&mut self, result: Option<ir::Value>, data: &ScalarInst) -> bool {
        let Some(result) = result else { return false };
        match data {
            ScalarInst::Const { ty, bits } => self.constant(result, *ty, *bits),
            ScalarInst::Pure { op, args } => self.pure(result, *op, args),
            ScalarInst::Select { condition, then, otherwise } => self.select(result, [*condition, *then, *otherwise]),
            ScalarInst::BuiltIn { builtin, component } => self.builtin(result, *builtin, *component),
            _ => return false,
        }
        true
    }
}
