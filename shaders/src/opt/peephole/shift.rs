//! Shifts. Shift amounts are taken modulo 32.

use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    let (Op::Shl | Op::LShr | Op::AShr, &[a, by]) = (op, args) else { return None };
    if e.bits(a) == Some(0) {
        return Some(Existing(a));
    }
    let Some(amount) = e.bits(by) else {
        // Shift instructions use the low five bits of the amount only.
        let (x, mask) = e.with_constant(by, Op::And)?;
        return if mask & 31 == 31 { e.becomes(op, [a, x]) } else { None };
    };
    match amount {
        0 => return Some(Existing(a)),
        32.. => return e.becomes_with(op, a, amount % 32),
        _ => {}
    }
    if let Some((x, first)) = e.with_constant(a, op) {
        return combine(e, op, x, first % 32 + amount);
    }
    match op {
        Op::Shl => left(e, a, amount),
        Op::LShr => {
            let (x, left) = e.with_constant(a, Op::Shl)?;
            if left == amount { e.becomes_with(Op::And, x, u32::MAX >> amount) } else { None }
        }
        _ => None,
    }
}

/// Two shifts in the same direction, by less than 64 in total.
fn combine(e: &mut Editor<'_>, op: Op, x: Value, amount: u32) -> Option<Replacement> {
    match op {
        _ if amount < 32 => e.becomes_with(op, x, amount),
        Op::AShr => e.becomes_with(op, x, 31),
        _ => e.becomes_constant(0u32),
    }
}

fn left(e: &mut Editor<'_>, a: Value, amount: u32) -> Option<Replacement> {
    if let Some((x, factor)) = e.with_constant(a, Op::IMul) {
        return e.becomes_with(Op::IMul, x, factor << amount);
    }
    for op in [Op::LShr, Op::AShr] {
        if let Some((x, right)) = e.with_constant(a, op)
            && right == amount
        {
            return e.becomes_with(Op::And, x, u32::MAX << amount);
        }
    }
    None
}
