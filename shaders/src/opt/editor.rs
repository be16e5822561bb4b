//! Peephole driver: rewrites instructions one by one, in layout order. An instruction is replaced by another
//! instruction or by a value, or stays. Constants move to the start of the entry block, each once.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::aliases::Aliases;
use crate::ir::{Block, Inst, InstData, Kernel, Op, ScalarValue, Type, Value};

/// The replacement of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Replacement {
    /// Uses the value instead; the instruction is removed.
    Existing(Value),
    /// Another instruction, with the same result.
    Inst(InstData),
}

/// Initial capacity for distinct constants: enough for most kernels.
const CONSTANTS: usize = 48;

/// Maximum number of rewrites of one instruction.
const ROUNDS: u32 = 8;

/// The rules of a pass: what an instruction whose operands are final is replaced by.
pub(super) trait RewriteRules {
    /// `None` leaves the instruction as it is.
    fn rewrite(&mut self, editor: &mut Editor<'_>, data: &InstData) -> Option<Replacement>;
}

/// Applies the rules to every instruction of the kernel.
pub(super) fn edit(kernel: &mut Kernel, rules: &mut impl RewriteRules) {
    let mut editor = Editor::new(kernel);
    for position in 0..editor.kernel.layout.len() {
        let block = editor.kernel.layout[position];
        editor.edit_block(block, rules);
    }
    editor.finish();
}

/// A kernel that is being rewritten.
pub(super) struct Editor<'k> {
    kernel: &'k mut Kernel,
    aliases: Aliases,
    /// The block being rewritten.
    block: Option<Block>,
    /// Its instructions so far, emitted ones included.
    insts: Vec<Inst>,
    /// Constants of the prologue, by type and bits.
    constants: HashMap<(Type, u64), Value, RandomState>,
    prologue: Vec<Inst>,
    /// The instruction being rewritten; emitted instructions inherit its source position and `no_contraction`.
    at: Option<Inst>,
}

impl<'k> Editor<'k> {
    fn new(kernel: &'k mut Kernel) -> Self {
        Self {
            kernel,
            aliases: Aliases::default(),
            block: None,
            insts: Vec::new(),
            constants: HashMap::with_capacity_and_hasher(CONSTANTS, RandomState::default()),
            prologue: Vec::new(),
            at: None,
        }
    }

    fn edit_block(&mut self, block: Block, rules: &mut impl RewriteRules) {
        let old = std::mem::take(&mut self.kernel.blocks[block].insts);
        self.block = Some(block);
        self.insts = Vec::with_capacity(old.len() + 4);
        for inst in old {
            self.edit_inst(inst, rules);
        }
        self.kernel.blocks[block].insts = std::mem::take(&mut self.insts);
    }

    fn edit_inst(&mut self, inst: Inst, rules: &mut impl RewriteRules) {
        self.at = Some(inst);
        // Taken out of the kernel while rules read it, which saves a copy.
        let mut data = std::mem::replace(&mut self.kernel.insts[inst], InstData::Unreachable);
        data.for_each_use_mut(|value| *value = self.aliases.shorten(*value));
        let mut same = None;
        for _ in 0..ROUNDS {
            match rules.rewrite(self, &data) {
                Some(Replacement::Inst(other)) => data = other,
                Some(Replacement::Existing(value)) => {
                    same = Some(value);
                    break;
                }
                None => break,
            }
        }
        let is_constant = matches!(data, InstData::Const { .. });
        if let (InstData::Const { ty, bits }, Some(result)) = (&data, self.kernel.results[inst]) {
            same = same.or(self.adopt_constant(inst, result, (*ty, *bits)));
        }
        self.kernel.insts[inst] = data;
        let replaced = match (same, self.kernel.results[inst]) {
            (Some(same), Some(result)) => self.aliases.replace(result, same),
            _ => false,
        };
        if !replaced && !is_constant {
            self.insts.push(inst);
        }
    }

    /// Moves a constant to the prologue, or returns the value there that has the same type and bits.
    fn adopt_constant(&mut self, inst: Inst, result: Value, key: (Type, u64)) -> Option<Value> {
        let first = *self.constants.entry(key).or_insert(result);
        if first == result {
            self.prologue.push(inst);
            return None;
        }
        Some(first)
    }

    fn finish(self) {
        let Self { kernel, aliases, prologue, .. } = self;
        if let Some(&entry) = kernel.layout.first() {
            kernel.blocks[entry].insts.splice(0..0, prologue);
        }
        aliases.apply(kernel);
    }

