//! Sub-word (8- and 16-bit) loads and stores: rows of bytes or halves where they are contiguous, else each lane's own.
//!
//! A load may read the whole aligned word around the part, since words are mapped as a whole. A store must not write
//! it: other invocations may write the other bytes.

use super::bounds::{self, LaneIndex, MaskedLanes, MemoryRegion, lane_index, uniform_part};
use super::offset::{Offset, OffsetTerm};
use super::pattern::AccessPattern;
use super::plan::AccessPlan;
use super::waterfall::for_each_region;
use crate::ir::{self, Op, Place, Width};
use crate::simd::builder::Builder;
use crate::simd::{Address, BoundedIndex, InstData, LaneAddress, Row, Type, Value, WideOp};
use crate::vectorize::state::Widen;

/// A load of less than a word.
pub(in crate::vectorize) fn load_subword(
    widen: &mut Widen<'_>,
    result: ir::Value,
    width: Width,
    place: &Place,
    plan: &AccessPlan,
) {
    let ty = Some(Type::V32);
    let load = |widen: &mut Widen<'_>, region| Some(load_subword_at(widen, region, plan, width));
    if let Some(value) = for_each_region(widen, place, plan, ty, load) {
        widen.define_as(result, value);
    }
}

fn load_subword_at(widen: &mut Widen<'_>, region: MemoryRegion, plan: &AccessPlan, width: Width) -> Value {
    let offset = &plan.offset;
    if offset.lanes.is_empty() {
        return load_uniform_subword(widen, region, offset, width);
    }
    if let Some(row) = subword_row(widen, region, plan, width) {
        return widen.builder.emit_value(InstData::LoadRow { row });
    }
    // The aligned words around the parts, shifted.
    let skip = uniform_part(widen, offset);
    let region = region.skip(&mut widen.builder, skip);
    let LaneIndex { index, scale, inside } = subword_lane_index(widen, &offset.lanes, region.len, width);
    let mask = widen.builder.and(widen.exec, inside);
    let bytes = widen.builder.times(index, u32::from(scale));
    let (base, phase) = aligned(&mut widen.builder, region.base);
    let phase = widen.builder.splat(phase);
    let bytes = widen.builder.pure(Op::IAdd, &[bytes, phase]);
    let two = widen.builder.constant(Type::V32, 2);
    let word = widen.builder.pure(Op::LShr, &[bytes, two]);
    let lanes = LaneAddress { base, index: word, scale: 4, disp: 0 };
    let word = widen.builder.emit_value(InstData::Gather { lanes, mask });
    if width == Width::Byte || offset.is_multiple_of(2) {
        return extract_subword(&mut widen.builder, word, bytes, width);
    }
    // A half may begin in the last byte of a word.
    let last = widen.builder.constant(Type::V32, 3);
    let phase = widen.builder.pure(Op::And, &[bytes, last]);
    let straddles = widen.builder.pure(Op::IEq, &[phase, last]);
    let mask = widen.builder.and(mask, straddles);
    let next = LaneAddress { disp: 4, ..lanes };
    let next = widen.builder.emit_value(InstData::Gather { lanes: next, mask });
    let eight = widen.builder.constant(Type::V32, 8);
    let high = widen.builder.pure(Op::Shl, &[next, eight]);
    let low = shifted(&mut widen.builder, word, bytes);
    let both = widen.builder.pure(Op::Or, &[low, high]);
    cut(&mut widen.builder, both, width)
}

/// Row of contiguous parts.
fn subword_row(widen: &mut Widen<'_>, region: MemoryRegion, plan: &AccessPlan, width: Width) -> Option<Row> {
    let AccessPattern::Contiguous { index } = *plan.pattern() else { return None };
    let skip = uniform_part(widen, &plan.offset);
    let region = region.skip(&mut widen.builder, skip);
    let index = widen.get(index);
    let limit = element_count(&mut widen.builder, region.len, width.bytes(), width);
    Some(Row { base: region.base, index, limit, width })
}

/// The number of elements of `stride` bytes, from the start on, the first part of which is within `len` bytes:
/// `s32`.
pub(in crate::vectorize) fn element_count(builder: &mut Builder, len: Value, stride: u32, width: Width) -> Value {
    if width == Width::Word {
        return bounds::element_count(builder, len, stride);
    }
    let len = subword_len(builder, len, width);
    bounds::element_count(builder, len, stride)
}

/// As `lane_index`, for parts.
fn subword_lane_index(widen: &mut Widen<'_>, lanes: &[OffsetTerm], len: Value, width: Width) -> LaneIndex {
    let len = subword_len(&mut widen.builder, len, width);
    lane_index(widen, lanes, len)
}

/// The length in which as many words are in bounds as parts in `len`: three or two bytes more, unless it has no
/// part.
fn subword_len(builder: &mut Builder, len: Value, width: Width) -> Value {
    let more = builder.s64(u64::from(4 - width.bytes()));
    let zero = builder.s64(0);
    let some = builder.s64(u64::from(width.bytes()) - 1);
    let any = builder.wide(WideOp::Lt, &[some, len]);
    let longer = builder.wide(WideOp::Add, &[len, more]);
    builder.select(any, longer, zero)
}

