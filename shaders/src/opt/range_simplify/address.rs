//! Moves constants and factors of an index into `element`, which does not wrap, where the index arithmetic does not
//! wrap either.

use super::ByRange;
use crate::ir::{InstData, Op, Type, Value};
use crate::opt::editor::{Editor, Replacement};

pub(super) fn rewrite(
    ranges: &ByRange,
    e: &mut Editor<'_>,
    base: Value,
    index: Value,
    stride: u32,
) -> Option<Replacement> {
    // `x * factor` must not wrap for any `x`; the shift amount is below 32.
    if let Some((x, addend)) = e.with_constant(index, Op::IAdd) {
        return constant_into_base(ranges, e, base, x, addend, stride);
    }
    let (x, factor) = match (e.with_constant(index, Op::Shl), e.with_constant(index, Op::IMul)) {
        (Some((x, amount)), _) => (x, 1u32.checked_shl(amount)?),
        (_, Some(product)) => product,
        _ => return None,
    };
    ranges.range(e, x).high.checked_mul(factor)?;
    Some(Replacement::Inst(InstData::Element { base, index: x, stride: stride.checked_mul(factor)? }))
}

/// `base + (x + addend) * stride`, where the addend may stand for a subtraction.
fn constant_into_base(
    ranges: &ByRange,
    e: &mut Editor<'_>,
    base: Value,
    x: Value,
    addend: u32,
    stride: u32,
) -> Option<Replacement> {
    let range = ranges.range(e, x);
    let less = addend.wrapping_neg();
    if range.high.checked_add(addend).is_some() {
        let distance = addend.checked_mul(stride)?;
        if let Some(start) = e.bits(base) {
            let base = e.constant(start.checked_add(distance)?);
            return Some(Replacement::Inst(InstData::Element { base, index: x, stride }));
        }
        let near = e.emit(InstData::Element { base, index: x, stride }, Type::I32);
        let index = e.constant(distance);
        return Some(Replacement::Inst(InstData::Element { base: near, index, stride: 1 }));
    }
    // `x - less` is never negative, and the constant base is at least `less * stride`.
    if range.low >= less {
        let start = e.bits(base)?.checked_sub(less.checked_mul(stride)?)?;
        let base = e.constant(start);
        return Some(Replacement::Inst(InstData::Element { base, index: x, stride }));
    }
    None
}
