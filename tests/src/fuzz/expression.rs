//! Operations without memory access: all of the table, on values of the scope.

use std::sync::LazyLock;

use spelter_shaders::ir::op::works_on_exponents;
use spelter_shaders::ir::{BuiltIn, Op, Type, Value};

use super::feature::Feature;
use super::maker::Maker;
use super::scope::{Kind, Level};

/// Replaces a NaN.
const INSTEAD: f32 = 0.25;

/// Operations that shaders can express.
static SHADERS_OPS: LazyLock<Vec<Op>> =
    LazyLock::new(|| Op::ALL.iter().copied().filter(|&op| !works_on_exponents(op)).collect());

/// The most frequent operations of shaders.
const COMMON: [Op; 28] = [
    Op::IAdd,
    Op::ISub,
    Op::IMul,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Shl,
    Op::LShr,
    Op::AShr,
    Op::IEq,
    Op::INe,
    Op::ULt,
    Op::SLt,
    Op::SLe,
    Op::UMin,
    Op::SMax,
    Op::FAdd,
    Op::FSub,
    Op::FMul,
    Op::FMul,
    Op::FMin,
    Op::FMax,
    Op::FOrdLt,
    Op::FUnordLe,
    Op::SIntToFloat,
    Op::FloatToSInt,
    Op::LAnd,
    Op::LNot,
];

/// Whether lowering may change the result: transcendental functions, and remainders of large quotients.
pub fn is_transcendental(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        FRem | FMod
            | InverseSqrt
            | Exp
            | Exp2
            | Log
            | Log2
            | Pow
            | Sin
            | Cos
            | Tan
            | Asin
            | Acos
            | Atan
            | Sinh
            | Cosh
            | Tanh
            | Asinh
            | Acosh
            | Atanh
            | Atan2
    )
}

/// Whether the unspecified bits of a NaN operand are visible in the result.
fn shows_payload(op: Op) -> bool {
    matches!(op, Op::FloatBits | Op::HalfBits)
}

const INTS: [u32; 16] = [0, 1, 2, 3, 4, 7, 15, 16, 31, 32, 33, 0x55, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX];

const FLOATS: [f32; 20] = [
    0.0,
    1.0,
    -1.0,
    0.5,
    -0.0,
    2.0,
    1.5,
    -2.75,
    3.0e9,
    -5.0e9,
    1e-40,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    0.1,
    255.0,
    16_777_217.0,
    65_520.0,
];

impl Maker {
    /// An operand: a value of the scope or, less often, a boundary constant.
    fn operand(&mut self, ty: Type, first: bool) -> Value {
        if !first && self.tape.chance(5) {
            match ty {
                Type::I32 => {
                    let number = if self.tape.chance(4) { self.tape.word() } else { self.tape.of(&INTS) };
                    return self.constant(number);
                }
                Type::F32 => {
                    let number = self.tape.of(&FLOATS);
                    return self.constant(number);
                }
                Type::Bool | Type::Buffer => {}
            }
        }
        self.value(Kind::of(ty))
    }

    fn any_op(&mut self) -> Op {
        let op = if self.tape.pick(2) == 0 { self.tape.of(&COMMON) } else { self.tape.of(&SHADERS_OPS) };
        match is_transcendental(op) {
            false => op,
            true if self.options.transcendental => {
                self.mark(Feature::Transcendental);
                op
            }
            true => Op::Sqrt,
        }
    }

    /// One operation.
    pub(super) fn pure(&mut self) {
        let op = self.any_op();
        let args: Vec<Value> = op.params().iter().enumerate().map(|(at, &ty)| self.operand(ty, at == 0)).collect();
        let value = self.op(op, &args);
        self.define_result(value, op.result());
    }

    fn define_result(&mut self, value: Value, ty: Type) {
        let value = if ty == Type::F32 { self.number(value) } else { value };
        let level = self.level(&[value]);
        self.define(value, Kind::of(ty), level);
    }

    /// The value, or a number if it is a NaN: which NaN an operation returns is unspecified.
    pub(super) fn number(&mut self, value: Value) -> Value {
        let is_number = self.op(Op::FOrdEq, &[value, value]);
        let instead = self.constant(INSTEAD);
        self.choose(is_number, value, instead)
    }

    /// A select that does not enter the scope.
    pub(super) fn choose(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        let level = self.level(&[condition, then, otherwise]);
        let value = self.builder.select(condition, then, otherwise);
        if self.builder.kernel().constant(value).is_none() {
            self.scope.note(value, level);
        }
        value
    }

    /// A chain of float operations without replacement of NaN in between.
    pub(super) fn chain(&mut self) {
        self.mark(Feature::FloatChain);
        let precise = self.tape.chance(4);
        self.builder.set_no_contraction(precise);
        let mut value = self.value(Kind::Float);
        for _ in 0..self.tape.pick(4) + 1 {
            let op = self.float_op(|op| op.result() == Type::F32);
            value = self.on_float(op, value);
        }
        let last = self.float_op(|op| !shows_payload(op));
        let value = self.on_float(last, value);
        self.builder.set_no_contraction(false);
        self.define_result(value, last.result());
    }

