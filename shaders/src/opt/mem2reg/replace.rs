//! Replaces loads by the current value of the word; stores set that value.

use cranelift_entity::packed_option::PackedOption;

use super::frontier::Joins;
use super::words::{PromotableWords, Promotion};
use crate::analysis::{Dominators, WalkStep, dominator_walk};
use crate::ir::{Block, Inst, InstData, Kernel, Op, Type, Value, ValueDef};
use crate::opt::aliases::Aliases;
use crate::opt::cfg;

/// Replaces the accesses of promoted words.
pub(super) fn run(kernel: &mut Kernel, dominators: &Dominators, words: &PromotableWords, joins: &Joins) {
    let walk = dominator_walk(kernel, dominators);
    let current = vec![PackedOption::default(); words.all.len()];
    let mut replacer =
        Replacer { kernel, words, joins, current, undo: Vec::new(), aliases: Aliases::default(), zeros: [None; 2] };
    let mut marks = Vec::new();
    for step in walk {
        match step {
            WalkStep::Enter(block) => {
                marks.push(replacer.undo.len());
                replacer.block(block);
            }
            WalkStep::Leave(_) => replacer.undo(marks.pop().unwrap_or(0)),
        }
    }
    let (zeros, aliases) = (replacer.zeros, replacer.aliases);
    aliases.apply(kernel);
    let zeros = zeros.into_iter().flatten().map(|(inst, _)| inst);
    kernel.blocks[kernel.layout[0]].insts.splice(0..0, zeros);
}

struct Replacer<'a> {
    kernel: &'a mut Kernel,
    words: &'a PromotableWords,
    joins: &'a Joins,
    /// The current value of each word; none stands for the initial 0.
    current: Vec<PackedOption<Value>>,
    /// Values to restore when the walk leaves a block.
    undo: Vec<(usize, PackedOption<Value>)>,
    aliases: Aliases,
    /// Constants 0 of types `i32` and `f32`, to be inserted at the start of the entry block.
    zeros: [Option<(Inst, Value)>; 2],
}

impl Replacer<'_> {
    fn set(&mut self, word: usize, value: Value) {
        let before = std::mem::replace(&mut self.current[word], value.into());
        self.undo.push((word, before));
    }

    fn undo(&mut self, mark: usize) {
        for (word, before) in self.undo.drain(mark..).rev() {
            self.current[word] = before;
        }
    }

    /// The current value of the word.
    fn value(&mut self, word: usize) -> Value {
        match self.current[word].expand() {
            Some(value) => value,
            None => self.zero(self.words.all[word].ty()),
        }
    }

    fn zero(&mut self, ty: Type) -> Value {
        let kernel = &mut *self.kernel;
        let entry = &mut self.zeros[usize::from(ty == Type::F32)];
        entry.get_or_insert_with(|| cfg::create(kernel, InstData::Const { ty, bits: 0 }, ty, 0)).1
    }

    fn block(&mut self, block: Block) {
        for &word in &self.joins[block] {
            let index = self.kernel.blocks[block].params.len() as u32;
            let ty = self.words.all[word].ty();
            let param = self.kernel.values.push(ValueDef::Param { block, index, ty });
            self.kernel.blocks[block].params.push(param);
            self.set(word, param);
        }
        let before = std::mem::take(&mut self.kernel.blocks[block].insts);
        let mut after = Vec::with_capacity(before.len());
        for inst in before {
            self.inst(inst, &mut after);
        }
        self.kernel.blocks[block].insts = after;
    }

    fn inst(&mut self, inst: Inst, after: &mut Vec<Inst>) {
        let promotion = self.words.promotion(self.kernel, &self.kernel.insts[inst]).unwrap_or(Promotion::Memory);
        match (promotion, &self.kernel.insts[inst]) {
            (Promotion::Word(word), InstData::Load { ty, .. }) => {
                let ty = *ty;
                let value = self.value(word);
                let value = self.convert(inst, value, ty, after);
                self.replace(inst, value);
            }
            (Promotion::Word(word), InstData::Store { value, .. }) => {
                let value = self.aliases.shorten(*value);
                let value = self.convert(inst, value, self.words.all[word].ty(), after);
                self.set(word, value);
            }
            (Promotion::Dead, InstData::Load { ty, .. }) => {
                let zero = self.zero(*ty);
                self.replace(inst, zero);
            }
            (Promotion::Dead, InstData::Store { .. }) => {}
            _ => {
                self.add_arguments(inst);
                after.push(inst);
            }
        }
    }

    fn replace(&mut self, load: Inst, value: Value) {
        if let Some(result) = self.kernel.results[load] {
            self.aliases.replace(result, value);
        }
    }

    /// The bits as a value of another type.
    fn convert(&mut self, inst: Inst, value: Value, ty: Type, after: &mut Vec<Inst>) -> Value {
        if self.kernel.ty(value) == ty {
            return value;
        }
        let op = if ty == Type::F32 { Op::FloatFromBits } else { Op::FloatBits };
        let data = InstData::Pure { op, args: smallvec::smallvec![value] };
        let (inst, value) = cfg::create(self.kernel, data, ty, self.kernel.origins[inst]);
        after.push(inst);
        value
    }

    /// Adds the arguments for new parameters to a branch.
    fn add_arguments(&mut self, inst: Inst) {
        if !self.kernel.insts[inst].is_terminator() {
            return;
        }
        let count = self.kernel.insts[inst].targets().len();
        for number in 0..count {
            let Some(target) = self.kernel.insts[inst].target(number).map(|call| call.block) else { continue };
            let joins = self.joins;
            let args: Vec<Value> = joins[target].iter().map(|&word| self.value(word)).collect();
            if !args.is_empty()
                && let Some(call) = self.kernel.insts[inst].targets_mut().into_iter().nth(number)
            {
                call.args.extend(args);
            }
        }
    }
}
