//! Bit-field operations at constant positions become masks and shifts.

use crate::ir::{Op, Value};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, op: Op, args: &[Value]) -> Option<Replacement> {
    match (op, args) {
        (Op::BitUExtract, &[base, offset, count]) => {
            let (offset, count) = (e.bits(offset)?, e.bits(count)?);
            if offset >= 32 || count == 0 {
                return e.becomes_constant(0u32);
            }
            let shifted = e.pure_with(Op::LShr, base, offset);
            e.becomes_with(Op::And, shifted, low_bits(count))
        }
        (Op::BitSExtract, &[base, offset, count]) => {
            let (offset, count) = (e.bits(offset)?.min(31), e.bits(count)?.min(32));
            if count == 0 {
                return e.becomes_constant(0u32);
            }
            if offset + count >= 32 {
                return e.becomes_with(Op::AShr, base, offset);
            }
            let up = e.pure_with(Op::Shl, base, 32 - offset - count);
            e.becomes_with(Op::AShr, up, 32 - count)
        }
        (Op::BitInsert, &[base, insert, offset, count]) => {
            let (offset, count) = (e.bits(offset)?, e.bits(count)?);
            let mask = low_bits(count).checked_shl(offset).unwrap_or(0);
            match mask {
                0 => return Some(Existing(base)),
                u32::MAX => return Some(Existing(insert)),
                _ => {}
            }
            let kept = e.pure_with(Op::And, base, !mask);
            let moved = e.pure_with(Op::Shl, insert, offset);
            let moved = e.pure_with(Op::And, moved, mask);
            e.becomes(Op::Or, [kept, moved])
        }
        (Op::BitReverse, &[a]) => e.args(a, Op::BitReverse).map(|[x]| Existing(x)),
        _ => None,
    }
}

/// A mask of the `count` low bits; all ones from 32 on.
fn low_bits(count: u32) -> u32 {
    1u32.checked_shl(count).map_or(u32::MAX, |bit| bit - 1)
}
