//! Ownership of words, which makes programs free of data races by construction.
//!
//! Every invocation owns words in some memories, by a rule that gives no word to two invocations. It reads words of
//! others only while the memory is open (between two uniform barriers), and no invocation writes then.

use spelter_shaders::ir::{AtomicOp, Binding, BufferSpace, Op, Place, Value, Variable};

use super::feature::Feature;
use super::maker::Maker;
use super::narrow::Packed;
use super::picture::Pictures;
use super::scope::{Class, Kind, Level};

/// All memories that a program writes.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Memories in which invocations own words.
    pub(super) regions: Vec<Region>,
    /// Memories for atomics.
    pub(super) counters: Vec<Counter>,
    /// The counter in which tickets are summed.
    pub(super) sum: Option<Counter>,
    /// Private memory of each invocation: variable and words.
    pub(super) private: Vec<(Variable, u32)>,
    /// One word for each invocation of the dispatch, in its order: the results.
    pub(super) out: Option<Value>,
    /// A few words for each workgroup, and how many are in use.
    pub(super) slots: Option<Value>,
    pub(super) slots_taken: u32,
    /// Whether some invocations of a workgroup may have returned.
    pub(super) returned: bool,
    /// The buffer in which marks are counted.
    pub(super) marks: Option<Value>,
    /// Memories in which invocations own sub-words.
    pub(super) packed: Vec<Packed>,
    /// Images.
    pub(super) pictures: Vec<Pictures>,
    /// The addresses of all buffers, 8 bytes for each.
    pub(super) addresses: Option<Binding>,
    /// Bindings of read-only storage and of uniform buffers, with the length of their arrays.
    pub(super) bindings: Vec<(Binding, u32, Class)>,
    /// The invocation's number in the dispatch, from 0; its workgroup's number; its number in the workgroup.
    pub(super) global: Option<Value>,
    pub(super) group: Option<Value>,
    pub(super) local: Option<Value>,
    /// Invocations of a workgroup, workgroups.
    pub(super) invocations: u32,
    pub(super) groups: u32,
}

/// Words for each workgroup in the slots' buffer.
pub(super) const SLOTS: u32 = 16;

/// Memory in which invocations own words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) home: Home,
    pub(super) rule: Rule,
    /// The phase that says whether it is open; `None` for memory that never is.
    pub(super) phase: Option<usize>,
}

/// The memory of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    Variable(Variable),
    Buffers(Class),
}

/// The words that an invocation owns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// Words per invocation.
    pub(super) per: u32,
    /// All first words come before all second ones.
    pub(super) apart: bool,
    /// The last invocation comes first.
    pub(super) reversed: bool,
    /// Bytes before the first word; if negative, the first invocations own nothing.
    pub(super) shift: i32,
    /// Invocations that share the region, or a workgroup's section of it.
    pub(super) sharers: u32,
    /// Whether each workgroup has a section.
    pub(super) sections: bool,
    /// Whether invocations are numbered in the dispatch rather than in the workgroup.
    pub(super) global: bool,
}

/// Memory on which all invocations perform one kind of atomic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) home: CounterHome,
    pub(super) words: u32,
    pub(super) kind: CounterKind,
    pub(super) phase: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum CounterHome {
    Variable(Variable),
    Buffer(Value),
}

/// Kinds of atomics on a counter. The operations of all invocations commute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterKind {
    Any(AtomicOp),
    /// On pairs of words.
    Wide(AtomicOp),
    /// Always adds the same number: the set of old values does not depend on the order of operations.
    Ticket(u32),
}

impl Rule {
    /// Words of the whole region, without the shift.
    pub(super) fn words(&self, groups: u32) -> u32 {
        self.per * self.sharers * if self.sections { groups } else { 1 }
    }
}

impl Maker {
    /// Whether memory with a phase can be written here. Not where some invocations may continue to a return while
    /// others reach the barrier that opens it: then the order of the two is unspecified.
    pub(super) fn is_writable(&self, phase: Option<usize>) -> bool {
        let apart = self.options.loose_returns && self.ctx != Level::Workgroup;
        !(self.is_open(phase) || phase.is_some() && apart)
    }

    /// Whether a phase forbids writes now.
    pub(super) fn is_open(&self, phase: Option<usize>) -> bool {
        phase.is_some_and(|phase| self.phases[phase])
    }

    /// The index of the invocation's word `k`.
    fn own_word(&mut self, rule: Rule, k: Value) -> Value {
        let lane = if rule.global { self.memory.global } else { self.memory.local };
        let mut lane = lane.unwrap_or(k);
        if rule.reversed {
            let last = self.constant(rule.sharers - 1);
            lane = self.op(Op::ISub, &[last, lane]);
        }
        let word = if rule.apart {
            let before = self.op_with(Op::IMul, k, rule.sharers);
            self.op(Op::IAdd, &[before, lane])
        } else {
            let before = self.op_with(Op::IMul, lane, rule.per);
            self.op(Op::IAdd, &[before, k])
        };
        self.in_section(rule, word)
    }

    /// The word's index in the region, from its index in the workgroup's section.
    fn in_section(&mut self, rule: Rule, word: Value) -> Value {
        match self.memory.group {
            Some(group) if rule.sections => {
                let before = self.op_with(Op::IMul, group, rule.per * rule.sharers);
                self.op(Op::IAdd, &[before, word])
            }
            _ => word,
        }
    }

