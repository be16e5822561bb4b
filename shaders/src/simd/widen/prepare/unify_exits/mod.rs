//! Gives a loop of many exits one, from which control goes on to where each led.
//!
//! Lanes that leave a loop wait at the block where they go on until the loop is over, so the loop passes a mask of them on, and
//! so it does with each value that they take along: with N exits, each of N blocks would pass N masks. Instead lanes note the
//! number of their exit, and words that only one exit takes along share a place with those of the others. LLVM's `UnifyLoopExits` does
//! so for GPUs.

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use crate::analysis::{Dominators, Loops, Step, dominator_walk};
use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Type, Value, ValueDef};

/// Blocks to which a loop may lead: a mask for each is cheaper than to ask for numbers.
const MAX_TARGETS: usize = 32;

/// Values that are used where several exits lead, at most: each has a place of its own.
const MAX_COMMON: usize = 64;

/// Loops that are changed, at most: after each of them the kernel is analysed again.
const MAX_LOOPS: usize = 64;

/// Changes loops that lead to many blocks, in a kernel without blocks out of reach.
pub(in crate::simd::widen) fn unify(kernel: &mut Kernel) {
    let mut seen: EntitySet<Block> = EntitySet::new();
    for _ in 0..MAX_LOOPS {
        let dominators = Dominators::new(kernel);
        let loops = Loops::new(kernel, &dominators);
        kernel.work.visit(kernel.size());
        let many = |found: &crate::analysis::Loop| {
            kernel.work.visit(found.blocks.len());
            let inside = set(&found.blocks);
            !seen.contains(found.header) && targets(kernel, &found.blocks, &inside).len() > MAX_TARGETS
        };
        let Some(found) = loops.all.iter().find(|found| many(found)) else { return };
        seen.insert(found.header);
        if let Some(plan) = Plan::new(kernel, &dominators, &found.blocks) {
            plan.carry_out(kernel);
        }
    }
}

/// The blocks outside to which blocks of a loop branch, in order.
fn targets(kernel: &Kernel, blocks: &[Block], inside: &EntitySet<Block>) -> Vec<Block> {
    let mut seen: EntitySet<Block> = EntitySet::new();
    let calls = blocks.iter().filter_map(|&block| kernel.blocks[block].insts.last());
    let outside = calls.flat_map(|&last| kernel.insts[last].targets()).map(|call| call.block);
    outside.filter(|&block| !inside.contains(block) && seen.insert(block)).collect()
}

/// Where words lie on the way out: each is a parameter of the new block.
#[derive(Default)]
struct Slots {
    types: Vec<Type>,
    /// Those of a type that exits share.
    shared: HashMap<Type, Vec<usize>>,
}

impl Slots {
    fn add(&mut self, ty: Type) -> usize {
        self.types.push(ty);
        self.types.len() - 1
    }

    /// The shared slot of a type with that number.
    fn shared(&mut self, ty: Type, number: usize) -> usize {
        match self.shared.get(&ty).and_then(|slots| slots.get(number)) {
            Some(&slot) => slot,
            None => {
                let slot = self.add(ty);
                self.shared.entry(ty).or_default().push(slot);
                slot
            }
        }
    }
}

/// What a target gets of the new block.
#[derive(Default)]
struct Exit {
    /// The slots of its parameters.
    params: SmallVec<[usize; 4]>,
    /// Values of the loop that are used behind it and nowhere else outside.
    own: SmallVec<[(Value, usize); 4]>,
    /// How many shared slots of each type it has.
    counts: HashMap<Type, usize>,
}

struct Plan {
    blocks: Vec<Block>,
    inside: EntitySet<Block>,
    targets: Vec<Block>,
    exits: HashMap<Block, Exit>,
    slots: Slots,
    /// Values of the loop that are used where several exits lead, with the blocks in which they are known.
    common: Vec<(Value, usize)>,
    /// For each common value and source of an exit: whether the value is there.
    known: HashMap<(Value, Block), bool>,
    /// Uses of the loop's values outside: the instruction, and the target that dominates it, if one does.
    uses: Vec<(Inst, Option<Block>)>,
    /// Values that the loop defines.
    defined: SecondaryMap<Value, Option<Block>>,
}

impl Plan {
    /// `None` where a value has no place.
    fn new(kernel: &Kernel, dominators: &Dominators, blocks: &[Block]) -> Option<Self> {
        let inside = set(blocks);
        let targets = targets(kernel, blocks, &inside);
        let mut plan = Self {
            blocks: blocks.to_vec(),
            inside,
            targets,
            exits: HashMap::default(),
            slots: Slots::default(),
            common: Vec::new(),
            known: HashMap::default(),
            uses: Vec::new(),
            defined: SecondaryMap::new(),
        };
        for &target in &plan.targets {
            let mut exit = Exit::default();
            for &param in &kernel.blocks[target].params {
                let slot = place(&mut exit, &mut plan.slots, kernel.ty(param))?;
                exit.params.push(slot);
            }
            plan.exits.insert(target, exit);
        }
        plan.find_defined(kernel);
        plan.find_uses(kernel, dominators);
        plan.place_values(kernel)?;
        for &(value, _) in &plan.common {
            let home = plan.defined[value]?;
            for &block in &plan.blocks {
                plan.known.insert((value, block), dominators.dominates(home, block));
            }
        }
        Some(plan)
    }

    fn find_defined(&mut self, kernel: &Kernel) {
        for &block in &self.blocks {
            let data = &kernel.blocks[block];
            let results = data.insts.iter().filter_map(|&inst| kernel.results[inst]);
            for value in data.params.iter().copied().chain(results) {
                self.defined[value] = Some(block);
            }
        }
    }

