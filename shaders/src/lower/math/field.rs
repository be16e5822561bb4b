//! Bit fields and bit positions. With constant offset and count no checks remain.

use super::emit::Emit;
use crate::ir::{Op, Value};

pub(super) fn expand(e: &mut Emit<'_>, op: Op, args: &[Value]) -> Option<Value> {
    Some(match (op, args) {
        (Op::BitInsert, &[base, insert, offset, count]) => insert_bits(e, base, insert, offset, count),
        (Op::BitUExtract, &[base, offset, count]) => {
            let shifted = e.lshr(base, offset);
            let shifted = within_word(e, offset, shifted);
            let mask = low_bits(e, count);
            e.and(shifted, mask)
        }
        (Op::BitSExtract, &[base, offset, count]) => {
            let offset = e.umin(offset, 31u32);
            let shifted = e.ashr(base, offset);
            let count = e.umin(count, 32u32);
            let unused = e.isub(32u32, count);
            let up = e.shl(shifted, unused);
            let down = e.ashr(up, unused);
            let empty = e.ieq(count, 0u32);
            e.select(empty, 0u32, down)
        }
        (Op::BitReverse, &[a]) => reverse(e, a),
        (Op::FindLsb, &[a]) => {
            let negated = e.ineg(a);
            let lowest = e.and(a, negated);
            e.find_umsb(lowest)
        }
        (Op::FindSMsb, &[a]) => {
            let sign = e.ashr(a, 31u32);
            let differing = e.xor(a, sign);
            e.find_umsb(differing)
        }
        _ => return None,
    })
}

/// Mask of the `count` low bits; all bits from 32 on.
fn low_bits(e: &mut Emit<'_>, count: Value) -> Value {
    let above = e.shl(u32::MAX, count);
    let below = e.not(above);
    let some = e.ult(count, 32u32);
    e.select(some, below, u32::MAX)
}

/// `shifted` by `offset`, or 0 if that is at least the word's width: shifts count modulo 32.
fn within_word(e: &mut Emit<'_>, offset: Value, shifted: Value) -> Value {
    let within = e.ult(offset, 32u32);
    e.select(within, shifted, 0u32)
}

fn insert_bits(e: &mut Emit<'_>, base: Value, insert: Value, offset: Value, count: Value) -> Value {
    let mask = low_bits(e, count);
    let mask = e.shl(mask, offset);
    let mask = within_word(e, offset, mask);
    let insert = e.shl(insert, offset);
    let differing = e.xor(base, insert);
    let differing = e.and(differing, mask);
    e.xor(base, differing)
}

/// Swaps adjacent bits, then pairs, up to halves.
fn reverse(e: &mut Emit<'_>, a: Value) -> Value {
    let mut word = a;
    for (distance, mask) in [(1u32, 0x5555_5555u32), (2, 0x3333_3333), (4, 0x0f0f_0f0f), (8, 0x00ff_00ff)] {
        let right = e.lshr(word, distance);
        let right = e.and(right, mask);
        let left = e.and(word, mask);
        let left = e.shl(left, distance);
        word = e.or(left, right);
    }
    let [left, right] = [e.shl(word, 16u32), e.lshr(word, 16u32)];
    e.or(left, right)
}
