//! Implements the IR's 32-bit operations at other widths, one file per representation.

mod double;
mod half;
mod long;
mod small;

use super::super::scalar::Scalar;
use super::num::Num;
use crate::ir::{Builder, Op, Type, Value};

pub(super) use double::Doubles;
pub(super) use long::Longs;

/// Applies an operation at the width of its first operand that is not a bool.
///
/// # Errors
///
/// The operation does not exist at that width.
pub(in super::super) fn pure(builder: &mut Builder, op: Op, args: &[Num]) -> Result<Num, String> {
    let ty = args[0].ty;
    match ty {
        Scalar::Bool | Scalar::I32 | Scalar::F32 => {
            let args: smallvec::SmallVec<[Value; 4]> = args.iter().map(|arg| arg.low).collect();
            let value = builder.pure(op, &args);
            Some(Num::new(Scalar::of(op.result()), value))
        }
        Scalar::I8 | Scalar::I16 => small::pure(builder, op, args),
        Scalar::F16 => half::pure(builder, op, args),
        Scalar::I64 => long::pure(builder, op, args),
        Scalar::F64 => double::pure(builder, op, args),
        Scalar::Handle | Scalar::Buffer => None,
    }
    .ok_or_else(|| format!("the operation does not exist for {ty}"))
}

/// `condition ? then : otherwise`.
pub(in super::super) fn select(builder: &mut Builder, condition: Value, then: Num, otherwise: Num) -> Num {
    let low = builder.select(condition, then.low, otherwise.low);
    if then.ty.words() == 1 {
        return Num::new(then.ty, low);
    }
    let high = builder.select(condition, then.high, otherwise.high);
    Num::wide(then.ty, [low, high])
}

/// The nearest number of a float type.
pub(super) fn float(builder: &mut Builder, ty: Scalar, value: f64) -> Num {
    match ty {
        Scalar::F64 => {
            let words = words(builder, value.to_bits());
            Num::wide(ty, words)
        }
        Scalar::F16 => {
            let value = builder.constant(::half::f16::from_f64_const(value).to_f32_const());
            Num::new(ty, value)
        }
        _ => {
            let value = builder.constant(value as f32);
            Num::new(Scalar::F32, value)
        }
    }
}

/// Both words of a constant.
pub(super) fn words(builder: &mut Builder, bits: u64) -> [Value; 2] {
    [builder.constant(bits as u32), builder.constant((bits >> 32) as u32)]
}

/// An integer at another width, zero-extended.
pub(super) fn resized(builder: &mut Builder, a: Num, ty: Scalar) -> Num {
    match ty {
        Scalar::I64 if a.ty != Scalar::I64 => {
            let zero = builder.constant(0u32);
            Num::wide(ty, [a.low, zero])
        }
        Scalar::I64 => a,
        _ => {
            let value = if ty.bits() < a.ty.bits() { cut(builder, a.low, ty) } else { a.low };
            Num::new(ty, value)
        }
    }
}

/// An integer at another width, sign-extended.
pub(super) fn sign_resized(builder: &mut Builder, a: Num, ty: Scalar) -> Num {
    if ty.bits() <= a.ty.bits() {
        return resized(builder, a, ty);
    }
    let low = signed(builder, a);
    match ty {
        Scalar::I64 => {
            let last = builder.constant(31u32);
            let high = builder.pure(Op::AShr, &[low, last]);
            Num::wide(ty, [low, high])
        }
        _ => {
            let value = cut(builder, low, ty);
            Num::new(ty, value)
        }
    }
}

/// The low bits of a word, as many as the type has.
pub(in super::super) fn cut(builder: &mut Builder, value: Value, ty: Scalar) -> Value {
    match ty {
        Scalar::I8 | Scalar::I16 => {
            let mask = builder.constant(u32::MAX >> (32 - ty.bits()));
            builder.pure(Op::And, &[value, mask])
        }
        _ => value,
    }
}

/// A small integer, sign-extended to a word.
pub(in super::super) fn signed(builder: &mut Builder, a: Num) -> Value {
    match a.ty {
        Scalar::I8 | Scalar::I16 => {
            let above = builder.constant(32 - a.ty.bits());
            let moved = builder.pure(Op::Shl, &[a.low, above]);
            builder.pure(Op::AShr, &[moved, above])
        }
        _ => a.low,
    }
}

/// An exponent of any width as a 32-bit one, clamped: the extreme exponents scale every float to zero or infinity.
pub(super) fn exponent(builder: &mut Builder, a: Num) -> Num {
    let low = signed(builder, a);
    let value = match a.ty {
        Scalar::I64 => {
            let (last, max) = (builder.constant(31_u32), builder.constant(i32::MAX.cast_unsigned()));
            let above = builder.pure(Op::AShr, &[a.high, last]);
            let extreme = builder.pure(Op::Xor, &[above, max]);
            let sign = builder.pure(Op::AShr, &[low, last]);
            let fits = builder.pure(Op::IEq, &[a.high, sign]);
            builder.select(fits, low, extreme)
        }
        _ => low,
    };
    Num::new(Scalar::I32, value)
}

/// The low word of a bit count or shift amount.
fn amount(builder: &mut Builder, a: Num, modulo: u32) -> Value {
    let last = builder.constant(modulo - 1);
    builder.pure(Op::And, &[a.low, last])
}

/// Result type of an operation for operands of that type.
fn result_type(op: Op, ty: Scalar) -> Scalar {
    match op.result() {
        Type::Bool => Scalar::Bool,
        _ if op == Op::FrexpExponent => Scalar::I32,
        _ => ty,
    }
}