    /// Finds uses outside, and for each the target through which control has come to it from the loop, if there is one such.
    fn find_uses(&mut self, kernel: &Kernel, dominators: &Dominators) {
        let mut roots: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
        let mut only_from_inside = set(&self.targets);
        for &block in kernel.layout.iter().filter(|&&block| !self.inside.contains(block)) {
            let Some(&last) = kernel.blocks[block].insts.last() else { continue };
            kernel.insts[last].targets().iter().for_each(|call| {
                only_from_inside.remove(call.block);
            });
        }
        for step in dominator_walk(kernel, dominators) {
            let Step::Enter(block) = step else { continue };
            if self.inside.contains(block) {
                continue;
            }
            let above = dominators.idom(block).filter(|&above| !self.inside.contains(above));
            roots[block] = match above {
                Some(above) => roots[above],
                None => only_from_inside.contains(block).then_some(block),
            };
            for &inst in &kernel.blocks[block].insts {
                let mut is_use = false;
                kernel.insts[inst].for_each_use(|value| is_use |= self.defined[value].is_some());
                if is_use {
                    self.uses.push((inst, roots[block]));
                }
            }
        }
    }

    /// Gives values that are used outside their slots.
    fn place_values(&mut self, kernel: &Kernel) -> Option<()> {
        // By value: the target behind which all of its uses are, `None` if there is none.
        let mut homes: HashMap<Value, Option<Block>> = HashMap::default();
        let mut order = Vec::new();
        for &(inst, root) in &self.uses {
            kernel.insts[inst].for_each_use(|value| {
                if self.defined[value].is_some() {
                    homes
                        .entry(value)
                        .and_modify(|home| *home = home.filter(|&home| Some(home) == root))
                        .or_insert_with(|| {
                            order.push(value);
                            root
                        });
                }
            });
        }
        for value in order {
            match homes[&value] {
                Some(target) => {
                    let exit = self.exits.get_mut(&target)?;
                    let slot = place(exit, &mut self.slots, kernel.ty(value))?;
                    exit.own.push((value, slot));
                }
                None => {
                    if kernel.ty(value) == Type::Buffer || self.common.len() == MAX_COMMON {
                        return None;
                    }
                    let slot = self.slots.add(kernel.ty(value));
                    self.common.push((value, slot));
                }
            }
        }
        Some(())
    }

    fn carry_out(self, kernel: &mut Kernel) {
        let block = kernel.blocks.push(BlockData::default());
        let types: Vec<Type> = std::iter::once(Type::I32).chain(self.slots.types.iter().copied()).collect();
        let params: SmallVec<[Value; 4]> =
            (0..).zip(types).map(|(index, ty)| kernel.values.push(ValueDef::Param { block, index, ty })).collect();
        let (which, slots) = (params[0], &params[1..]);
        let fillers: Vec<Value> = self.slots.types.iter().map(|&ty| constant(kernel, ty, 0)).collect();
        let numbers: HashMap<Block, Value> =
            (0..).zip(&self.targets).map(|(number, &target)| (target, constant(kernel, Type::I32, number))).collect();
        // The ways out.
        for &from in &self.blocks {
            let Some(&last) = kernel.blocks[from].insts.last() else { continue };
            for call in kernel.insts[last].targets_mut() {
                let Some(exit) = self.exits.get(&call.block) else { continue };
                let mut args = fillers.clone();
                exit.params.iter().zip(&call.args).for_each(|(&slot, &arg)| args[slot] = arg);
                exit.own.iter().for_each(|&(value, slot)| args[slot] = value);
                for &(value, slot) in &self.common {
                    if self.known.get(&(value, from)) == Some(&true) {
                        args[slot] = value;
                    }
                }
                let args = std::iter::once(numbers[&call.block]).chain(args).collect();
                *call = BlockCall { block, args };
            }
        }
        // What comes behind them.
        for (inst, root) in &self.uses {
            let own = root.and_then(|root| self.exits.get(&root)).map_or(&[][..], |exit| &exit.own);
            let slot_of: HashMap<Value, usize> = own.iter().chain(&self.common).copied().collect();
            kernel.insts[*inst].for_each_use_mut(|value| {
                if let Some(&slot) = slot_of.get(value) {
                    *value = slots[slot];
                }
            });
        }
        let call = |target: Block| {
            let args = self.exits[&target].params.iter().map(|&slot| slots[slot]).collect();
            BlockCall { block: target, args }
        };
        let Some((&last, rest)) = self.targets.split_last() else { return };
        let cases = (0..).zip(rest).map(|(number, &target)| (number, call(target))).collect();
        let switch = kernel.insts.push(InstData::Switch { selector: which, default: call(last), cases });
        kernel.blocks[block] = BlockData { insts: vec![switch], params, merge: None };
        // Behind the loop's last block; the order is found anew afterwards.
        kernel.layout.push(block);
    }
}

fn set(blocks: &[Block]) -> EntitySet<Block> {
    let mut set = EntitySet::new();
    for &block in blocks {
        set.insert(block);
    }
    set
}

/// The next shared slot of an exit for a word of a type; `None` if it is no word.
fn place(exit: &mut Exit, slots: &mut Slots, ty: Type) -> Option<usize> {
    if ty == Type::Buffer {
        return None;
    }
    let count = exit.counts.entry(ty).or_default();
    *count += 1;
    Some(slots.shared(ty, *count - 1))
}

/// A constant in the entry.
fn constant(kernel: &mut Kernel, ty: Type, bits: u64) -> Value {
    let inst = kernel.insts.push(InstData::Const { ty, bits });
    let value = kernel.values.push(ValueDef::Result { inst, ty });
    kernel.results[inst] = Some(value);
    let entry = kernel.layout[0];
    kernel.blocks[entry].insts.insert(0, inst);
    value
}