/// A uniform part: the aligned word around it, shifted.
fn load_uniform_subword(widen: &mut Widen<'_>, region: MemoryRegion, offset: &Offset, width: Width) -> Value {
    let sum = uniform_part(widen, offset);
    let less = widen.builder.s64(u64::from(width.bytes()) - 1);
    let limit = widen.builder.wide(WideOp::SubSat, &[region.len, less]);
    let place = widen.builder.wide(WideOp::Add, &[region.base, sum]);
    let (_, phase) = aligned(&mut widen.builder, place);
    let wide_phase = widen.builder.wide(WideOp::Extend, &[phase]);
    let base = widen.builder.wide(WideOp::SubSat, &[region.base, wide_phase]);
    let load = |base: Value, disp: i32| InstData::Load {
        ty: Type::S32,
        address: Address { base, index: Some(BoundedIndex { index: sum, limit }), scale: 1, disp },
    };
    let word = widen.builder.emit_value(load(base, 0));
    if width == Width::Byte || offset.is_multiple_of(2) {
        return extract_subword(&mut widen.builder, word, phase, width);
    }
    let last = widen.builder.s32(3);
    let straddles = widen.builder.pure(Op::IEq, &[phase, last]);
    let zero = widen.builder.s64(0);
    let limit = widen.builder.select(straddles, limit, zero);
    let address = Address { base, index: Some(BoundedIndex { index: sum, limit }), scale: 1, disp: 4 };
    let next = widen.builder.emit_value(InstData::Load { ty: Type::S32, address });
    let eight = widen.builder.s32(8);
    let high = widen.builder.pure(Op::Shl, &[next, eight]);
    let low = shifted(&mut widen.builder, word, phase);
    let both = widen.builder.pure(Op::Or, &[low, high]);
    cut(&mut widen.builder, both, width)
}

/// The aligned address before an address, and the bytes between (`s32`).
fn aligned(builder: &mut Builder, address: Value) -> (Value, Value) {
    let low = builder.wide(WideOp::Truncate, &[address]);
    let three = builder.s32(3);
    let phase = builder.pure(Op::And, &[low, three]);
    let wide = builder.wide(WideOp::Extend, &[phase]);
    (builder.wide(WideOp::SubSat, &[address, wide]), phase)
}

/// The sub-word value at a byte offset in its word.
fn extract_subword(builder: &mut Builder, word: Value, bytes: Value, width: Width) -> Value {
    let shifted = shifted(builder, word, bytes);
    cut(builder, shifted, width)
}

fn shifted(builder: &mut Builder, word: Value, bytes: Value) -> Value {
    let ty = builder.ty(bytes);
    let three = builder.constant(ty, 3);
    // Amounts of shifts count modulo 32.
    let bits = builder.pure(Op::Shl, &[bytes, three]);
    let thirty_one = builder.constant(ty, 31);
    let bits = builder.pure(Op::And, &[bits, thirty_one]);
    builder.pure(Op::LShr, &[word, bits])
}

fn cut(builder: &mut Builder, word: Value, width: Width) -> Value {
    let ty = builder.ty(word);
    let mask = builder.constant(ty, u64::from(width.mask()));
    builder.pure(Op::And, &[word, mask])
}

/// A store of less than a word.
pub(in crate::vectorize) fn store_subword(
    widen: &mut Widen<'_>,
    width: Width,
    place: &Place,
    plan: &AccessPlan,
    value: ir::Value,
) {
    let stored = widen.vector(value);
    if matches!(place, Place::Push { .. }) {
        return;
    }
    for_each_region(widen, place, plan, None, |widen, region| {
        store_subword_at(widen, region, plan, width, stored);
        None
    });
}

fn store_subword_at(widen: &mut Widen<'_>, region: MemoryRegion, plan: &AccessPlan, width: Width, value: Value) {
    if let Some(row) = subword_row(widen, region, plan, width) {
        let mask = widen.exec;
        widen.builder.emit(InstData::StoreRow { row, value, mask });
        return;
    }
    let MaskedLanes { lanes, mask } = subword_lanes(widen, region, &plan.offset, width);
    widen.builder.emit(InstData::Scatter { width, lanes, value, mask });
}

/// The address of each lane's part.
pub(in crate::vectorize) fn subword_lanes(
    widen: &mut Widen<'_>,
    region: MemoryRegion,
    offset: &Offset,
    width: Width,
) -> MaskedLanes {
    let skip = uniform_part(widen, offset);
    let region = region.skip(&mut widen.builder, skip);
    let (lanes, inside) = if offset.lanes.is_empty() {
        let less = widen.builder.s64(u64::from(width.bytes()) - 1);
        let inside = widen.builder.wide(WideOp::Lt, &[less, region.len]);
        let inside = widen.builder.splat(inside);
        let index = widen.builder.constant(Type::V32, 0);
        (LaneAddress { base: region.base, index, scale: 1, disp: 0 }, inside)
    } else {
        let LaneIndex { index, scale, inside } = subword_lane_index(widen, &offset.lanes, region.len, width);
        (LaneAddress { base: region.base, index, scale, disp: 0 }, inside)
    };
    MaskedLanes { lanes, mask: widen.builder.and(widen.exec, inside) }
}