    /// An operation that takes a float.
    fn float_op(&mut self, fits: impl Fn(Op) -> bool) -> Op {
        let common = [Op::FMul, Op::FAdd, Op::FSub, Op::Fma, Op::FNeg, Op::FMul, Op::FAdd, Op::FDiv];
        let op = if self.tape.pick(3) < 2 { self.tape.of(&common) } else { self.any_op() };
        if op.params().contains(&Type::F32) && fits(op) { op } else { Op::FAdd }
    }

    /// The operation with the value as one of its operands.
    fn on_float(&mut self, op: Op, value: Value) -> Value {
        let floats = op.params().iter().filter(|&&ty| ty == Type::F32).count() as u32;
        let mine = self.tape.pick(floats);
        let mut float = 0;
        let mut args = Vec::new();
        for &ty in op.params() {
            let arg = match ty {
                Type::F32 if float == mine => value,
                _ => self.operand(ty, false),
            };
            float += u32::from(ty == Type::F32);
            args.push(arg);
        }
        self.op(op, &args)
    }

    /// A select between two values of any type.
    pub(super) fn select(&mut self) {
        let kind = self.kind();
        let (condition, then, otherwise) = (self.value(Kind::Bool), self.value(kind), self.value(kind));
        if matches!(kind, Kind::Buffer(_)) {
            self.mark(Feature::SelectBuffer);
        }
        let level = self.level(&[condition, then, otherwise]);
        let value = self.builder.select(condition, then, otherwise);
        self.define(value, kind, level);
    }

    /// A new truth value: the scope has few.
    pub(super) fn compare(&mut self) {
        let (op, kind) = self.tape.of(&[
            (Op::ULt, Kind::Int),
            (Op::SLt, Kind::Int),
            (Op::INe, Kind::Int),
            (Op::FOrdLt, Kind::Float),
            (Op::FUnordLt, Kind::Float),
        ]);
        let (left, right) = (self.value(kind), self.value(kind));
        let value = self.op(op, &[left, right]);
        let level = self.level(&[value]);
        self.define(value, Kind::Bool, level);
    }

    /// A bit of a value that varies between invocations: a condition that is true for some.
    pub(super) fn divergent_bool(&mut self) -> Value {
        let (lane, other) = (self.lane(), self.value(Kind::Int));
        let mixed = self.op(Op::IAdd, &[lane, other]);
        let modulus = self.tape.pick(5) + 2;
        let rest = self.op_with(Op::UMod, mixed, modulus);
        let limit = self.tape.pick(modulus - 1);
        let limit = self.constant(limit);
        let value = self.op(Op::ULe, &[rest, limit]);
        self.define(value, Kind::Bool, Level::Invocation)
    }

    /// A new value: a hashed invocation number, or a uniform value.
    pub(super) fn fresh(&mut self) {
        match self.tape.pick(4) {
            0 => {
                let (lane, value) = (self.lane(), self.value(Kind::Int));
                let mixed = self.op(Op::Xor, &[lane, value]);
                let mixed = self.op_with(Op::IMul, mixed, 0x9e37_79b1);
                let value = self.op_with(Op::LShr, mixed, 7);
                self.define(value, Kind::Int, Level::Invocation);
            }
            1 => {
                let lane = self.lane();
                let float = self.op(Op::SIntToFloat, &[lane]);
                let factor = self.tape.of(&[0.37f32, -1.25, 3.0, 1e-3]);
                let factor = self.constant(factor);
                let value = self.op(Op::FMul, &[float, factor]);
                self.define(value, Kind::Float, Level::Invocation);
            }
            _ => {
                let (builtin, component, level) = self.tape.of(&[
                    (BuiltIn::LocalInvocationIndex, 0, Level::Invocation),
                    (BuiltIn::WorkgroupId, 0, Level::Workgroup),
                    (BuiltIn::SubgroupId, 0, Level::Subgroup),
                    (BuiltIn::NumWorkgroups, 0, Level::Workgroup),
                    (BuiltIn::LocalInvocationId, 1, Level::Invocation),
                    (BuiltIn::GlobalInvocationId, 2, Level::Invocation),
                    (BuiltIn::WorkgroupId, 1, Level::Workgroup),
                    (BuiltIn::WorkgroupId, 2, Level::Workgroup),
                    (BuiltIn::NumSubgroups, 0, Level::Workgroup),
                    (BuiltIn::SubgroupLocalInvocationId, 0, Level::Invocation),
                    (BuiltIn::NumWorkgroups, 2, Level::Workgroup),
                ]);
                let value = self.builder.builtin(builtin, component);
                self.define(value, Kind::Int, level);
            }
        }
    }
}
