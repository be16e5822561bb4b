//! Global value numbering: an instruction that computes the same as a dominating one is replaced by it.
//!
//! A walk over the dominator tree keeps a table from an instruction's [`ExpressionKey`] to the first instruction with
//! that key; leaving a block removes its entries. Loads are included where memory cannot change: push constants and
//! uniform buffers.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::aliases::Aliases;
use crate::analysis::{Dominators, WalkStep, dominator_walk};
use crate::ir::{Access, Block, BufferSpace, Inst, InstData, Kernel, Place, Value};

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let walk = dominator_walk(kernel, &Dominators::new(kernel));
    let size = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum();
    let table = HashMap::with_capacity_and_hasher(size, RandomState::default());
    let mut numbering = Numbering { kernel, table, undo: Vec::new(), aliases: Aliases::default() };
    let mut marks = Vec::new();
    for step in walk {
        match step {
            WalkStep::Enter(block) => {
                marks.push(numbering.undo.len());
                numbering.block(block);
            }
            WalkStep::Leave(_) => numbering.leave(marks.pop().unwrap_or(0)),
        }
    }
    let aliases = numbering.aliases;
    aliases.apply(kernel);
}

/// What an instruction computes, from which values. Two instructions with one key have one result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ExpressionKey {
    /// Kind of instruction; operation, type or component; number (constant, stride, width).
    computation: (u8, u8, u64),
    operands: [u32; 4],
}

/// Placeholder for an absent operand: no value has this number.
const NONE: u32 = u32::MAX;

impl ExpressionKey {
    fn new(kind: u8, which: u8, number: u64, values: &[Value]) -> Self {
        let mut operands = [NONE; 4];
        for (operand, value) in operands.iter_mut().zip(values) {
            *operand = value.as_u32();
        }
        Self { computation: (kind, which, number), operands }
    }

    /// The key of a load, valid while nothing has been written in between; `None` for other instructions and for loads
    /// that are not plain.
    pub(super) fn of_load(data: &InstData) -> Option<Self> {
        let InstData::Load { ty, width, place, access } = *data else { return None };
        if access != Access::default() {
            return None;
        }
        let (kind, which, values) = match place {
            Place::Buffer { space, buffer, offset } => (14, space as u64, [buffer, offset]),
            Place::Variable { variable, offset } => (15, variable.as_u32().into(), [offset; 2]),
            Place::Push { offset } => (7, 0, [offset; 2]),
        };
        Some(Self::new(kind, ty as u8, which << 32 | u64::from(width.bytes()), &values))
    }

    /// `None` for instructions with an effect, and for loads of memory that can change.
    pub(super) fn of(data: &InstData) -> Option<Self> {
        Some(match *data {
            InstData::Const { ty, bits } => Self::new(0, ty as u8, bits, &[]),
            InstData::Pure { op, ref args } => {
                let mut key = Self::new(1, op as u8, 0, args);
                if op.is_commutative() && key.operands[0] > key.operands[1] {
                    key.operands.swap(0, 1);
                }
                key
            }
            InstData::Select { condition, then, otherwise } => Self::new(2, 0, 0, &[condition, then, otherwise]),
            InstData::BuiltIn { builtin, component } => Self::new(3, builtin as u8, component.into(), &[]),
            InstData::Element { base, index, stride } => Self::new(4, 0, stride.into(), &[base, index]),
            InstData::Buffer { binding, index } => Self::new(5, 0, binding.as_u32().into(), &[index]),
            InstData::BufferSize { buffer } => Self::new(6, 0, 0, &[buffer]),
            InstData::BufferNumber { buffer } => Self::new(10, 0, 0, &[buffer]),
            InstData::BufferOf { number } => Self::new(11, 0, 0, &[number]),
            InstData::BufferAt { low, high } => Self::new(12, 0, 0, &[low, high]),
            InstData::BufferNear { low, high } => Self::new(13, 0, 0, &[low, high]),
            InstData::BufferOffset { buffer, low, high } => Self::new(14, 0, 0, &[buffer, low, high]),
            InstData::Reaches { buffer, offset } => Self::new(15, 0, 0, &[buffer, offset]),
            InstData::ImageField { image, field } => Self::new(9, field as u8, 0, &[image]),
            InstData::Load { access, .. } if access.volatile => return None,
            InstData::Load { ty, width, place: Place::Push { offset }, .. } => {
                Self::new(7, ty as u8, width.bytes().into(), &[offset])
            }
            InstData::Load {
                ty, width, place: Place::Buffer { space: BufferSpace::Uniform, buffer, offset }, ..
            } => Self::new(8, ty as u8, width.bytes().into(), &[buffer, offset]),
            _ => return None,
        })
    }
}

struct Numbering<'k> {
    kernel: &'k mut Kernel,
    table: HashMap<ExpressionKey, Inst, RandomState>,
    /// Inserted keys, each with the entry that it replaced.
    undo: Vec<(ExpressionKey, Option<Inst>)>,
    aliases: Aliases,
}

impl Numbering<'_> {
    fn block(&mut self, block: Block) {
        let mut insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        insts.retain(|&inst| self.stays(inst));
        self.kernel.blocks[block].insts = insts;
    }

    fn leave(&mut self, mark: usize) {
        for (key, before) in self.undo.drain(mark..).rev() {
            match before {
                Some(inst) => self.table.insert(key, inst),
                None => self.table.remove(&key),
            };
        }
    }

    /// Whether the instruction is the first with its key; otherwise its result becomes an alias.
    fn stays(&mut self, inst: Inst) -> bool {
        let data = &mut self.kernel.insts[inst];
        data.for_each_use_mut(|value| *value = self.aliases.shorten(*value));
        let (Some(key), Some(value)) = (ExpressionKey::of(data), self.kernel.results[inst]) else { return true };
        let first = self.table.get(&key).copied();
        if let Some(other) = first.filter(|&other| self.may_stand_for(other, inst))
            && let Some(instead) = self.kernel.results[other]
        {
            return !self.aliases.replace(value, instead);
        }
        self.table.insert(key, inst);
        self.undo.push((key, first));
        true
    }

    /// A `no_contraction` instruction may replace a contractible one; the reverse would allow a forbidden contraction.
    fn may_stand_for(&self, first: Inst, inst: Inst) -> bool {
        let precise = &self.kernel.no_contraction;
        precise.contains(first) || !precise.contains(inst)
    }
}
