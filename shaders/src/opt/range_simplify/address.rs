//! Indices whose arithmetic does not wrap around: `element` may do it instead, which is exact.

use super::ByRange;
use crate::ir::{InstData, Op, Type, Value};
use crate::opt::editor::{Editor, New};

pub(super) fn rewrite(by: &ByRange, e: &mut Editor<'_>, base: Value, index: Value, stride: u32) -> Option<New> {
    if let Some((x, more)) = e.with_constant(index, Op::IAdd) {
        return moved(by, e, base, x, more, stride);
    }
    let (x, factor) = match (e.with_constant(index, Op::Shl), e.with_constant(index, Op::IMul)) {
        (Some((x, by)), _) => (x, 1u32.checked_shl(by)?),
        (_, Some(product)) => product,
        _ => return None,
    };
    by.range(e, x).high.checked_mul(factor)?;
    Some(New::Inst(InstData::Element { base, index: x, stride: stride.checked_mul(factor)? }))
}

/// `base + (x + more) * stride`
fn moved(by: &ByRange, e: &mut Editor<'_>, base: Value, x: Value, more: u32, stride: u32) -> Option<New> {
    let range = by.range(e, x);
    let less = more.wrapping_neg();
    if range.high.checked_add(more).is_some() {
        let distance = more.checked_mul(stride)?;
        if let Some(start) = e.bits(base) {
            let base = e.constant(start.checked_add(distance)?);
            return Some(New::Inst(InstData::Element { base, index: x, stride }));
        }
        let near = e.emit(InstData::Element { base, index: x, stride }, Type::I32);
        let index = e.constant(distance);
        return Some(New::Inst(InstData::Element { base: near, index, stride: 1 }));
    }
    // A difference that does not go below 0, behind a constant that is long enough.
    if range.low >= less {
        let start = e.bits(base)?.checked_sub(less.checked_mul(stride)?)?;
        let base = e.constant(start);
        return Some(New::Inst(InstData::Element { base, index: x, stride }));
    }
    None
}
