//! Small integer operations in terms of simpler ones.

use super::emit::Emit;
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    Some(match (op, args) {
        (Op::SSign, &[a]) => {
            let at_least = e.smax(a, -1i32);
            e.smin(at_least, 1i32)
        }
        (Op::UCarry, &[a, b]) => {
            let sum = e.iadd(a, b);
            let carry = e.ult(sum, a);
            e.bool_to_int(carry)
        }
        (Op::UBorrow, &[a, b]) => {
            let borrow = e.ult(a, b);
            e.bool_to_int(borrow)
        }
        (Op::UClamp, &[a, low, high]) => {
            let at_least = e.umax(a, low);
            e.umin(at_least, high)
        }
        (Op::SClamp, &[a, low, high]) => {
            let at_least = e.smax(a, low);
            e.smin(at_least, high)
        }
        _ => return None,
    })
}