    /// The kernel as it is now.
    pub(super) fn kernel(&self) -> &Kernel {
        self.kernel
    }

    /// The block being rewritten.
    pub(super) fn block(&self) -> Option<Block> {
        self.block
    }

    /// Whether the instruction being rewritten must not be contracted.
    pub(super) fn is_precise(&self) -> bool {
        self.at.is_some_and(|at| self.kernel.no_contraction.contains(at))
    }

    /// The result of the instruction being rewritten.
    pub(super) fn result(&self) -> Option<Value> {
        self.kernel.results[self.at?]
    }

    /// Type of a value.
    pub(super) fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// The bits of a constant.
    pub(super) fn bits(&self, value: Value) -> Option<u32> {
        self.kernel.constant(value).map(|bits| bits as u32)
    }

    /// The instruction that defines a value.
    pub(super) fn definition(&self, value: Value) -> Option<&InstData> {
        self.kernel.definition(value)
    }

    /// The operands of the operation that defines a value, if that operation is `wanted`.
    pub(super) fn args<const N: usize>(&self, value: Value, wanted: Op) -> Option<[Value; N]> {
        match self.definition(value)? {
            InstData::Pure { op, args } if *op == wanted => args[..].try_into().ok(),
            _ => None,
        }
    }

    /// The operand and the constant of a binary operation `wanted` whose second operand is constant.
    pub(super) fn with_constant(&self, value: Value, wanted: Op) -> Option<(Value, u32)> {
        let [a, b] = self.args(value, wanted)?;
        Some((a, self.bits(b)?))
    }

    /// A constant by its bits.
    pub(super) fn constant_bits(&mut self, ty: Type, bits: u64) -> Value {
        if let Some(&value) = self.constants.get(&(ty, bits)) {
            return value;
        }
        let inst = self.kernel.insts.push(InstData::Const { ty, bits });
        self.prologue.push(inst);
        let value = self.kernel.define(inst, ty);
        self.constants.insert((ty, bits), value);
        value
    }

    /// A constant.
    pub(super) fn constant<T: ScalarValue>(&mut self, value: T) -> Value {
        self.constant_bits(T::TYPE, value.to_bits())
    }

    /// Replaces the instruction by a constant.
    pub(super) fn becomes_constant<T: ScalarValue>(&mut self, value: T) -> Option<Replacement> {
        Some(Replacement::Existing(self.constant(value)))
    }

    /// Replaces the instruction by an operation, or by its result if all operands are constant.
    pub(super) fn becomes<const N: usize>(&mut self, op: Op, args: [Value; N]) -> Option<Replacement> {
        Some(match self.fold(op, &args) {
            Some(value) => Replacement::Existing(value),
            None => Replacement::Inst(InstData::Pure { op, args: SmallVec::from_slice(&args) }),
        })
    }

    /// As [`Editor::becomes`], with a constant as second operand.
    pub(super) fn becomes_with(&mut self, op: Op, value: Value, constant: u32) -> Option<Replacement> {
        let constant = self.constant(constant);
        self.becomes(op, [value, constant])
    }

    /// The result of an operation whose operands are all constant.
    pub(super) fn fold(&mut self, op: Op, args: &[Value]) -> Option<Value> {
        let bits: SmallVec<[u64; 4]> = args.iter().map(|&arg| self.kernel.constant(arg)).collect::<Option<_>>()?;
        Some(self.constant_bits(op.result(), op.fold(&bits)))
    }

    /// Emits an operation before the instruction that is being rewritten.
    pub(super) fn pure<const N: usize>(&mut self, op: Op, args: [Value; N]) -> Value {
        match self.fold(op, &args) {
            Some(value) => value,
            None => self.emit(InstData::Pure { op, args: SmallVec::from_slice(&args) }, op.result()),
        }
    }

    /// As [`Editor::pure`], with a constant as second operand.
    pub(super) fn pure_with(&mut self, op: Op, value: Value, constant: u32) -> Value {
        let constant = self.constant(constant);
        self.pure(op, [value, constant])
    }

    /// Emits an instruction before the one that is being rewritten.
    pub(super) fn emit(&mut self, data: InstData, ty: Type) -> Value {
        let inst = self.kernel.insts.push(data);
        if let Some(at) = self.at {
            self.kernel.origins[inst] = self.kernel.origins[at];
            if self.kernel.no_contraction.contains(at) {
                self.kernel.no_contraction.insert(inst);
            }
        }
        self.insts.push(inst);
        self.kernel.define(inst, ty)
    }
}
