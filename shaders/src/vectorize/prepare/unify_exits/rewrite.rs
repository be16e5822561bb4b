//! Redirects a loop's divergent exits to one block, and replaces uses of live-out values after it.

use foldhash::HashMap;
use smallvec::{SmallVec, smallvec};

use super::plan::{ExitPlan, LiveOutLocation, LiveOutUse};
use crate::ir::{
    Access, Block, BlockCall, BlockData, Inst, InstData, Kernel, Op, Place, Type, Value, ValueDef, Variable,
    VariableData, VariableSpace, Width,
};

impl ExitPlan {
    /// Changes the kernel. Returns the arguments with unspecified values.
    pub(super) fn carry_out(self, kernel: &mut Kernel) -> Vec<Value> {
        let mut entry = Vec::new();
        let fillers: HashMap<Type, Value> = [Type::Bool, Type::I32, Type::F32]
            .map(|ty| (ty, constant(kernel, &mut entry, ty, 0)))
            .into_iter()
            .collect();
        let numbers: Vec<Value> =
            (0..self.targets.len() as u64).map(|number| constant(kernel, &mut entry, Type::I32, number)).collect();
        let block = kernel.blocks.push(BlockData::default());
        let types = std::iter::once(Type::I32).chain(self.slots.iter().copied());
        let params: SmallVec<[Value; 4]> =
            (0..).zip(types).map(|(index, ty)| kernel.values.push(ValueDef::Param { block, index, ty })).collect();
        self.redirect_exits(kernel, block, &fillers, &numbers);
        self.switch(kernel, block, params);
        let memory = LiveOutMemory::new(kernel, &mut entry, self.words);
        self.replace_uses(kernel, block, &memory);
        if self.words > 0 {
            self.store(kernel, &memory);
        }
        let first = kernel.layout[0];
        kernel.blocks[first].insts.splice(0..0, entry);
        fillers.into_values().collect()
    }

    /// Redirects the exit edges to the new block.
    fn redirect_exits(&self, kernel: &mut Kernel, block: Block, fillers: &HashMap<Type, Value>, numbers: &[Value]) {
        let numbers: HashMap<Block, Value> = self.targets.iter().copied().zip(numbers.iter().copied()).collect();
        let nothing: Vec<Value> = self.slots.iter().map(|ty| fillers[ty]).collect();
        for &from in &self.blocks {
            let Some(&last) = kernel.blocks[from].insts.last() else { continue };
            for call in kernel.insts[last].targets_mut() {
                let Some(exit) = self.exits.get(&call.block) else { continue };
                let mut args = nothing.clone();
                exit.params.iter().zip(&call.args).for_each(|(&slot, &arg)| args[slot] = arg);
                exit.own.iter().for_each(|&(value, slot)| args[slot] = value);
                for (value, slot, known) in &self.common {
                    if known.contains(from) {
                        args[*slot] = *value;
                    }
                }
                kernel.work.visit(args.len());
                let args = std::iter::once(numbers[&call.block]).chain(args).collect();
                *call = BlockCall { block, args };
            }
        }
    }

    /// Terminates the new block with a switch to the original exit blocks.
    fn switch(&self, kernel: &mut Kernel, block: Block, params: SmallVec<[Value; 4]>) {
        let call = |target: Block| {
            let args = self.exits[&target].params.iter().map(|&slot| params[1 + slot]).collect();
            BlockCall { block: target, args }
        };
        let Some((&last, rest)) = self.targets.split_last() else { return };
        let cases = (0..).zip(rest).map(|(number, &target)| (number, call(target))).collect();
        let data = InstData::Switch { selector: params[0], default: call(last), cases };
        let switch = kernel.insts.push(data);
        kernel.blocks[block] = BlockData { insts: vec![switch], params, merge: None };
        // After the loop's last block; the layout is sorted again afterwards.
        kernel.layout.push(block);
    }

