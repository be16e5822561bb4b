//! Use counts, liveness and bit-equal aliases of values, computed before selection.

use cranelift_entity::SecondaryMap;

use crate::ir::Op;
use crate::simd::{Block, Inst, InstData, Kernel, Type, Value, ValueDef, WideOp};

/// Uses and aliases of all values of a kernel.
#[derive(Debug)]
pub(super) struct ValueUses {
    counts: SecondaryMap<Value, u32>,
    /// The block of the last use counted; of the only use, if there is one.
    user: SecondaryMap<Value, Option<Block>>,
    /// Whether there are uses in several blocks.
    multi_block: SecondaryMap<Value, bool>,
    live: SecondaryMap<Inst, bool>,
    /// The defining block of a live instruction.
    def_block: SecondaryMap<Inst, Option<Block>>,
    alias: SecondaryMap<Value, Option<Value>>,
}

impl ValueUses {
    /// Counts the uses by live instructions. Uses follow definitions in the layout, so one backward walk visits all
    /// uses of a value before its definition.
    pub(super) fn new(kernel: &Kernel) -> Self {
        let mut uses = Self {
            counts: SecondaryMap::with_capacity(kernel.values.len()),
            user: SecondaryMap::with_capacity(kernel.values.len()),
            multi_block: SecondaryMap::new(),
            live: SecondaryMap::with_capacity(kernel.insts.len()),
            def_block: SecondaryMap::with_capacity(kernel.insts.len()),
            alias: aliases(kernel),
        };
        for &block in kernel.layout.iter().rev() {
            for &inst in kernel.blocks[block].insts.iter().rev() {
                let data = &kernel.insts[inst];
                let used = kernel.results[inst].iter().any(|&result| uses.counts[result] > 0);
                if !(used || data.has_effect()) || uses.is_alias(kernel, inst) {
                    continue;
                }
                uses.live[inst] = true;
                uses.def_block[inst] = Some(block);
                data.for_each_use(|value| uses.count(value, block));
            }
        }
        uses
    }

    fn count(&mut self, value: Value, block: Block) {
        let value = self.canonical(value);
        self.counts[value] += 1;
        if self.user[value].is_some_and(|other| other != block) {
            self.multi_block[value] = true;
        }
        self.user[value] = Some(block);
    }

    fn is_alias(&self, kernel: &Kernel, inst: Inst) -> bool {
        kernel.results[inst].first().is_some_and(|&result| self.alias[result].is_some())
    }

    /// The representative of the values with the same bits.
    pub(super) fn canonical(&self, value: Value) -> Value {
        self.alias[value].unwrap_or(value)
    }

    /// Whether code is needed for the instruction.
    pub(super) fn live(&self, inst: Inst) -> bool {
        self.live[inst]
    }

    pub(super) fn is_used(&self, value: Value) -> bool {
        self.counts[value] > 0
    }

    /// Whether the value is used once, in this block.
    pub(super) fn single_use(&self, value: Value, block: Block) -> bool {
        self.counts[value] == 1 && self.user[value] == Some(block)
    }

    /// Whether the value is used in this block only.
    pub(super) fn is_local(&self, value: Value, block: Block) -> bool {
        let value = self.canonical(value);
        self.user[value] == Some(block) && !self.multi_block[value]
    }

    /// Whether the value is defined in this block and its only use is in the block.
    pub(super) fn lives_within(&self, kernel: &Kernel, value: Value, block: Block) -> bool {
        let def_block = match kernel.values[value] {
            ValueDef::Result { inst, .. } => self.def_block[inst],
            ValueDef::Param { block, .. } => Some(block),
        };
        def_block == Some(block) && self.single_use(value, block)
    }
}

/// Bit-equal aliases: bit casts between floats and integers, truth values as numbers, and zero extensions of 32 bits to
/// 64, as registers hold zeros above.
fn aliases(kernel: &Kernel) -> SecondaryMap<Value, Option<Value>> {
    let mut alias: SecondaryMap<Value, Option<Value>> = SecondaryMap::with_capacity(kernel.values.len());
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            let source = match &kernel.insts[inst] {
                InstData::Pure { op: Op::FloatBits | Op::FloatFromBits, args } => args[0],
                InstData::Pure { op: Op::BoolToInt, args } if kernel.ty(args[0]) == Type::S1 => args[0],
                InstData::Wide { op: WideOp::Extend, args } => args[0],
                _ => continue,
            };
            alias[kernel.results[inst][0]] = Some(alias[source].unwrap_or(source));
        }
    }
    alias
}
