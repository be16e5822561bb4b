//! Comparable addresses of memory accesses: an object, the unknown part of the byte offset, and its constant part.
//!
//! `element` saturates and `iadd` wraps, but an access happens only below the end of a buffer. So two accesses that
//! happen and have the same unknown part differ in address by exactly the difference of their constants. Accesses out
//! of bounds have results too: two addresses are equal only if what wraps and what saturates are equal on their own.

use foldhash::HashMap;

use crate::ir::{Binding, BufferSpace, InstData, Kernel, Op, Place, Value, ValueDef, Variable};

/// The memory object of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Object {
    /// A variable of the kernel.
    Variable(Variable),
    /// A storage buffer. Equal numbers mean the same descriptor; two descriptors may name the same buffer.
    Storage(u32),
}

/// The address of a 4-byte word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordAddress {
    pub(super) object: Object,
    /// Whether other invocations can access the memory.
    pub(super) shared: bool,
    offset: SplitOffset,
}

/// A byte offset in parts: offsets with equal parts are equal, in bounds or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SplitOffset {
    /// The value number of the unknown part.
    root: u32,
    /// What `iadd` adds to the innermost term; the sum wraps.
    wrapping: u32,
    /// What `element` adds to that; the sum saturates.
    saturating: u32,
}

impl SplitOffset {
    /// The constant part of an offset in bounds, up to a multiple of 2³².
    fn constant(&self) -> u32 {
        self.wrapping.wrapping_add(self.saturating)
    }
}

impl WordAddress {
    /// Whether no byte of one is a byte of the other.
    pub(super) fn is_disjoint(&self, other: &Self) -> bool {
        match (self.object, other.object) {
            (Object::Storage(_), Object::Variable(_)) | (Object::Variable(_), Object::Storage(_)) => true,
            (Object::Variable(one), Object::Variable(two)) if one != two => true,
            (one, two) => {
                // Less than 4 bytes apart, in either direction, means overlap.
                let distance = self.offset.constant().wrapping_sub(other.offset.constant());
                one == two && self.offset.root == other.offset.root && (4..=u32::MAX - 3).contains(&distance)
            }
        }
    }
}

/// The unknown part of an offset.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum OffsetRoot {
    Nothing,
    Value(Value),
    /// Another root plus an index times a stride.
    Element(u32, Value, u32),
}

/// What identifies the descriptor of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum DescriptorIdentity {
    Constant(Binding, u64),
    Dynamic(Binding, Value),
    Value(Value),
}

/// Value numbers of roots and descriptors: equal addresses get equal numbers.
#[derive(Default)]
pub(super) struct Addresses {
    roots: HashMap<OffsetRoot, u32>,
    descriptors: HashMap<DescriptorIdentity, u32>,
}

/// Maximum nesting of `element` instructions that are followed.
const MAX_ARRAY_DEPTH: usize = 8;

impl Addresses {
    /// The address of a place; `None` for uniform buffers and push constants.
    pub(super) fn of(&mut self, kernel: &Kernel, place: &Place) -> Option<WordAddress> {
        let (object, offset) = match *place {
            Place::Variable { variable, offset } => (Object::Variable(variable), offset),
            Place::Buffer { space: BufferSpace::Storage, buffer, offset } => {
                (Object::Storage(self.descriptor(kernel, buffer)), offset)
            }
            Place::Buffer { space: BufferSpace::Uniform, .. } | Place::Push { .. } => return None,
        };
        let offset = self.split(kernel, offset, MAX_ARRAY_DEPTH);
        Some(WordAddress { object, shared: super::is_shared(kernel, object), offset })
    }

    fn descriptor(&mut self, kernel: &Kernel, buffer: Value) -> u32 {
        let descriptor = match kernel.values[buffer] {
            ValueDef::Result { inst, .. } => match kernel.insts[inst] {
                InstData::Buffer { binding, index } => match kernel.constant(index) {
                    Some(bits) => DescriptorIdentity::Constant(binding, bits),
                    None => DescriptorIdentity::Dynamic(binding, index),
                },
                _ => DescriptorIdentity::Value(buffer),
            },
            ValueDef::Param { .. } => DescriptorIdentity::Value(buffer),
        };
        let next = self.descriptors.len() as u32;
        *self.descriptors.entry(descriptor).or_insert(next)
    }

    fn root(&mut self, root: OffsetRoot) -> u32 {
        let next = self.roots.len() as u32;
        *self.roots.entry(root).or_insert(next)
    }

    /// The parts of an offset.
    fn split(&mut self, kernel: &Kernel, offset: Value, depth: usize) -> SplitOffset {
        if let Some(bits) = kernel.constant(offset) {
            return SplitOffset { saturating: bits as u32, ..self.innermost(OffsetRoot::Nothing) };
        }
        let data = match kernel.values[offset] {
            ValueDef::Result { inst, .. } => Some(&kernel.insts[inst]),
            ValueDef::Param { .. } => None,
        };
        match data {
            Some(&InstData::Element { base, index, stride }) if depth > 0 => {
                let base = self.split(kernel, base, depth - 1);
                match kernel.constant(index) {
                    Some(index) => {
                        let distance = (index as u32).saturating_mul(stride);
                        SplitOffset { saturating: base.saturating.saturating_add(distance), ..base }
                    }
                    None => SplitOffset { root: self.root(OffsetRoot::Element(base.root, index, stride)), ..base },
                }
            }
            Some(InstData::Pure { op: Op::IAdd, args }) => match [args[0], args[1]].map(|arg| kernel.constant(arg)) {
                // Not followed further: the other operand may have saturated before the constant is added.
                [None, Some(bits)] => {
                    SplitOffset { wrapping: bits as u32, ..self.innermost(OffsetRoot::Value(args[0])) }
                }
                [Some(bits), None] => {
                    SplitOffset { wrapping: bits as u32, ..self.innermost(OffsetRoot::Value(args[1])) }
                }
                _ => self.innermost(OffsetRoot::Value(offset)),
            },
            _ => self.innermost(OffsetRoot::Value(offset)),
        }
    }

    /// An offset of one term.
    fn innermost(&mut self, term: OffsetRoot) -> SplitOffset {
        SplitOffset { root: self.root(term), wrapping: 0, saturating: 0 }
    }
}
