//! Indices and offsets in the shapes that compilers distinguish: uniform, contiguous, strided, reversed, random, and
//! those that leave the buffer at its end, by saturation or wraparound.

use spelter_shaders::ir::{BuiltIn, InstData, Op, Value};

use super::feature::Feature;
use super::maker::Maker;
use super::scope::{Kind, Level};

impl Maker {
    /// An invocation number, in one of several orders.
    pub(super) fn lane(&mut self) -> Value {
        let builtins = [
            (BuiltIn::LocalInvocationIndex, 0),
            (BuiltIn::LocalInvocationId, 0),
            (BuiltIn::GlobalInvocationId, 0),
            (BuiltIn::SubgroupLocalInvocationId, 0),
            (BuiltIn::LocalInvocationId, 1),
            (BuiltIn::GlobalInvocationId, 1),
            (BuiltIn::LocalInvocationId, 2),
        ];
        match self.tape.pick(10) {
            at @ 0..7 => {
                let (builtin, component) = builtins[at as usize];
                self.builder.builtin(builtin, component)
            }
            7 | 8 => self.memory.local.unwrap_or_else(|| self.constant(0u32)),
            _ => self.memory.global.unwrap_or_else(|| self.constant(0u32)),
        }
    }

    /// A small uniform number.
    fn start(&mut self) -> Value {
        if self.tape.pick(2) == 0 {
            let number = self.tape.of(&[0u32, 1, 3, 16, 17, 40, 64]);
            return self.constant(number);
        }
        let value = self.value_at(Kind::Int, Level::Workgroup);
        self.op_with(Op::And, value, 63)
    }

    /// An index and the feature that it represents.
    pub(super) fn index(&mut self) -> (Value, Feature) {
        let (value, feature) = match self.tape.pick(12) {
            0 => (self.start(), Feature::LoadUniform),
            1 | 2 => {
                let (lane, start) = (self.lane(), self.start());
                (self.op(Op::IAdd, &[lane, start]), Feature::LoadContiguous)
            }
            3 | 4 => {
                let (lane, start) = (self.lane(), self.start());
                let stride = self.tape.pick(4) + 2;
                let index = self.op_with(Op::IMul, lane, stride);
                (self.op(Op::IAdd, &[index, start]), Feature::LoadStrided)
            }
            5 => {
                let lane = self.lane();
                let last = self.tape.of(&[15u32, 63, 7, 100]);
                let last = self.constant(last);
                (self.op(Op::ISub, &[last, lane]), Feature::LoadReversed)
            }
            6 | 7 => {
                let value = self.value(Kind::Int);
                let mask = self.tape.of(&[15u32, 63, 255, 3, 1023]);
                (self.op_with(Op::And, value, mask), Feature::LoadRandom)
            }
            8 => {
                let lane = self.lane();
                let start = 0x3fff_ffff - self.tape.pick(24);
                (self.op_with(Op::IAdd, lane, start), Feature::LoadSaturating)
            }
            9 => (self.near_end(), Feature::LoadNearEnd),
            10 => {
                let (lane, back) = (self.lane(), self.tape.pick(24));
                (self.op_with(Op::ISub, lane, back), Feature::LoadSaturating)
            }
            _ => (self.value(Kind::Int), Feature::LoadRandom),
        };
        self.mark(feature);
        (value, feature)
    }

    /// Indices on both sides of some buffer's end.
    fn near_end(&mut self) -> Value {
        let kind = Kind::Buffer(self.tape.of(&[super::scope::Class::ReadOnly, super::scope::Class::Uniform]));
        let buffer = self.value(kind);
        let level = self.level(&[buffer]);
        let bytes = self.builder.push_value(InstData::BufferSize { buffer }, Kind::Int.ty());
        self.scope.note(bytes, level);
        let words = self.op_with(Op::LShr, bytes, 2);
        let back = self.tape.pick(20);
        let first = self.op_with(Op::ISub, words, back);
        let lane = self.lane();
        self.op(Op::IAdd, &[first, lane])
    }

    /// A byte offset for a load, computed from an index in one of the ways of shaders.
    pub(super) fn offset(&mut self) -> Value {
        if self.tape.chance(12) {
            self.mark(Feature::LoadWrapping);
            let lane = self.lane();
            let bytes = self.op_with(Op::Shl, lane, 2);
            let start = 0u32.wrapping_sub(4 * self.tape.pick(20));
            return self.op_with(Op::IAdd, bytes, start);
        }
        let (index, _) = self.index();
        let offset = match self.tape.pick(6) {
            0..=2 => {
                let base = 4 * self.tape.pick(5);
                let base = self.constant(base);
                self.element(base, index, 4)
            }
            3 => {
                let (base, stride) = (self.constant(0u32), self.tape.of(&[8u32, 12, 16, 20, 64]));
                let row = self.element(base, index, stride);
                let column = self.value(Kind::Int);
                let column = self.op_with(Op::And, column, 3);
                self.element(row, column, 4)
            }
            4 => {
                let bytes = self.op_with(Op::Shl, index, 2);
                let start = 4 * self.tape.pick(9);
                self.op_with(Op::IAdd, bytes, start)
            }
            _ => self.op_with(Op::IMul, index, 4),
        };
        if self.options.unaligned && self.tape.chance(40) {
            self.mark(Feature::LoadUnaligned);
            let bytes = self.tape.pick(3) + 1;
            return self.op_with(Op::IAdd, offset, bytes);
        }
        offset
    }
}
