//! 16-bit floats: 32-bit operations, each rounded to 16 bits.
//!
//! Sums, products, quotients and square roots are correctly rounded that way, since 24 ≥ 2 * 11 + 2. Operations with an
//! error bound in Vulkan are more precise than required. `Fma` rounds to 32 bits first, which is slightly better than a
//! product and a sum.

use smallvec::SmallVec;

use super::super::super::scalar::Scalar;
use super::super::num::Num;
use super::result_type;
use crate::ir::{Builder, Op, Type, Value};

pub(super) fn pure(builder: &mut Builder, op: Op, args: &[Num]) -> Option<Num> {
    let words: SmallVec<[Value; 4]> = args.iter().map(|arg| arg.low).collect();
    let value = builder.pure(op, &words);
    let ty = result_type(op, Scalar::F16);
    let rounds = op.result() == Type::F32 && !is_exact(op);
    let value = if rounds { builder.pure(Op::RoundHalf, &[value]) } else { value };
    Some(Num::new(ty, value))
}

/// Whether a result for half operands is exactly a half.
fn is_exact(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        FNeg | FAbs
            | FSign
            | FMin
            | FMax
            | FClamp
            | RoundEven
            | Trunc
            | Floor
            | Ceil
            | Step
            | ModfFract
            | FrexpSignificand
    )
}
