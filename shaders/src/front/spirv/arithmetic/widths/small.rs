//! 8- and 16-bit integers: operations on zero-extended words, with the upper bits cleared where needed.

use smallvec::SmallVec;

use super::super::super::scalar::Scalar;
use super::super::num::Num;
use super::{amount, cut, result_type, signed};
use crate::ir::{Builder, Op, Value};

/// How a 32-bit operation implements the operation on a smaller integer.
enum Way {
    /// Unchanged: the upper bits of the result are zero.
    Same,
    /// The upper bits of the result are unspecified and must be cleared.
    Cut,
    /// Like `Cut`, on sign-extended operands.
    SignedCut,
    /// On sign-extended operands; the result is a bool.
    Signed,
}

fn way(op: Op) -> Option<Way> {
    use Op::*;
    Some(match op {
        And | Or | Xor | UDiv | UMod | UMin | UMax | UClamp | IEq | INe | ULt | ULe | BitCount | UBorrow => Way::Same,
        IAdd | ISub | IMul | INeg | Not | FindLsb | FindUMsb => Way::Cut,
        SDiv | SRem | SMod | SMin | SMax | SClamp | SAbs | SSign | FindSMsb => Way::SignedCut,
        SLt | SLe => Way::Signed,
        _ => return None,
    })
}

pub(super) fn pure(builder: &mut Builder, op: Op, args: &[Num]) -> Option<Num> {
    let ty = args[0].ty;
    let value = match way(op) {
        None => special(builder, op, args)?,
        Some(way) => {
            let with_sign = matches!(way, Way::SignedCut | Way::Signed);
            let words: SmallVec<[Value; 4]> =
                args.iter().map(|&arg| if with_sign { signed(builder, arg) } else { arg.low }).collect();
            let value = builder.pure(op, &words);
            match way {
                Way::Same | Way::Signed => value,
                Way::Cut | Way::SignedCut => cut(builder, value, ty),
            }
        }
    };
    Some(Num::new(result_type(op, ty), value))
}

/// Operations that depend on the number of bits.
fn special(builder: &mut Builder, op: Op, args: &[Num]) -> Option<Value> {
    let ty = args[0].ty;
    let bits = builder.constant(ty.bits());
    Some(match (op, args) {
        (Op::Shl | Op::LShr, &[a, by]) => {
            let by = amount(builder, by, ty.bits());
            let moved = builder.pure(op, &[a.low, by]);
            cut(builder, moved, ty)
        }
        (Op::AShr, &[a, by]) => {
            let by = amount(builder, by, ty.bits());
            let a = signed(builder, a);
            let moved = builder.pure(op, &[a, by]);
            cut(builder, moved, ty)
        }
        (Op::UMulHigh, &[a, b]) => {
            let product = builder.pure(Op::IMul, &[a.low, b.low]);
            builder.pure(Op::LShr, &[product, bits])
        }
        (Op::SMulHigh, &[a, b]) => {
            let [a, b] = [signed(builder, a), signed(builder, b)];
            let product = builder.pure(Op::IMul, &[a, b]);
            let high = builder.pure(Op::LShr, &[product, bits]);
            cut(builder, high, ty)
        }
        (Op::UCarry, &[a, b]) => {
            let sum = builder.pure(Op::IAdd, &[a.low, b.low]);
            builder.pure(Op::LShr, &[sum, bits])
        }
        (Op::BitReverse, &[a]) => {
            let reversed = builder.pure(op, &[a.low]);
            let above = builder.constant(32 - ty.bits());
            builder.pure(Op::LShr, &[reversed, above])
        }
        (Op::BitInsert, &[base, insert, offset, count]) => {
            let word = builder.pure(op, &[base.low, insert.low, offset.low, count.low]);
            cut(builder, word, ty)
        }
        (Op::BitUExtract, &[base, offset, count]) => builder.pure(op, &[base.low, offset.low, count.low]),
        (Op::BitSExtract, &[base, offset, count]) => {
            let base = signed(builder, base);
            let word = builder.pure(op, &[base, offset.low, count.low]);
            cut(builder, word, ty)
        }
        _ => return None,
    })
    .filter(|_| ty != Scalar::I64)
}
