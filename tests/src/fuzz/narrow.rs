//! Sub-word and 64-bit accesses: loads and stores of 8 and 16 bits, atomics on 64.

use spelter_shaders::ir::{
    AtomicOp, Binding, BufferSpace, InstData, Op, Place, Scope as Reach, Semantics, Type, Value, Width,
};

use super::feature::Feature;
use super::layout::{Counter, Home, Region};
use super::maker::Maker;
use super::scope::{Kind, Level};

/// A buffer in which each invocation owns elements smaller than a word, which share words with those of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    pub(super) binding: Binding,
    pub(super) width: Width,
    /// Elements per invocation.
    pub(super) per: u32,
    /// All first elements come before all second ones.
    pub(super) apart: bool,
    /// The last invocation comes first.
    pub(super) reversed: bool,
    /// Bytes before the first element.
    pub(super) shift: u32,
}

const WIDTHS: [Width; 2] = [Width::Half, Width::Byte];

impl Maker {
    /// Occasionally a width below a word, with a place of that width inside the word of a place.
    fn part(&mut self, place: Place) -> Option<(Width, Place)> {
        if !self.tape.chance(5) {
            return None;
        }
        let width = self.tape.of(&WIDTHS);
        let number = self.tape.pick(4 / width.bytes());
        let delta = self.constant(number * width.bytes());
        let place = match place {
            Place::Buffer { space, buffer, offset } => {
                Place::Buffer { space, buffer, offset: self.element(offset, delta, 1) }
            }
            Place::Push { offset } => Place::Push { offset: self.element(offset, delta, 1) },
            Place::Variable { variable, offset } => {
                Place::Variable { variable, offset: self.element(offset, delta, 1) }
            }
        };
        Some((width, place))
    }

    /// As [`Maker::load`], possibly of a part of the word. Not of private memory.
    pub(super) fn load_any(&mut self, place: Place, level: Level) -> Value {
        match self.part(place) {
            None => self.load(place, level),
            Some((width, place)) => self.load_part(width, place, level),
        }
    }

    fn load_part(&mut self, width: Width, place: Place, level: Level) -> Value {
        self.mark(Feature::LoadNarrow);
        let access = self.access();
        let value = self.builder.load_bytes(width, place, access);
        self.scope.note(value, level);
        self.define(value, Kind::Int, level)
    }

    /// As [`Maker::store`], possibly of a part of the word. Not to private memory.
    pub(super) fn store_any(&mut self, place: Place) {
        match self.part(place) {
            None => self.store(place),
            Some((width, place)) => {
                self.mark(Feature::StoreNarrow);
                let (value, access) = (self.value(Kind::Int), self.access());
                self.builder.store_bytes(width, place, value, access);
            }
        }
    }

    /// Loads or stores own elements, which share words with those of others.
    pub(super) fn packed(&mut self) {
        let (false, Some(global)) = (self.memory.packed.is_empty(), self.memory.global) else { return };
        let all = self.memory.packed.clone();
        let packed = self.tape.of(&all);
        let sharers = self.memory.invocations * self.memory.groups;
        let lane = match packed.reversed {
            true => {
                let last = self.constant(sharers - 1);
                self.op(Op::ISub, &[last, global])
            }
            false => global,
        };
        let k = self.below(packed.per);
        let index = match packed.apart {
            true => {
                let before = self.op_with(Op::IMul, k, sharers);
                self.op(Op::IAdd, &[before, lane])
            }
            false => {
                let before = self.op_with(Op::IMul, lane, packed.per);
                self.op(Op::IAdd, &[before, k])
            }
        };
        let base = self.constant(packed.shift);
        let offset = self.element(base, index, packed.width.bytes());
        let buffer = self.buffer(packed.binding);
        let place = Place::Buffer { space: BufferSpace::Storage, buffer, offset };
        if self.tape.pick(3) == 2 {
            self.load_part(packed.width, place, Level::Invocation);
            return;
        }
        self.mark(Feature::StorePacked);
        let (value, access) = (self.value(Kind::Int), self.access());
        self.builder.store_bytes(packed.width, place, value, access);
    }

