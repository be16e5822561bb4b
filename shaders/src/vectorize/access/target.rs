//! Addresses of accesses without shuffles: one word for all lanes, a row, or a word for each lane, and their bounds.

use super::bounds::{LaneIndex, MaskedLanes, MemoryRegion, element_count, lane_index, uniform_part};
use super::in_bounds::{TermRanges, bytes_before_row};
use super::offset::{Offset, OffsetTerm};
use super::pattern::AccessPattern;
use super::plan::AccessPlan;
use crate::analysis::Shape;
use crate::ir::{self, Op, Width};
use crate::simd::builder::Builder;
use crate::simd::{Address, BoundedIndex, InstData, LANES, LaneAddress, Row, Type, Value, WideOp};
use crate::vectorize::state::Widen;

/// Where an access goes, once its lanes are known to agree about the buffer.
#[derive(Clone, Debug)]
pub(in crate::vectorize) enum AccessTarget {
    /// One word for all lanes.
    Word(Address),
    /// Contiguous words.
    Row(Row),
    /// A word for each lane that is active and in bounds.
    Lanes(MaskedLanes),
}

impl AccessTarget {
    /// How lanes access a region: as one word, a row, or a word for each.
    pub(in crate::vectorize) fn new(widen: &mut Widen<'_>, region: MemoryRegion, plan: &AccessPlan) -> Self {
        let offset = &plan.offset;
        let whole = region.len;
        match *plan.pattern() {
            AccessPattern::Uniform => Self::Word(uniform_address(widen, region, plan)),
            AccessPattern::Contiguous { index } => {
                let row = row_in_bounds(widen, region, offset, index);
                if let Some(row) = row.or_else(|| row_from_start(widen, region, offset, index)) {
                    return Self::Row(row);
                }
                let skip = uniform_part(widen, offset);
                let region = region.skip(&mut widen.builder, skip);
                let index = widen.get(index);
                let limit = element_count(&mut widen.builder, region.len, 4);
                Self::Row(Row { base: region.base, index, limit, width: Width::Word })
            }
            _ => {
                let skip = uniform_part(widen, offset);
                let region = region.skip(&mut widen.builder, skip);
                let known = widen.builder.kernel.constant(whole).is_some_and(|len| is_inside(widen, len, offset));
                let LaneIndex { index, scale, inside } = lane_index(widen, &offset.lanes, region.len);
                let mask = if known { widen.exec } else { widen.builder.and(widen.exec, inside) };
                Self::Lanes(MaskedLanes { lanes: LaneAddress { base: region.base, index, scale, disp: 0 }, mask })
            }
        }
    }

