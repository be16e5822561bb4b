//! Addresses of accesses without shuffles: one word for all lanes, a row, or a word for each lane, and their bounds.

use super::bounds::MemoryRegion;
use super::pattern::{AccessPattern, Offset, OffsetTerm};
use super::plan::AccessPlan;
use crate::abi::MAX_PUSH_BYTES;
use crate::analysis::Ranges;
use crate::ir::{self, Op, Place, VariableSpace, Width};
use crate::simd::{Address, Field, InstData, LANES, LaneAddress, Row, WideOp};
use crate::vectorize::{Value, Widen};

/// How far operations are followed to find how large an index is.
const RANGE_DEPTH: usize = 6;

/// Where an access goes, once its lanes are known to agree about the buffer.
#[derive(Clone, Debug)]
pub(in crate::vectorize) enum Target {
    /// One word for all lanes.
    Word(Address),
    /// Contiguous words.
    Row(Row),
    /// A word for each lane that is active and in bounds.
    Lanes(LaneAddress, Value),
}

impl Widen<'_> {
    /// The memory of a place about whose buffer the lanes agree.
    pub(in crate::vectorize) fn region_of_place(&mut self, place: &Place) -> MemoryRegion {
        match *place {
            Place::Buffer { buffer, .. } => {
                let number = self.scalar(buffer);
                self.descriptor(number)
            }
            Place::Push { .. } => {
                let base = self.builder.emit_one(InstData::Context { field: Field::Push });
                let len = self.builder.s64(MAX_PUSH_BYTES as u64);
                MemoryRegion { base, len }
            }
            Place::Variable { variable, .. } => {
                let constant = self.kernel.variables[variable].space == VariableSpace::Constant;
                let field = if constant { Field::Tables } else { Field::Shared };
                let base = self.builder.emit_one(InstData::Context { field });
                let skip = self.builder.s64(u64::from(self.plans.layout.variable_offsets[variable]));
                let base = self.builder.wide(WideOp::Add, &[base, skip]);
                let len = self.builder.s64(u64::from(self.kernel.variables[variable].bytes));
                MemoryRegion { base, len }
            }
        }
    }

    /// How lanes access a region: as one word, a row, or a word for each.
    pub(in crate::vectorize) fn target(&mut self, region: MemoryRegion, plan: &AccessPlan) -> Target {
        let offset = &plan.offset;
        let whole = region.len;
        match plan.pattern {
            AccessPattern::Uniform => Target::Word(self.word(region, plan)),
            AccessPattern::Contiguous { index } => {
                let row = self.row_in_bounds(region, offset, index);
                if let Some(row) = row.or_else(|| self.row_from_start(region, offset, index)) {
                    return Target::Row(row);
                }
                let skip = self.uniform_part(offset);
                let region = self.skip(region, skip);
                let index = self.get(index);
                let limit = self.count(region.len, 4);
                Target::Row(Row { base: region.base, index, limit, width: Width::Word })
            }
            _ => {
                let skip = self.uniform_part(offset);
                let region = self.skip(region, skip);
                let known = self.builder.kernel.constant(whole).is_some_and(|len| self.is_inside(len, offset));
                let (index, scale, inside) = self.lane_index(&offset.lanes, region.len);
                let mask = if known { self.exec } else { self.builder.and(self.exec, inside) };
                Target::Lanes(LaneAddress { base: region.base, index, scale, disp: 0 }, mask)
            }
        }
    }

    /// A row in memory of known length, as workgroup memory has, if it is in bounds whatever the uniform terms are: its
    /// limit is a constant.
    fn row_in_bounds(&mut self, region: MemoryRegion, offset: &Offset, lanes: ir::Value) -> Option<Row> {
        let len = self.builder.kernel.constant(region.len)?;
        if i32::try_from(offset.constant).is_err() {
            return None;
        }
        let ranges = self.plans.ranges.as_ref()?;
        let shared = offset.uniform.iter().map(|term| self.largest(ranges, term));
        let words = len.checked_sub(shared.fold(offset.constant, u64::saturating_add))? / 4;
        if u64::from(ranges.at(self.block, lanes).high) >= words {
            return None;
        }
        let steps = Offset { constant: 0, ..offset.clone() };
        let (start, before) = self.builder.constant_apart(region.base);
        let steps = self.uniform_part(&steps);
        let base = self.builder.wide(WideOp::Add, &[start, steps]);
        let constant = self.builder.s64(before + offset.constant);
        let base = self.builder.wide(WideOp::Add, &[base, constant]);
        let (index, limit) = (self.get(lanes), self.builder.s32(u32::try_from(words).ok()?));
        Some(Row { base, index, limit, width: Width::Word })
    }

    /// A row counted from the start of the region, as in an image: its limit is the same for all rows of the image.
    fn row_from_start(&mut self, region: MemoryRegion, offset: &Offset, lanes: ir::Value) -> Option<Row> {
        let before = self.words_before(offset, lanes)?;
        let first = self.get(lanes);
        let index = self.builder.pure(Op::IAdd, &[before, first]);
        let limit = self.count(region.len, 4);
        Some(Row { base: region.base, index, limit, width: Width::Word })
    }

    /// The words before the contiguous index `lanes`, if the rest of the offset is one uniform multiple of 4 bytes and
    /// the sum of both does not wrap.
    fn words_before(&mut self, offset: &Offset, lanes: ir::Value) -> Option<Value> {
        let [OffsetTerm { value, stride: 1 }] = offset.uniform[..] else { return None };
        let is_small = Ranges::local(self.kernel, lanes, RANGE_DEPTH).high < 1 << 31;
        if !is_small || offset.constant != 0 || self.uniformity.zeros(value) < 2 {
            return None;
        }
        let (bytes, two) = (self.scalar(value), self.builder.s32(2));
        Some(self.builder.pure(Op::LShr, &[bytes, two]))
    }

    /// Whether all active lanes are in bounds of memory of known length.
    fn is_inside(&self, len: u64, offset: &Offset) -> bool {
        let Some(ranges) = &self.plans.ranges else { return false };
        let parts = offset.uniform.iter().chain(&offset.lanes).map(|term| self.largest(ranges, term));
        parts.fold(offset.constant + 4, u64::saturating_add) <= len
    }

    /// Upper bound of a term here, in bytes.
    fn largest(&self, ranges: &Ranges, term: &OffsetTerm) -> u64 {
        u64::from(ranges.at(self.block, term.value).high) * u64::from(term.stride)
    }

    /// The address of a word that all lanes access.
    pub(in crate::vectorize) fn word(&mut self, region: MemoryRegion, plan: &AccessPlan) -> Address {
        let offset = &plan.offset;
        if let (Some(len), Ok(disp)) = (self.builder.kernel.constant(region.len), i32::try_from(offset.constant))
            && !offset.uniform.is_empty()
            && self.is_inside(len, offset)
        {
            let steps = Offset { constant: 0, ..offset.clone() };
            let skip = self.uniform_part(&steps);
            let base = self.builder.wide(WideOp::Add, &[region.base, skip]);
            return Address { base, index: None, scale: 1, disp };
        }
        if let ([OffsetTerm { value, stride: stride @ (1 | 2 | 4 | 8) }], Ok(disp)) =
            (&offset.uniform[..], i32::try_from(offset.constant))
        {
            let skip = self.builder.s64(offset.constant);
            let len = self.builder.wide(WideOp::SubSat, &[region.len, skip]);
            let limit = self.count(len, *stride);
            let index = self.scalar(*value);
            return Address { base: region.base, index: Some((index, limit)), scale: *stride as u8, disp };
        }
        let index = self.uniform_part(offset);
        // Terms may have turned out to be constants, too.
        if let (Some(bits), Some(len)) = (self.builder.kernel.constant(index), self.builder.kernel.constant(region.len))
            && bits + 4 <= len
            && let Ok(disp) = i32::try_from(bits)
        {
            return Address { base: region.base, index: None, scale: 1, disp };
        }
        let three = self.builder.s64(3);
        let limit = self.builder.wide(WideOp::SubSat, &[region.len, three]);
        Address { base: region.base, index: Some((index, limit)), scale: 1, disp: 0 }
    }

    /// How lanes access their private memory: word `w` of lane `l` is word `16 * w + l` of the subgroup's memory.
    pub(in crate::vectorize) fn private(&mut self, variable: ir::Variable, offset: &Offset) -> Target {
        let words = self.kernel.variables[variable].bytes / 4;
        let base = self.private_base();
        let skip = self.builder.s64(u64::from(self.plans.layout.variable_offsets[variable] * LANES));
        let base = self.builder.wide(WideOp::Add, &[base, skip]);
        if offset.lanes.is_empty() {
            // The index of the word, at most the end of the variable.
            let bytes = self.uniform_part(offset);
            let two = self.builder.s64(2);
            let word = self.builder.wide(WideOp::Shr, &[bytes, two]);
            let word = if self.is_inside(u64::from(words) * 4, offset) {
                word
            } else {
                let end = self.builder.s64(u64::from(words));
                self.builder.wide(WideOp::Min, &[word, end])
            };
            let word = self.builder.wide(WideOp::Truncate, &[word]);
            let sixteen = self.builder.s32(LANES);
            let index = self.builder.pure(Op::IMul, &[word, sixteen]);
            let limit = self.builder.s32(words * LANES);
            return Target::Row(Row { base, index, limit, width: Width::Word });
        }
        let skip = self.uniform_part(offset);
        let len = self.builder.s64(u64::from(words) * 4);
        let left = self.builder.wide(WideOp::SubSat, &[len, skip]);
        let (index, scale, inside) = self.lane_index(&offset.lanes, left);
        let index = self.times(index, u32::from(scale) / 4);
        let row = self.times(index, LANES);
        let lanes = self.lane_ids();
        let index = self.builder.pure(Op::IAdd, &[row, lanes]);
        let bytes = self.builder.s64(u64::from(LANES));
        let skip = self.builder.wide(WideOp::Mul, &[skip, bytes]);
        let base = self.builder.wide(WideOp::Add, &[base, skip]);
        let mask = self.builder.and(self.exec, inside);
        Target::Lanes(LaneAddress { base, index, scale: 4, disp: 0 }, mask)
    }
}
