//! Sub-word (8- and 16-bit) loads and stores: rows of bytes or halves where they are contiguous, else each lane's own.
//!
//! A load may read the whole aligned word around the part, since words are mapped as a whole. A store must not write
//! it: other invocations may write the other bytes.

use super::bounds::MemoryRegion;
use super::pattern::{AccessPattern, Offset, OffsetTerm};
use super::plan::AccessPlan;
use crate::ir::{self, Op, Place, Width};
use crate::simd::{Address, InstData, LaneAddress, Row, WideOp};
use crate::vectorize::{Type, Value, Widen};

impl Widen<'_> {
    /// A load of less than a word.
    pub(in crate::vectorize) fn load_subword(
        &mut self,
        result: ir::Value,
        width: Width,
        place: &Place,
        plan: &AccessPlan,
    ) {
        let ty = Some(Type::V32);
        let load = |widen: &mut Self, region| Some(widen.load_subword_at(region, plan, width));
        if let Some(value) = self.for_each_region(place, plan, ty, load) {
            self.define_as(result, value);
        }
    }

    fn load_subword_at(&mut self, region: MemoryRegion, plan: &AccessPlan, width: Width) -> Value {
        let offset = &plan.offset;
        if offset.lanes.is_empty() {
            return self.load_uniform_subword(region, offset, width);
        }
        if let Some(row) = self.subword_row(region, plan, width) {
            return self.builder.emit_value(InstData::LoadRow { row });
        }
        // The aligned words around the parts, shifted.
        let skip = self.uniform_part(offset);
        let region = self.skip(region, skip);
        let (index, scale, inside) = self.subword_lane_index(&offset.lanes, region.len, width);
        let mask = self.builder.and(self.exec, inside);
        let bytes = self.times(index, u32::from(scale));
        let (base, phase) = self.aligned(region.base);
        let phase = self.builder.splat(phase);
        let bytes = self.builder.pure(Op::IAdd, &[bytes, phase]);
        let two = self.builder.constant(Type::V32, 2);
        let word = self.builder.pure(Op::LShr, &[bytes, two]);
        let lanes = LaneAddress { base, index: word, scale: 4, disp: 0 };
        let word = self.builder.emit_value(InstData::Gather { lanes, mask });
        if width == Width::Byte || offset.is_multiple_of(2) {
            return self.extract_subword(word, bytes, width);
        }
        // A half may begin in the last byte of a word.
        let last = self.builder.constant(Type::V32, 3);
        let phase = self.builder.pure(Op::And, &[bytes, last]);
        let straddles = self.builder.pure(Op::IEq, &[phase, last]);
        let mask = self.builder.and(mask, straddles);
        let next = LaneAddress { disp: 4, ..lanes };
        let next = self.builder.emit_value(InstData::Gather { lanes: next, mask });
        let eight = self.builder.constant(Type::V32, 8);
        let high = self.builder.pure(Op::Shl, &[next, eight]);
        let low = self.shifted(word, bytes);
        let both = self.builder.pure(Op::Or, &[low, high]);
        self.cut(both, width)
    }

    /// Row of contiguous parts.
    fn subword_row(&mut self, region: MemoryRegion, plan: &AccessPlan, width: Width) -> Option<Row> {
        let AccessPattern::Contiguous { index } = plan.pattern else { return None };
        let skip = self.uniform_part(&plan.offset);
        let region = self.skip(region, skip);
        let index = self.get(index);
        let limit = self.count_subwords(region.len, width.bytes(), width);
        Some(Row { base: region.base, index, limit, width })
    }

    /// The number of elements of `stride` bytes, from the start on, the first part of which is within `len` bytes:
    /// `s32`.
    pub(in crate::vectorize) fn count_subwords(&mut self, len: Value, stride: u32, width: Width) -> Value {
        if width == Width::Word {
            return self.count(len, stride);
        }
        let len = self.subword_len(len, width);
        self.count(len, stride)
    }

    /// As `lane_index`, for parts.
    fn subword_lane_index(&mut self, lanes: &[OffsetTerm], len: Value, width: Width) -> (Value, u8, Value) {
        let len = self.subword_len(len, width);
        self.lane_index(lanes, len)
    }

    /// The length in which as many words are in bounds as parts in `len`: three or two bytes more, unless it has no
    /// part.
    fn subword_len(&mut self, len: Value, width: Width) -> Value {
        let more = self.builder.s64(u64::from(4 - width.bytes()));
        let zero = self.builder.s64(0);
        let some = self.builder.s64(u64::from(width.bytes()) - 1);
        let any = self.builder.wide(WideOp::Lt, &[some, len]);
        let longer = self.builder.wide(WideOp::Add, &[len, more]);
        self.builder.select(any, longer, zero)
    }

    /// A uniform part: the aligned word around it, shifted.
    fn load_uniform_subword(&mut self, region: MemoryRegion, offset: &Offset, width: Width) -> Value {
        let sum = self.uniform_part(offset);
        let less = self.builder.s64(u64::from(width.bytes()) - 1);
        let limit = self.builder.wide(WideOp::SubSat, &[region.len, less]);
        let place = self.builder.wide(WideOp::Add, &[region.base, sum]);
        let (_, phase) = self.aligned(place);
        let wide_phase = self.builder.wide(WideOp::Extend, &[phase]);
        let base = self.builder.wide(WideOp::SubSat, &[region.base, wide_phase]);
        let load = |base: Value, disp: i32| InstData::Load {
            ty: Type::S32,
            address: Address { base, index: Some((sum, limit)), scale: 1, disp },
        };
        let word = self.builder.emit_value(load(base, 0));
        if width == Width::Byte || offset.is_multiple_of(2) {
            return self.extract_subword(word, phase, width);
        }
        let last = self.builder.s32(3);
        let straddles = self.builder.pure(Op::IEq, &[phase, last]);
        let zero = self.builder.s64(0);
        let limit = self.builder.select(straddles, limit, zero);
        let address = Address { base, index: Some((sum, limit)), scale: 1, disp: 4 };
        let next = self.builder.emit_value(InstData::Load { ty: Type::S32, address });
        let eight = self.builder.s32(8);
        let high = self.builder.pure(Op::Shl, &[next, eight]);
        let low = self.shifted(word, phase);
        let both = self.builder.pure(Op::Or, &[low, high]);
        self.cut(both, width)
    }

    /// The aligned address before an address, and the bytes between (`s32`).
    fn aligned(&mut self, address: Value) -> (Value, Value) {
        let low = self.builder.wide(WideOp::Truncate, &[address]);
        let three = self.builder.s32(3);
        let phase = self.builder.pure(Op::And, &[low, three]);
        let wide = self.builder.wide(WideOp::Extend, &[phase]);
        (self.builder.wide(WideOp::SubSat, &[address, wide]), phase)
    }

    /// The sub-word value at a byte offset in its word.
    fn extract_subword(&mut self, word: Value, bytes: Value, width: Width) -> Value {
        let shifted = self.shifted(word, bytes);
        self.cut(shifted, width)
    }

    fn shifted(&mut self, word: Value, bytes: Value) -> Value {
        let ty = self.builder.ty(bytes);
        let three = self.builder.constant(ty, 3);
        // Amounts of shifts count modulo 32.
        let bits = self.builder.pure(Op::Shl, &[bytes, three]);
        let thirty_one = self.builder.constant(ty, 31);
        let bits = self.builder.pure(Op::And, &[bits, thirty_one]);
        self.builder.pure(Op::LShr, &[word, bits])
    }

    fn cut(&mut self, word: Value, width: Width) -> Value {
        let ty = self.builder.ty(word);
        let mask = self.builder.constant(ty, u64::from(width.mask()));
        self.builder.pure(Op::And, &[word, mask])
    }

    /// A store of less than a word.
    pub(in crate::vectorize) fn store_subword(
        &mut self,
        width: Width,
        place: &Place,
        plan: &AccessPlan,
        value: ir::Value,
    ) {
        let stored = self.vector(value);
        if matches!(place, Place::Push { .. }) {
            return;
        }
        self.for_each_region(place, plan, None, |widen, region| {
            widen.store_subword_at(region, plan, width, stored);
            None
        });
    }

    fn store_subword_at(&mut self, region: MemoryRegion, plan: &AccessPlan, width: Width, value: Value) {
        if let Some(row) = self.subword_row(region, plan, width) {
            let mask = self.exec;
            self.builder.emit(InstData::StoreRow { row, value, mask });
            return;
        }
        let (lanes, mask) = self.subword_lanes(region, &plan.offset, width);
        self.builder.emit(InstData::Scatter { width, lanes, value, mask });
    }

    /// The address of each lane's part, and the lanes that are active and in bounds.
    pub(in crate::vectorize) fn subword_lanes(
        &mut self,
        region: MemoryRegion,
        offset: &Offset,
        width: Width,
    ) -> (LaneAddress, Value) {
        let skip = self.uniform_part(offset);
        let region = self.skip(region, skip);
        let (lanes, mask) = if offset.lanes.is_empty() {
            let less = self.builder.s64(u64::from(width.bytes()) - 1);
            let inside = self.builder.wide(WideOp::Lt, &[less, region.len]);
            let inside = self.builder.splat(inside);
            let index = self.builder.constant(Type::V32, 0);
            (LaneAddress { base: region.base, index, scale: 1, disp: 0 }, inside)
        } else {
            let (index, scale, inside) = self.subword_lane_index(&offset.lanes, region.len, width);
            (LaneAddress { base: region.base, index, scale, disp: 0 }, inside)
        };
        (lanes, self.builder.and(self.exec, mask))
    }
}