    /// How lanes access their private memory: word `w` of lane `l` is word `16 * w + l` of the subgroup's memory.
    ///
    /// Where it is not known how an offset was computed, as after a loop that lanes left in different iterations, it
    /// may be any number: lanes whose offset is not a multiple of 4 access nothing.
    pub(in crate::vectorize) fn private(widen: &mut Widen<'_>, variable: ir::Variable, offset: &Offset) -> Self {
        let words = widen.kernel.variables[variable].bytes / 4;
        let base = widen.private_base();
        let skip = widen.builder.s64(u64::from(widen.plans.layout.variable_offsets[variable] * LANES));
        let base = widen.builder.wide(WideOp::Add, &[base, skip]);
        if offset.lanes.is_empty() && offset.is_aligned() {
            // The index of the word, at most the end of the variable.
            let bytes = uniform_part(widen, offset);
            let two = widen.builder.s64(2);
            let word = widen.builder.wide(WideOp::Shr, &[bytes, two]);
            let word = if is_inside(widen, u64::from(words) * 4, offset) {
                word
            } else {
                let end = widen.builder.s64(u64::from(words));
                widen.builder.wide(WideOp::Min, &[word, end])
            };
            let word = widen.builder.wide(WideOp::Truncate, &[word]);
            let sixteen = widen.builder.s32(LANES);
            let index = widen.builder.pure(Op::IMul, &[word, sixteen]);
            let limit = widen.builder.s32(words * LANES);
            return Self::Row(Row { base, index, limit, width: Width::Word });
        }
        let skip = uniform_part(widen, offset);
        let len = widen.builder.s64(u64::from(words) * 4);
        let left = widen.builder.wide(WideOp::SubSat, &[len, skip]);
        let LaneIndex { index, scale, inside } = lane_index(widen, &offset.lanes, left);
        if !offset.is_aligned() {
            let bytes = widen.builder.times(index, u32::from(scale));
            let skip = widen.builder.wide(WideOp::Min, &[skip, len]);
            let skip = widen.builder.wide(WideOp::Truncate, &[skip]);
            let skip = widen.builder.splat(skip);
            let bytes = widen.builder.pure(Op::IAdd, &[bytes, skip]);
            let mask = widen.builder.and(widen.exec, inside);
            let mask = widen.aligned_bytes(bytes, mask, 4);
            let two = widen.builder.constant(Type::V32, 2);
            let word = widen.builder.pure(Op::LShr, &[bytes, two]);
            let index = private_index(widen, word);
            return Self::Lanes(MaskedLanes { lanes: LaneAddress { base, index, scale: 4, disp: 0 }, mask });
        }
        let word = widen.builder.times(index, u32::from(scale) / 4);
        let index = private_index(widen, word);
        let bytes = widen.builder.s64(u64::from(LANES));
        let skip = widen.builder.wide(WideOp::Mul, &[skip, bytes]);
        let base = widen.builder.wide(WideOp::Add, &[base, skip]);
        let mask = widen.builder.and(widen.exec, inside);
        Self::Lanes(MaskedLanes { lanes: LaneAddress { base, index, scale: 4, disp: 0 }, mask })
    }

    /// Loads the words; the result is a scalar if the target is one word and the type has scalars.
    pub(in crate::vectorize) fn load(self, builder: &mut Builder, ty: ir::Type) -> Value {
        let ty = if ty == ir::Type::I32 { Type::S32 } else { Type::V32 };
        match self {
            Self::Word(address) => builder.emit_value(InstData::Load { ty, address }),
            Self::Row(row) => builder.emit_value(InstData::LoadRow { row }),
            Self::Lanes(MaskedLanes { lanes, mask }) => builder.emit_value(InstData::Gather { lanes, mask }),
        }
    }

    /// Stores a SIMD value with the lanes of a mask.
    pub(in crate::vectorize) fn store(self, builder: &mut Builder, value: Value, mask: Value) {
        match self {
            Self::Word(address) => builder.emit(InstData::Store { width: Width::Word, address, value, mask }),
            Self::Row(row) => {
                let value = builder.as_vector(value);
                builder.emit(InstData::StoreRow { row, value, mask })
            }
            Self::Lanes(MaskedLanes { lanes, mask: own }) => {
                let value = builder.as_vector(value);
                builder.emit(InstData::Scatter { width: Width::Word, lanes, value, mask: own })
            }
        };
    }

    /// Stores a scalar value of the kernel, in the form that the target needs.
    pub(super) fn store_value(self, widen: &mut Widen<'_>, value: ir::Value) {
        let value = match self {
            Self::Word(_) if widen.shape(value) == Shape::Uniform => widen.get(value),
            _ => widen.vector(value),
        };
        self.store(&mut widen.builder, value, widen.exec);
    }
}

