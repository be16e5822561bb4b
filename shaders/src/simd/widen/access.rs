//! Loads and stores: one word for all lanes, a row of words, or a word for each lane.

use super::address::{Offset, Region, Term};
use super::clamped::RANGE_DEPTH;
use super::elements::Plan;
use super::windows::cover;
use super::{Type, Value, Widen};
use crate::abi::MAX_PUSH_BYTES;
use crate::analysis::{Patterns, Ranges, Shape};
use crate::ir::{self, InstData as Scalar, Op, Place, VariableSpace, Width};
use crate::simd::{Address, Field, InstData, LANES, LaneAddress, Row, WideOp};

/// Where an access goes, once its lanes are known to agree about the buffer.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// One word for all lanes.
    Word(Address),
    /// Words next to each other.
    Row(Row),
    /// Any words, for the lanes that are on and in bounds.
    Lanes(LaneAddress, Value),
}

impl Widen<'_> {
    /// Translates the instructions of the current scalar block.
    pub(super) fn translate(&mut self, block: ir::Block) {
        let kernel = self.kernel;
        let plans = self.plan_elements(block);
        for &inst in &kernel.blocks[block].insts {
            let (data, result) = (&kernel.insts[inst], kernel.results[inst]);
            self.below = self.serial.below.get(&inst).copied();
            match plans.at(inst) {
                None => {}
                Some(Plan::Elsewhere) => continue,
                Some(Plan::Load(group)) => {
                    self.load_elements(&plans, group);
                    continue;
                }
                Some(Plan::Store(group)) => {
                    self.store_elements(&plans, group);
                    continue;
                }
            }
            let is_done = result.is_some_and(|result| self.samples.early.contains(&result));
            if is_done || self.computes(result, data) {
                continue;
            }
            match (data, result) {
                (Scalar::Element { base, index, stride }, Some(result)) => {
                    if self.is_number(result) {
                        self.element(result, *base, *index, *stride);
                    }
                }
                (Scalar::Buffer { binding, index }, Some(result)) => self.buffer(result, *binding, *index),
                (Scalar::BufferSize { buffer }, Some(result)) => self.buffer_size(result, *buffer),
                (Scalar::BufferNumber { buffer }, Some(result)) => self.renumber(result, *buffer, 1),
                (Scalar::BufferOf { number }, Some(result)) => self.renumber(result, *number, u32::MAX),
                (Scalar::BufferAt { low, high }, Some(result)) => self.buffer_at(result, *low, *high),
                (Scalar::BufferNear { low, high }, Some(result)) => self.buffer_near(result, *low, *high),
                (Scalar::BufferOffset { buffer, low, high }, Some(result)) => {
                    self.buffer_offset(result, *buffer, [*low, *high]);
                }
                (Scalar::Reaches { buffer, offset }, Some(result)) => self.reaches(result, *buffer, *offset),
                (Scalar::ImageField { image, field }, Some(result)) => self.image_field(result, *image, *field),
                (Scalar::Image { .. }, _) => self.image(block, inst),
                (Scalar::Load { ty, width: Width::Word, place, .. }, Some(result)) => self.load(result, *ty, place),
                (Scalar::Load { width, place, .. }, Some(result)) => self.load_part(result, *width, place),
                (Scalar::Store { width: Width::Word, place, value, .. }, _) => self.store(place, *value),
                (Scalar::Store { width, place, value, .. }, _) => self.store_part(*width, place, *value),
                (Scalar::Atomic { .. }, _) => {
                    if !self.tally(inst) {
                        self.atomic(result, data);
                    }
                }
                (Scalar::Clock { .. }, Some(result)) => self.clock(result),
                (Scalar::Print { message, args }, _) => self.print(*message, args),
                (Scalar::HighWord { of }, Some(result)) => self.high_word(result, *of),
                (Scalar::Subgroup { op, args }, Some(result)) => self.across(result, *op, args),
                (Scalar::Barrier { memory, semantics, .. }, _) => {
                    self.fence(*memory, *semantics);
                    self.barrier(data);
                }
                (Scalar::Fence { scope, semantics }, _) => self.fence(*scope, *semantics),
                _ => self.leave(data),
            }
        }
    }

    /// Whether an `element` is used other than as an offset that is taken apart.
    fn is_number(&self, value: ir::Value) -> bool {
        self.numbers.contains(value)
    }

    /// The descriptor that a `buffer` names.
    fn buffer(&mut self, result: ir::Value, binding: ir::Binding, index: ir::Value) {
        let (first, count) = (self.descriptors[binding], self.kernel.bindings[binding].count);
        if let Some(bits) = self.kernel.constant(index) {
            let number = if bits < u64::from(count) { first + bits as u32 } else { u32::MAX };
            let number = self.builder.s32(number);
            return self.define_as(result, number);
        }
        let uniform = self.shape(index) == Shape::Uniform;
        let index = if uniform { self.scalar(index) } else { self.vector(index) };
        let ty = self.builder.ty(index);
        let [first, count, none] = [first, count, u32::MAX].map(|bits| self.builder.constant(ty, u64::from(bits)));
        let number = self.builder.pure(Op::IAdd, &[index, first]);
        let inside = self.builder.pure(Op::ULt, &[index, count]);
        let number = self.builder.select(inside, number, none);
        self.define_as(result, number);
    }

    fn buffer_size(&mut self, result: ir::Value, buffer: ir::Value) {
        if self.shape(buffer) == Shape::Uniform {
            let buffer = self.scalar(buffer);
            let len = self.builder.emit_one(InstData::BufferLen { buffer });
            let len = self.builder.wide(WideOp::Truncate, &[len]);
            return self.define_as(result, len);
        }
        let ty = Type::V32;
        let size = self.for_each_buffer(buffer, Some(ty), |widen, buffer, _| {
            let len = widen.builder.emit_one(InstData::BufferLen { buffer });
            let len = widen.builder.wide(WideOp::Truncate, &[len]);
            Some(widen.builder.splat(len))
        });
        if let Some(size) = size {
            self.define_as(result, size);
        }
    }

    /// The range of a descriptor.
    pub(super) fn descriptor(&mut self, buffer: Value) -> Region {
        let base = self.builder.emit_one(InstData::BufferBase { buffer });
        let len = self.builder.emit_one(InstData::BufferLen { buffer });
        Region { base, len }
    }

    /// Does something for the lanes of each buffer in turn, where lanes may have different ones: `each` gets the
    /// descriptor's number and the lanes, and gives what they yield.
    pub(super) fn for_each_buffer(
        &mut self,
        buffer: ir::Value,
        ty: Option<Type>,
        mut each: impl FnMut(&mut Self, Value, Value) -> Option<Value>,
    ) -> Option<Value> {
        use super::super::ssa::Unwritten;
        let numbers = self.vector(buffer);
        let rest = self.builder.variables.declare(Type::Mask, Unwritten::Empty);
        let found = ty.map(|ty| self.builder.variables.declare(ty, Unwritten::Undef));
        let [top, body, end] = std::array::from_fn(|_| self.builder.create_block());
        self.builder.variables.write(self.builder.current(), rest, self.exec);
        if let (Some(found), Some(ty)) = (found, ty) {
            let undef = self.builder.emit_one(InstData::Undef { ty });
            self.builder.variables.write(self.builder.current(), found, undef);
        }
        // What the body uses is looked up before, in the block that dominates it.
        self.builder.jump(top);
        self.builder.switch_to(top);
        self.note_exec();
        let left = self.builder.read(rest, top);
        let any = self.builder.emit_value(InstData::Any { mask: left });
        self.builder.branch(any, body, end);
        self.builder.switch_to(body);
        self.builder.seal(body);
        self.note_exec();
        let lane = self.builder.emit_value(InstData::FirstLane { mask: left });
        let number = self.builder.emit_value(InstData::Extract { vector: numbers, lane });
        let same = self.builder.splat(number);
        let same = self.builder.pure(Op::IEq, &[numbers, same]);
        let lanes = self.builder.and(left, same);
        let outer = std::mem::replace(&mut self.exec, lanes);
        let result = each(self, number, lanes);
        self.exec = outer;
        let last = self.builder.current();
        if let (Some(found), Some(result)) = (found, result) {
            let before = self.builder.read(found, last);
            let after = self.builder.select(lanes, result, before);
            self.builder.variables.write(last, found, after);
        }
        let after = self.builder.and_not(left, same);
        self.builder.variables.write(last, rest, after);
        self.builder.jump(top);
        self.builder.seal(top);
        self.builder.switch_to(end);
        self.builder.seal(end);
        self.note_exec();
        found.map(|found| self.builder.read(found, end))
    }

    fn load(&mut self, result: ir::Value, ty: ir::Type, place: &Place) {
        if let Place::Buffer { buffer, offset, .. } = *place
            && self.shape(buffer) != Shape::Uniform
        {
            let offset = self.offset(offset);
            self.prepare_terms(&offset);
            let value = self.for_each_buffer(buffer, Some(Type::V32), |widen, number, _| {
                let region = widen.descriptor(number);
                let value = widen.load_from(region, &offset, ir::Type::F32);
                Some(widen.in_lanes(value))
            });
            if let Some(value) = value {
                self.define_as(result, value);
            }
            return;
        }
        let (region, offset) = self.place_of(place);
        let value = match place {
            Place::Variable { variable, .. } if self.is_private(*variable) => {
                let target = self.private(*variable, &offset);
                self.load_target(target, ty)
            }
            // Nobody writes them: once for all subgroups, and all workgroups, where that saves something.
            Place::Push { .. }
                if ty == ir::Type::I32
                    && offset.lanes.is_empty()
                    && (self.is_short || self.looked_up.contains(result)) =>
            {
                let address = self.word(region, &offset);
                self.builder.emit_one(InstData::Load { ty: Type::S32, address })
            }
            _ => match self.load_strips(region, &offset) {
                Some(value) => value,
                None => self.load_from(region, &offset, ty),
            },
        };
        self.define_as(result, value);
    }

    fn store(&mut self, place: &Place, value: ir::Value) {
        if let Place::Buffer { buffer, offset, .. } = *place
            && self.shape(buffer) != Shape::Uniform
        {
            let offset = self.offset(offset);
            self.prepare_terms(&offset);
            let stored = self.vector(value);
            self.for_each_buffer(buffer, None, |widen, number, _| {
                let region = widen.descriptor(number);
                let target = widen.target(region, &offset);
                widen.store_target(target, stored);
                None
            });
            return;
        }
        let (region, offset) = self.place_of(place);
        let target = match place {
            Place::Push { .. } => return,
            Place::Variable { variable, .. } if self.is_private(*variable) => self.private(*variable, &offset),
            _ if self.all_lanes_are_on() && self.store_near(region, &offset, value) => return,
            _ if self.store_strips(region, &offset, value) => return,
            _ => self.target(region, &offset),
        };
        let value = match target {
            Target::Word(_) => {
                let kept = self.get(value);
                if self.shape(value) == Shape::Uniform { kept } else { self.vector(value) }
            }
            _ => self.vector(value),
        };
        self.store_target(target, value);
    }

    /// Stores words that lanes have close to each other, if it is such a store.
    fn store_near(&mut self, region: Region, offset: &Offset, value: ir::Value) -> bool {
        let Some(window) = self.window(offset) else { return false };
        let places = window.places(0);
        let rows = cover(places);
        let near = Self::is_near(&rows, 1);
        if near {
            let value = self.vector(value);
            let at = self.window_region(region, offset, &window);
            self.store_window(at, &rows, &[places], &[value]);
        }
        near
    }

    /// Looks up what a loop over buffers is going to use, in the block before it.
    pub(super) fn prepare_terms(&mut self, offset: &Offset) {
        for term in offset.uniform.iter().chain(&offset.lanes) {
            self.get(term.value);
        }
    }

    pub(super) fn in_lanes(&mut self, value: Value) -> Value {
        if self.builder.ty(value).is_vector() { value } else { self.builder.splat(value) }
    }

    pub(super) fn is_private(&self, variable: ir::Variable) -> bool {
        self.kernel.variables[variable].space == VariableSpace::Private
    }

    /// The memory that a place is in, and the offset into it; for places on whose buffer lanes agree.
    pub(super) fn place_of(&mut self, place: &Place) -> (Region, Offset) {
        match *place {
            Place::Buffer { buffer, offset, .. } => {
                let number = self.scalar(buffer);
                (self.descriptor(number), self.offset(offset))
            }
            Place::Push { offset } => {
                let base = self.builder.emit_one(InstData::Context { field: Field::Push });
                let len = self.builder.s64(MAX_PUSH_BYTES as u64);
                (Region { base, len }, self.offset(offset))
            }
            Place::Variable { variable, offset } => {
                let constant = self.kernel.variables[variable].space == VariableSpace::Constant;
                let field = if constant { Field::Tables } else { Field::Shared };
                let base = self.builder.emit_one(InstData::Context { field });
                let skip = self.builder.s64(u64::from(self.places[variable]));
                let base = self.builder.wide(WideOp::Add, &[base, skip]);
                let len = self.builder.s64(u64::from(self.kernel.variables[variable].bytes));
                (Region { base, len }, self.offset(offset))
            }
        }
    }

    /// How lanes access a region.
    pub(super) fn target(&mut self, region: Region, offset: &Offset) -> Target {
        if offset.lanes.is_empty() {
            return Target::Word(self.word(region, offset));
        }
        if let Some(row) = self.row_inside(region, offset).or_else(|| self.row_of_words(region, offset)) {
            return Target::Row(row);
        }
        let skip = self.uniform_part(offset);
        let whole = region.len;
        let region = self.skip(region, skip);
        if let [Term { value, stride: 4 }] = offset.lanes[..]
            && self.shape(value) == Shape::Pattern(Patterns::ROW)
        {
            let index = self.get(value);
            let limit = self.count(region.len, 4);
            return Target::Row(Row { base: region.base, index, limit, width: Width::Word });
        }
        let known = self.builder.kernel.constant(whole).is_some_and(|len| self.is_inside(len, offset));
        let (index, scale, inside) = self.lane_index(&offset.lanes, region.len);
        let mask = if known { self.exec } else { self.builder.and(self.exec, inside) };
        Target::Lanes(LaneAddress { base: region.base, index, scale, disp: 0 }, mask)
    }

    /// A row in memory of a known length, as the workgroup's is, where the parts that lanes share leave room for all that lanes count: its
    /// limit is a constant, whatever those parts are.
    fn row_inside(&mut self, region: Region, offset: &Offset) -> Option<Row> {
        let [Term { value, stride: 4 }] = offset.lanes[..] else { return None };
        let len = self.builder.kernel.constant(region.len)?;
        if self.shape(value) != Shape::Pattern(Patterns::ROW) || i32::try_from(offset.constant).is_err() {
            return None;
        }
        let ranges = self.ranges.as_ref()?;
        let shared = offset.uniform.iter().map(|term| self.largest(ranges, term));
        let words = len.checked_sub(shared.fold(offset.constant, u64::saturating_add))? / 4;
        if u64::from(ranges.at(self.block, value).high) >= words {
            return None;
        }
        let steps = Offset { constant: 0, ..offset.clone() };
        let (start, before) = self.builder.constant_apart(region.base);
        let steps = self.uniform_part(&steps);
        let base = self.builder.wide(WideOp::Add, &[start, steps]);
        let constant = self.builder.s64(before + offset.constant);
        let base = self.builder.wide(WideOp::Add, &[base, constant]);
        let (index, limit) = (self.get(value), self.builder.s32(u32::try_from(words).ok()?));
        Some(Row { base, index, limit, width: Width::Word })
    }

    /// A row of a picture, counted from the region's beginning: its limit is the same for all rows.
    fn row_of_words(&mut self, region: Region, offset: &Offset) -> Option<Row> {
        let [Term { value, stride: 4 }] = offset.lanes[..] else { return None };
        let before =
            (self.shape(value) == Shape::Pattern(Patterns::ROW)).then(|| self.words_before(offset, value))??;
        let first = self.get(value);
        let index = self.builder.pure(Op::IAdd, &[before, first]);
        let limit = self.count(region.len, 4);
        Some(Row { base: region.base, index, limit, width: Width::Word })
    }

    /// The words before those that lanes count, if all share one number of bytes that is a multiple of 4, and the sum of both does not
    /// wrap.
    pub(super) fn words_before(&mut self, offset: &Offset, lanes: ir::Value) -> Option<Value> {
        let [Term { value, stride: 1 }] = offset.uniform[..] else { return None };
        let is_small = Ranges::local(self.kernel, lanes, RANGE_DEPTH).high < 1 << 31;
        if !is_small || offset.constant != 0 || self.uniformity.zeros(value) < 2 {
            return None;
        }
        let (bytes, two) = (self.scalar(value), self.builder.s32(2));
        Some(self.builder.pure(Op::LShr, &[bytes, two]))
    }

    /// Whether all lanes that are on are in bounds of memory whose length is known.
    fn is_inside(&self, len: u64, offset: &Offset) -> bool {
        let Some(ranges) = &self.ranges else { return false };
        let parts = offset.uniform.iter().chain(&offset.lanes).map(|term| self.largest(ranges, term));
        parts.fold(offset.constant + 4, u64::saturating_add) <= len
    }

    /// The greatest number of bytes that a term can be here.
    fn largest(&self, ranges: &Ranges, term: &Term) -> u64 {
        u64::from(ranges.at(self.block, term.value).high) * u64::from(term.stride)
    }

    /// The address of a word that all lanes access.
    fn word(&mut self, region: Region, offset: &Offset) -> Address {
        if let (Some(below), 0, [Term { value, stride: 4 }]) = (self.below, offset.constant, &offset.uniform[..])
            && self.shape(below) == Shape::Uniform
        {
            let (index, limit) = (self.scalar(*value), self.scalar(below));
            return Address { base: region.base, index: Some((index, limit)), scale: 4, disp: 0 };
        }
        if let (Some(len), Ok(disp)) = (self.builder.kernel.constant(region.len), i32::try_from(offset.constant))
            && !offset.uniform.is_empty()
            && self.is_inside(len, offset)
        {
            let steps = Offset { constant: 0, ..offset.clone() };
            let skip = self.uniform_part(&steps);
            let base = self.builder.wide(WideOp::Add, &[region.base, skip]);
            return Address { base, index: None, scale: 1, disp };
        }
        if let ([Term { value, stride: stride @ (1 | 2 | 4 | 8) }], Ok(disp)) =
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

    /// How lanes access their private memory: word `w` of lane `l` is word `16 * w + l` of the subgroup's.
    pub(super) fn private(&mut self, variable: ir::Variable, offset: &Offset) -> Target {
        let words = self.kernel.variables[variable].bytes / 4;
        let base = self.private_base();
        let skip = self.builder.s64(u64::from(self.places[variable] * LANES));
        let base = self.builder.wide(WideOp::Add, &[base, skip]);
        if offset.lanes.is_empty() {
            // The word's number, held at the end of the variable.
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

    fn load_from(&mut self, region: Region, offset: &Offset, ty: ir::Type) -> Value {
        if let Some(window) = self.window(offset) {
            let places = window.places(0);
            let rows = cover(places);
            if Self::is_near(&rows, 1) {
                let at = self.window_region(region, offset, &window);
                return self.load_window(at, &rows, &[places])[0];
            }
        }
        if let Some(clamped) = self.clamped(offset) {
            return self.load_clamped(region, offset, &clamped);
        }
        let target = self.target(region, offset);
        self.load_target(target, ty)
    }

    pub(super) fn load_target(&mut self, target: Target, ty: ir::Type) -> Value {
        let ty = if ty == ir::Type::I32 { Type::S32 } else { Type::V32 };
        match target {
            Target::Word(address) => self.builder.emit_value(InstData::Load { ty, address }),
            Target::Row(row) => self.builder.emit_value(InstData::LoadRow { row }),
            Target::Lanes(lanes, mask) => self.builder.emit_value(InstData::Gather { lanes, mask }),
        }
    }

    pub(super) fn store_target(&mut self, target: Target, value: Value) {
        let mask = self.exec;
        match target {
            Target::Word(address) => self.builder.emit(InstData::Store { address, value, mask }),
            Target::Row(row) => {
                let value = self.in_lanes(value);
                self.builder.emit(InstData::StoreRow { row, value, mask })
            }
            Target::Lanes(lanes, mask) => {
                let value = self.in_lanes(value);
                self.builder.emit(InstData::Scatter { width: Width::Word, lanes, value, mask })
            }
        };
    }
}