    /// The byte offset of a word, computed in one of several equivalent ways; `true` if it is out of bounds for some
    /// invocations.
    fn own_offset(&mut self, rule: Rule, word: Value) -> (Value, bool) {
        let wraps = rule.shift < 0 || self.tape.chance(3);
        if wraps {
            let bytes = match self.tape.pick(2) {
                0 => self.op_with(Op::IMul, word, 4),
                _ => self.op_with(Op::Shl, word, 2),
            };
            return (self.op_with(Op::IAdd, bytes, rule.shift.cast_unsigned()), false);
        }
        let base = self.constant(rule.shift.cast_unsigned());
        if self.tape.chance(8) {
            // The element saturates: far out of bounds wherever the condition holds.
            let away = self.op_with(Op::Or, word, 0x4000_0000);
            let condition = self.value(Kind::Bool);
            let word = self.builder.select(condition, away, word);
            return (self.element(base, word, 4), true);
        }
        (self.element(base, word, 4), false)
    }

    /// A number below `limit`: constant, or computed from any value.
    pub(super) fn below(&mut self, limit: u32) -> Value {
        if limit < 2 || self.tape.pick(3) != 2 {
            let number = self.tape.pick(limit);
            return self.constant(number);
        }
        let value = self.value(Kind::Int);
        if limit.is_power_of_two() {
            return self.op_with(Op::And, value, limit - 1);
        }
        self.op_with(Op::UMod, value, limit)
    }

    /// The place of a word that the invocation owns. The region must not be open.
    pub(super) fn own_place(&mut self, region: Region, stores: bool) -> Place {
        let k = self.below(region.rule.per);
        let word = self.own_word(region.rule, k);
        let (mut offset, out) = self.own_offset(region.rule, word);
        if stores {
            self.mark_store(region, out);
        }
        let room = region.rule.per > 1 && !region.rule.apart && self.builder.kernel().constant(k) == Some(0);
        let buffer = matches!(region.home, Home::Buffers(_));
        if self.options.unaligned && room && buffer && self.tape.chance(16) {
            // The invocation owns the bytes up to the next word too.
            self.mark(Feature::LoadUnaligned);
            let bytes = self.tape.pick(3) + 1;
            // An offset that is out of bounds must stay there.
            let bytes = self.constant(bytes);
            offset = self.element(offset, bytes, 1);
        }
        self.place(region.home, offset)
    }

    fn mark_store(&mut self, region: Region, out: bool) {
        let rule = region.rule;
        let feature = match (out, rule.reversed, rule.per) {
            (true, ..) => Feature::StoreOutOfBounds,
            (_, true, _) => Feature::StoreReversed,
            (_, _, 1) => Feature::StoreContiguous,
            _ if rule.apart => Feature::StoreContiguous,
            _ => Feature::StoreStrided,
        };
        self.mark(feature);
    }

    /// Places of all words that the invocation owns, as the components of a vector.
    pub(super) fn own_vector(&mut self, region: Region) -> Vec<Place> {
        let zero = self.constant(0u32);
        let word = self.own_word(region.rule, zero);
        let (offset, _) = self.own_offset(region.rule, word);
        let step = if region.rule.apart { region.rule.sharers * 4 } else { 4 };
        let offsets = (0..region.rule.per).map(|k| {
            let delta = self.constant(k * step);
            self.element(offset, delta, 1)
        });
        let offsets: Vec<Value> = offsets.collect();
        // One buffer for all components.
        let first = self.place(region.home, offset);
        let with = |offset: Value| match first {
            Place::Buffer { space, buffer, .. } => Place::Buffer { space, buffer, offset },
            Place::Variable { variable, .. } => Place::Variable { variable, offset },
            Place::Push { .. } => Place::Push { offset },
        };
        offsets.into_iter().map(with).collect()
    }

    /// The place of any word of the workgroup in an open region, and the level at which the load is uniform.
    pub(super) fn shown_place(&mut self, region: Region) -> (Place, Level) {
        let (index, _) = self.index();
        let offset = match region.home {
            Home::Variable(_) => {
                let base = self.constant(0u32);
                self.element(base, index, 4)
            }
            Home::Buffers(_) => {
                let word = self.op_with(Op::UMod, index, region.rule.per * region.rule.sharers);
                let word = self.in_section(region.rule, word);
                let bytes = self.op_with(Op::IMul, word, 4);
                self.op_with(Op::IAdd, bytes, region.rule.shift.cast_unsigned())
            }
        };
        let place = self.place(region.home, offset);
        let level = match place {
            Place::Buffer { buffer, offset, .. } => self.level(&[buffer, offset]),
            _ => self.level(&[offset]),
        };
        (place, level)
    }

    /// The place of a word of an invocation of the same subgroup.
    pub(super) fn subgroup_place(&mut self, region: Region) -> Option<Place> {
        let local = self.memory.local?;
        let first = self.op_with(Op::And, local, !15);
        let other = self.value(Kind::Int);
        let other = self.op_with(Op::And, other, 15);
        let other = self.op(Op::IAdd, &[first, other]);
        // The last subgroup may be small.
        let other = self.op_with(Op::UMin, other, self.memory.invocations - 1);
        let mine = self.memory.local.replace(other);
        let k = self.below(region.rule.per);
        let word = self.own_word(region.rule, k);
        self.memory.local = mine;
        let (offset, _) = self.own_offset(region.rule, word);
        Some(self.place(region.home, offset))
    }

    fn place(&mut self, home: Home, offset: Value) -> Place {
        match home {
            Home::Variable(variable) => Place::Variable { variable, offset },
            Home::Buffers(class) => {
                let buffer = self.value(Kind::Buffer(class));
                let space = if class == Class::Uniform { BufferSpace::Uniform } else { BufferSpace::Storage };
                Place::Buffer { space, buffer, offset }
            }
        }
    }
}