    /// Replaces live-out values at their uses by parameters of `block` or by loads from memory.
    fn replace_uses(&self, kernel: &mut Kernel, block: Block, memory: &LiveOutMemory) {
        let mut of_block: HashMap<Block, Vec<&LiveOutUse>> = HashMap::default();
        let mut order = Vec::new();
        for found in &self.uses {
            let uses = of_block.entry(found.block).or_default();
            if uses.is_empty() {
                order.push(found.block);
            }
            uses.push(found);
        }
        for at in order {
            let mut insts = Vec::new();
            let mut loaded: HashMap<Value, Value> = HashMap::default();
            let mut uses = of_block[&at].iter().peekable();
            for inst in std::mem::take(&mut kernel.blocks[at].insts) {
                if uses.next_if(|found| found.inst == inst).is_some() {
                    let mut values: SmallVec<[Value; 4]> = SmallVec::new();
                    kernel.insts[inst].for_each_use(|value| values.push(value));
                    for value in values {
                        let to = match self.locations.get(&value) {
                            None => continue,
                            Some(&LiveOutLocation::Slot(slot)) => kernel.blocks[block].params[1 + slot],
                            Some(&LiveOutLocation::Memory(word)) => *loaded
                                .entry(value)
                                .or_insert_with(|| memory.load(kernel, &mut insts, word, kernel.ty(value))),
                        };
                        kernel.insts[inst].for_each_use_mut(|used| {
                            if *used == value {
                                *used = to;
                            }
                        });
                    }
                }
                insts.push(inst);
            }
            kernel.blocks[at].insts = insts;
        }
    }

    /// Stores values in memory after their definitions.
    fn store(&self, kernel: &mut Kernel, memory: &LiveOutMemory) {
        for &block in &self.blocks {
            let mut insts = Vec::new();
            let word = |value: Value| match self.locations.get(&value) {
                Some(&LiveOutLocation::Memory(word)) => Some((value, word)),
                _ => None,
            };
            let params: Vec<_> = kernel.blocks[block].params.iter().filter_map(|&param| word(param)).collect();
            for (param, word) in params {
                memory.store(kernel, &mut insts, word, param);
            }
            for inst in std::mem::take(&mut kernel.blocks[block].insts) {
                insts.push(inst);
                if let Some((value, word)) = kernel.results[inst].and_then(word) {
                    memory.store(kernel, &mut insts, word, value);
                }
            }
            kernel.blocks[block].insts = insts;
        }
    }
}

/// A private variable for the live-out values without a slot.
struct LiveOutMemory {
    variable: Variable,
    /// The offset constant of each word.
    offsets: Vec<Value>,
    zero: Value,
    one: Value,
}

impl LiveOutMemory {
    fn new(kernel: &mut Kernel, entry: &mut Vec<Inst>, words: usize) -> Self {
        let variable = Variable::from_u32(kernel.variables.len() as u32);
        if words > 0 {
            let (space, name) = (VariableSpace::Private, "words after exits".into());
            kernel.variables.push(VariableData { space, bytes: 4 * words as u32, words: Vec::new(), name });
        }
        let mut number = |bits| constant(kernel, entry, Type::I32, bits);
        let offsets = (0..words as u64).map(|word| number(4 * word)).collect();
        Self { variable, offsets, zero: number(0), one: number(1) }
    }

    fn place(&self, word: usize) -> Place {
        Place::Variable { variable: self.variable, offset: self.offsets[word] }
    }

    /// Booleans are stored as 0 or 1.
    fn load(&self, kernel: &mut Kernel, insts: &mut Vec<Inst>, word: usize, ty: Type) -> Value {
        let of = if ty == Type::Bool { Type::I32 } else { ty };
        let load = InstData::Load { ty: of, width: Width::Word, place: self.place(word), access: Access::default() };
        let value = result(kernel, insts, load, of);
        if ty != Type::Bool {
            return value;
        }
        result(kernel, insts, InstData::Pure { op: Op::INe, args: smallvec![value, self.zero] }, ty)
    }

    fn store(&self, kernel: &mut Kernel, insts: &mut Vec<Inst>, word: usize, mut value: Value) {
        if kernel.ty(value) == Type::Bool {
            let data = InstData::Select { condition: value, then: self.one, otherwise: self.zero };
            value = result(kernel, insts, data, Type::I32);
        }
        let data = InstData::Store { width: Width::Word, place: self.place(word), value, access: Access::default() };
        insts.push(kernel.insts.push(data));
    }
}

fn result(kernel: &mut Kernel, insts: &mut Vec<Inst>, data: InstData, ty: Type) -> Value {
    let inst = kernel.insts.push(data);
    let value = kernel.define(inst, ty);
    insts.push(inst);
    value
}

/// A constant for the start of the entry block.
fn constant(kernel: &mut Kernel, entry: &mut Vec<Inst>, ty: Type, bits: u64) -> Value {
    result(kernel, entry, InstData::Const { ty, bits }, ty)
}