/// A row in memory of known length, as workgroup memory has, if it is in bounds whatever the uniform terms are: its
/// limit is a constant.
fn row_in_bounds(widen: &mut Widen<'_>, region: MemoryRegion, offset: &Offset, lanes: ir::Value) -> Option<Row> {
    let len = widen.builder.kernel.constant(region.len)?;
    if i32::try_from(offset.constant).is_err() {
        return None;
    }
    let words = term_ranges(widen)?.words_after_uniform(len, offset, lanes)?;
    let steps = Offset { constant: 0, ..offset.clone() };
    let (start, before) = widen.builder.constant_apart(region.base);
    let steps = uniform_part(widen, &steps);
    let base = widen.builder.wide(WideOp::Add, &[start, steps]);
    let constant = widen.builder.s64(before + offset.constant);
    let base = widen.builder.wide(WideOp::Add, &[base, constant]);
    let (index, limit) = (widen.get(lanes), widen.builder.s32(u32::try_from(words).ok()?));
    Some(Row { base, index, limit, width: Width::Word })
}

/// A row counted from the start of the region, as in an image: its limit is the same for all rows of the image.
fn row_from_start(widen: &mut Widen<'_>, region: MemoryRegion, offset: &Offset, lanes: ir::Value) -> Option<Row> {
    let before = bytes_before_row(widen.shapes(), offset, lanes)?;
    let (bytes, two) = (widen.scalar(before), widen.builder.s32(2));
    let before = widen.builder.pure(Op::LShr, &[bytes, two]);
    let first = widen.get(lanes);
    let index = widen.builder.pure(Op::IAdd, &[before, first]);
    let limit = element_count(&mut widen.builder, region.len, 4);
    Some(Row { base: region.base, index, limit, width: Width::Word })
}

fn term_ranges<'a>(widen: &Widen<'a>) -> Option<TermRanges<'a>> {
    let (plans, block) = (widen.plans, widen.block);
    plans.ranges.as_ref().map(|ranges| TermRanges { ranges, block })
}

/// The index of each lane's word in memory that is interleaved by lane.
fn private_index(widen: &mut Widen<'_>, word: Value) -> Value {
    let row = widen.builder.times(word, LANES);
    let lanes = widen.builder.lane_ids();
    widen.builder.pure(Op::IAdd, &[row, lanes])
}

/// Whether a word at the offset is inside of memory of known length, in all lanes.
fn is_inside(widen: &Widen<'_>, len: u64, offset: &Offset) -> bool {
    term_ranges(widen).is_some_and(|terms| terms.is_inside(len, offset))
}

/// The address of a word that all lanes access.
pub(in crate::vectorize) fn uniform_address(widen: &mut Widen<'_>, region: MemoryRegion, plan: &AccessPlan) -> Address {
    let offset = &plan.offset;
    if let (Some(len), Ok(disp)) = (widen.builder.kernel.constant(region.len), i32::try_from(offset.constant))
        && !offset.uniform.is_empty()
        && is_inside(widen, len, offset)
    {
        let steps = Offset { constant: 0, ..offset.clone() };
        let skip = uniform_part(widen, &steps);
        let base = widen.builder.wide(WideOp::Add, &[region.base, skip]);
        return Address { base, index: None, scale: 1, disp };
    }
    if let ([OffsetTerm { value, stride: stride @ (1 | 2 | 4 | 8) }], Ok(disp)) =
        (&offset.uniform[..], i32::try_from(offset.constant))
    {
        let skip = widen.builder.s64(offset.constant);
        let len = widen.builder.wide(WideOp::SubSat, &[region.len, skip]);
        let limit = element_count(&mut widen.builder, len, *stride);
        let index = widen.scalar(*value);
        return Address { base: region.base, index: Some(BoundedIndex { index, limit }), scale: *stride as u8, disp };
    }
    let index = uniform_part(widen, offset);
    // Terms may have turned out to be constants, too.
    if let (Some(bits), Some(len)) = (widen.builder.kernel.constant(index), widen.builder.kernel.constant(region.len))
        && bits + 4 <= len
        && let Ok(disp) = i32::try_from(bits)
    {
        return Address { base: region.base, index: None, scale: 1, disp };
    }
    let three = widen.builder.s64(3);
    let limit = widen.builder.wide(WideOp::SubSat, &[region.len, three]);
    Address { base: region.base, index: Some(BoundedIndex { index, limit }), scale: 1, disp: 0 }
}
