//! Waterfall loops: an access whose buffer differs between lanes is done for one buffer after another.

use super::bounds::MemoryRegion;
use super::offset::Offset;
use super::plan::AccessPlan;
use crate::analysis::Shape;
use crate::ir::{self, Op, Place};
use crate::simd::dominance::LoopSpan;
use crate::simd::ssa::Unwritten;
use crate::simd::{InstData, Type, Value};
use crate::vectorize::state::Widen;

/// Runs `access` with the memory of a place: once if the lanes agree about the buffer, else for one buffer after
/// another. The results are of type `ty`.
pub(in crate::vectorize) fn for_each_region(
    widen: &mut Widen<'_>,
    place: &Place,
    plan: &AccessPlan,
    ty: Option<Type>,
    mut access: impl FnMut(&mut Widen<'_>, MemoryRegion) -> Option<Value>,
) -> Option<Value> {
    let Some(buffer) = divergent_buffer(widen, place) else {
        let region = MemoryRegion::of_place(widen, place);
        return access(widen, region);
    };
    prepare_terms(widen, &plan.offset);
    for_each_buffer(widen, buffer, ty, |widen, number, _| {
        let region = MemoryRegion::of_descriptor(&mut widen.builder, number);
        let value = access(widen, region)?;
        Some(widen.builder.as_vector(value))
    })
}

/// The buffer of a place, if it differs between lanes.
pub(in crate::vectorize) fn divergent_buffer(widen: &Widen<'_>, place: &Place) -> Option<ir::Value> {
    match *place {
        Place::Buffer { buffer, .. } => Some(buffer).filter(|&buffer| widen.shape(buffer) != Shape::Uniform),
        _ => None,
    }
}

/// Waterfall loop over a buffer operand that differs between lanes. Each iteration takes the buffer of the first
/// remaining lane and runs `each` with the descriptor's number and the mask of the lanes with that buffer. The
/// results of type `ty` are merged by mask.
pub(in crate::vectorize) fn for_each_buffer(
    widen: &mut Widen<'_>,
    buffer: ir::Value,
    ty: Option<Type>,
    mut each: impl FnMut(&mut Widen<'_>, Value, Value) -> Option<Value>,
) -> Option<Value> {
    let numbers = widen.vector(buffer);
    let rest = widen.builder.variables.declare(Type::Mask, Unwritten::Empty);
    let found = ty.map(|ty| widen.builder.variables.declare(ty, Unwritten::Undef));
    let [top, body, end] = std::array::from_fn(|_| widen.builder.create_block());
    widen.builder.variables.write(widen.builder.current(), rest, widen.exec);
    if let (Some(found), Some(ty)) = (found, ty) {
        let undef = widen.builder.emit_one(InstData::Undef { ty });
        widen.builder.variables.write(widen.builder.current(), found, undef);
    }
    // The callers have read the values that the body uses in this block, which dominates the body.
    widen.builder.jump(top);
    widen.builder.switch_to(top);
    widen.builder.variables.dominance.open_loop(top, LoopSpan::Within);
    widen.record_exec();
    let left = widen.builder.read(rest, top);
    let any = widen.builder.emit_value(InstData::Any { mask: left });
    widen.builder.branch(any, body, end);
    widen.builder.switch_to(body);
    widen.builder.seal(body);
    widen.record_exec();
    let lane = widen.builder.emit_value(InstData::FirstLane { mask: left });
    let number = widen.builder.emit_value(InstData::Extract { vector: numbers, lane });
    let same = widen.builder.splat(number);
    let same = widen.builder.pure(Op::IEq, &[numbers, same]);
    let lanes = widen.builder.and(left, same);
    let exec = std::mem::replace(&mut widen.exec, lanes);
    let result = each(widen, number, lanes);
    widen.exec = exec;
    let last = widen.builder.current();
    if let (Some(found), Some(result)) = (found, result) {
        let before = widen.builder.read(found, last);
        let after = widen.builder.select(lanes, result, before);
        widen.builder.variables.write(last, found, after);
    }
    let after = widen.builder.and_not(left, same);
    widen.builder.variables.write(last, rest, after);
    widen.builder.jump(top);
    widen.builder.seal(top);
    widen.builder.variables.dominance.close_loop();
    widen.builder.switch_to(end);
    widen.builder.seal(end);
    widen.record_exec();
    found.map(|found| widen.builder.read(found, end))
}

/// Reads the values of an offset's terms in the block before a waterfall loop that uses them.
pub(in crate::vectorize) fn prepare_terms(widen: &mut Widen<'_>, offset: &Offset) {
    for term in offset.terms() {
        widen.get(term.value);
    }
}
