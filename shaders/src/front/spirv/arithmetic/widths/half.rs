//! Floats of 16 bits: operations on 32, rounded after each.
//!
//! Sums, products, quotients and roots of halves are rounded right that way, as 24 bits are more than twice 11 and two.
//! What Vulkan bounds by an error comes out better than it asks for. `Fma` is rounded as 32 bits first, which is a bit better
//! than a product and a sum.

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

/// Whether a half comes out of halves.
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
