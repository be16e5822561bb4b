//! Byte offsets. `element` saturates at `u32::MAX`, so its additions may be done in any order: once one saturates, the
//! result stays saturated.

use crate::ir::{InstData, Type, Value, element};
use crate::opt::editor::{Editor, Replacement, Replacement::Existing};

pub(super) fn rewrite(e: &mut Editor<'_>, base: Value, index: Value, stride: u32) -> Option<Replacement> {
    if stride == 0 || e.bits(index) == Some(0) {
        return Some(Existing(base));
    }
    if stride == 1 && e.bits(base) == Some(0) {
        return Some(Existing(index));
    }
    match (e.bits(base), e.bits(index)) {
        (Some(base), Some(index)) => e.becomes_constant(element(base, index, stride)),
        (None, Some(index)) => at_distance(e, base, index, stride),
        (_, None) => constant_last(e, base, index, stride),
    }
}

/// `base + distance`: adds constants together, also with a constant base of an inner `element`.
fn at_distance(e: &mut Editor<'_>, base: Value, index: u32, stride: u32) -> Option<Replacement> {
    let distance = index.checked_mul(stride);
    let Some(distance) = distance else { return e.becomes_constant(u32::MAX) };
    let &InstData::Element { base: inner, index: steps, stride: width } = e.definition(base)? else {
        return (stride != 1).then(|| shifted(e, base, distance));
    };
    if let Some(start) = e.bits(inner) {
        let Some(start) = start.checked_add(distance) else { return e.becomes_constant(u32::MAX) };
        let base = e.constant(start);
        return Some(Replacement::Inst(InstData::Element { base, index: steps, stride: width }));
    }
    if let (Some(steps), 1) = (e.bits(steps), width) {
        let Some(distance) = distance.checked_add(steps) else { return e.becomes_constant(u32::MAX) };
        return Some(shifted(e, inner, distance));
    }
    (stride != 1).then(|| shifted(e, base, distance))
}

/// `base + distance * 1`
fn shifted(e: &mut Editor<'_>, base: Value, distance: u32) -> Replacement {
    Replacement::Inst(InstData::Element { base, index: e.constant(distance), stride: 1 })
}

/// Moves a constant distance in the base outwards, so that addresses that differ by a constant share the rest.
fn constant_last(e: &mut Editor<'_>, base: Value, index: Value, stride: u32) -> Option<Replacement> {
    let &InstData::Element { base: inner, index: distance, stride: 1 } = e.definition(base)? else { return None };
    e.bits(distance)?;
    let near = e.emit(InstData::Element { base: inner, index, stride }, Type::I32);
    Some(Replacement::Inst(InstData::Element { base: near, index: distance, stride: 1 }))
}
