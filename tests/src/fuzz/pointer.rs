//! Buffers as values: numbers of buffers, as variable pointers have them, and addresses.

use spelter_shaders::ir::{BufferSpace, InstData, Op, Place, Type, Value};

use super::feature::Feature;
use super::maker::Maker;
use super::scope::{Class, Kind, Level};

impl Maker {
    /// A buffer that was converted to a number and back.
    pub(super) fn numbered(&mut self) {
        self.mark(Feature::PointerNumber);
        let class = self.tape.of(&[Class::ReadOnly, Class::Own, Class::Exchange]);
        let mut number = self.number_of(class);
        match self.tape.pick(4) {
            0 => {}
            1 => {
                let (condition, other) = (self.value(Kind::Bool), self.number_of(class));
                number = self.choose(condition, number, other);
            }
            // A missing buffer is empty.
            2 => {
                let (condition, none) = (self.value(Kind::Bool), self.tape.of(&[0u32, 0x7fff_ffff, u32::MAX]));
                let none = self.constant(none);
                number = self.choose(condition, number, none);
            }
            _ => number = self.through_private(number),
        }
        let level = self.level(&[number]);
        let buffer = self.builder.push_value(InstData::BufferOf { number }, Type::Buffer);
        self.define(buffer, Kind::Buffer(class), level);
    }

    fn number_of(&mut self, class: Class) -> Value {
        let buffer = self.value(Kind::Buffer(class));
        let level = self.level(&[buffer]);
        let number = self.builder.push_value(InstData::BufferNumber { buffer }, Type::I32);
        self.scope.note(number, level);
        number
    }

    /// Stored in private memory and loaded at once, as variable pointers may be.
    fn through_private(&mut self, number: Value) -> Value {
        let private = self.memory.private.clone();
        if private.is_empty() {
            return number;
        }
        let (variable, words) = self.tape.of(&private);
        let word = self.tape.pick(words);
        let offset = self.constant(word * 4);
        let place = Place::Variable { variable, offset };
        self.builder.store(place, number, Default::default());
        let loaded = self.builder.load(Type::I32, place, Default::default());
        self.scope.note(loaded, Level::Invocation);
        // Results must not depend on the number of a buffer.
        let zero = self.constant(0u32);
        self.builder.store(place, zero, Default::default());
        loaded
    }

    /// A buffer by an address: that of its first byte or of a later one, from the table of addresses.
    pub(super) fn addressed(&mut self) {
        let Some(table) = self.memory.addresses else { return };
        let bindings = self.memory.bindings.clone();
        let (binding, count, class) = self.tape.of(&bindings);
        if class == Class::Uniform {
            return;
        }
        self.mark(Feature::PointerAddress);
        let table = self.buffer(table);
        let kernel = self.builder.kernel();
        let before: u32 =
            kernel.bindings.iter().take_while(|(other, _)| *other != binding).map(|(_, data)| data.count).sum();
        let index = match self.tape.pick(4) {
            0 | 1 => {
                let number = self.tape.pick(count);
                self.constant(number)
            }
            2 => {
                let value = self.value_at(Kind::Int, Level::Workgroup);
                self.op_with(Op::UMod, value, count)
            }
            _ => {
                let value = self.value(Kind::Int);
                self.op_with(Op::UMod, value, count)
            }
        };
        let base = self.constant(before * 8);
        let offset = self.element(base, index, 8);
        let low = self.table_word(table, offset);
        let four = self.constant(4u32);
        let after = self.element(offset, four, 1);
        let high = self.table_word(table, after);
        let high = match self.tape.pick(8) {
            // An address without memory.
            7 => {
                let condition = self.value(Kind::Bool);
                let nowhere = self.op_with(Op::Xor, high, 0x4000_0000);
                self.choose(condition, high, nowhere)
            }
            _ => high,
        };
        let level = self.level(&[low, high]);
        let buffer = self.builder.push_value(InstData::BufferAt { low, high }, Type::Buffer);
        self.define(buffer, Kind::Buffer(class), level);
        if class == Class::ReadOnly && self.tape.pick(2) == 1 {
            self.load_at_offset(buffer, [low, high]);
        }
    }

    fn table_word(&mut self, buffer: Value, offset: Value) -> Value {
        let level = self.level(&[offset]);
        let place = Place::Buffer { space: BufferSpace::Storage, buffer, offset };
        let word = self.builder.load(Type::I32, place, Default::default());
        self.scope.note(word, level);
        word
    }

    /// A load at a byte offset from an address: fast path if the subgroup's first address range holds for all, else the
    /// slow path. The reader emits a branch; this executes both and selects, since some blocks must not end here.
    fn load_at_offset(&mut self, exact: Value, address: [Value; 2]) {
        let (index, _) = self.index();
        let [low, high] = address;
        let near = self.builder.push_value(InstData::BufferNear { low, high }, Type::Buffer);
        let level = self.level(&address);
        self.scope.note(near, level);
        let [there, here] = [near, exact].map(|buffer| self.offset_at(buffer, address, index));
        let reached = self.builder.push_value(InstData::Reaches { buffer: near, offset: there }, Type::Bool);
        let level = self.level(&[near, there]);
        self.scope.note(reached, level);
        let [there, here] = [(near, there), (exact, here)].map(|(buffer, offset)| {
            let place = Place::Buffer { space: BufferSpace::Storage, buffer, offset };
            let word = self.builder.load(Type::I32, place, Default::default());
            let level = self.level(&[buffer, offset]);
            self.scope.note(word, level);
            word
        });
        let word = self.choose(reached, there, here);
        let level = self.level(&[word]);
        self.define(word, Kind::Int, level);
    }

    /// The offset into a buffer of a place at a word offset from an address.
    fn offset_at(&mut self, buffer: Value, [low, high]: [Value; 2], index: Value) -> Value {
        let from_start = self.builder.push_value(InstData::BufferOffset { buffer, low, high }, Type::I32);
        let level = self.level(&[buffer, low, high]);
        self.scope.note(from_start, level);
        self.element(from_start, index, 4)
    }
}