    /// An atomic on 64 bits of a counter: on its words `2n` and `2n + 1`.
    pub(super) fn count_wide(&mut self, counter: Counter, op: AtomicOp) {
        self.mark(Feature::AtomicWide);
        let pairs = counter.words / 2;
        let offset = match self.tape.pick(2) {
            0 => {
                let pair = self.tape.pick(pairs + 1);
                self.constant(pair * 8)
            }
            _ => {
                let (index, _) = self.index();
                let pair = self.op_with(Op::UMod, index, pairs + 1);
                let base = self.constant(0u32);
                self.element(base, pair, 8)
            }
        };
        let place = Self::counter_at(counter, offset);
        self.atomic_wide(op, place);
    }

    /// A 64-bit atomic on two own words, with the old ones as values.
    pub(super) fn own_wide(&mut self) {
        const OPS: [AtomicOp; 12] = [
            AtomicOp::Add,
            AtomicOp::Load,
            AtomicOp::Store,
            AtomicOp::Exchange,
            AtomicOp::CompareExchange,
            AtomicOp::Sub,
            AtomicOp::SMin,
            AtomicOp::UMin,
            AtomicOp::SMax,
            AtomicOp::UMax,
            AtomicOp::And,
            AtomicOp::Xor,
        ];
        let fits =
            |region: &Region| region.rule.per > 1 && !region.rule.apart && matches!(region.home, Home::Buffers(_));
        let regions: Vec<Region> = self.writable().into_iter().filter(fits).collect();
        if regions.is_empty() {
            return;
        }
        let region = self.tape.of(&regions);
        let Some(&place) = self.own_vector(region).first() else { return };
        self.mark(Feature::AtomicOwnWide);
        let op = self.tape.of(&OPS);
        if let Some([low, high]) = self.atomic_wide(op, place) {
            self.define(low, Kind::Int, Level::Invocation);
            self.define(high, Kind::Int, Level::Invocation);
        }
    }

    /// Atomics on a half of an own word, with the old one as a value. Halves are below 1, so that none becomes a NaN.
    pub(super) fn own_half(&mut self) {
        const OPS: [AtomicOp; 6] = [
            AtomicOp::HalfAdd,
            AtomicOp::HalfMin,
            AtomicOp::HalfMax,
            AtomicOp::HalfExchange,
            AtomicOp::HalfStore,
            AtomicOp::HalfLoad,
        ];
        const BELOW_ONE: u32 = 0xbbff;
        let regions = self.writable();
        if regions.is_empty() {
            return;
        }
        self.mark(Feature::AtomicOwnHalf);
        let (region, second) = (self.tape.of(&regions), self.tape.chance(2));
        let place = match self.own_place(region, true) {
            place if !second => place,
            Place::Buffer { space, buffer, offset } => {
                let two = self.constant(2u32);
                Place::Buffer { space, buffer, offset: self.element(offset, two, 1) }
            }
            place => place,
        };
        let others = self.tape.pick(3) + 1;
        let ops: Vec<AtomicOp> = (0..others).map(|_| self.tape.of(&OPS)).collect();
        for op in std::iter::once(AtomicOp::HalfStore).chain(ops) {
            let value = (!op.is_load()).then(|| {
                let value = self.value(Kind::Int);
                self.op_with(Op::And, value, BELOW_ONE)
            });
            if let Some(old) = self.atomic(op, place, value, None) {
                self.define(old, Kind::Int, Level::Invocation);
            }
        }
    }

    fn atomic_wide(&mut self, op: AtomicOp, place: Place) -> Option<[Value; 2]> {
        let mut words = |wanted: bool| wanted.then(|| [self.value(Kind::Int), self.value(Kind::Int)]);
        let (value, comparator) = (words(op != AtomicOp::Load), words(op == AtomicOp::CompareExchange));
        let data = InstData::Atomic {
            op,
            place,
            value: value.map(|[low, _]| low),
            comparator: comparator.map(|[low, _]| low),
            wide: Some([value.map(|[_, high]| high), comparator.map(|[_, high]| high)]),
            scope: self.tape.of(&[Reach::Device, Reach::Workgroup]),
            semantics: Semantics(0),
            unequal: Semantics(0),
        };
        if op == AtomicOp::Store {
            self.builder.push(data);
            return None;
        }
        let low = self.builder.push_value(data, Type::I32);
        let high = self.builder.push_value(InstData::HighWord { of: low }, Type::I32);
        Some([low, high])
    }
}
