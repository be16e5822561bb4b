//! Widens strided loads in loops: where each lane reads consecutive words, one per iteration, every fourth iteration
//! loads four and the others get theirs through loop parameters. A load of four words for each lane is faster than four
//! gathers, and lets the processor look further ahead.
//!
//! This is valid if nothing in the loop can change the memory or make writes of other invocations visible. Words beyond
//! the end of the buffer are loaded as zeros, which no lane uses.

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use crate::analysis::{Clobbers, Induction, LaneOffsetTable, Loop, Shape, Uniformity, predecessors, terms};
use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Op, Place, Type, Value, ValueDef, Width};

/// Words of one widened load.
const WORDS: u32 = 4;

/// Widened loads in one loop, at most.
const MAX_LOADS: usize = 4;

/// A load to widen, of `base + (index + added) * 4`: the address advances by one word in each iteration.
#[derive(Clone, Copy, Debug)]
struct StridedLoad {
    load: Inst,
    base: Value,
    counter: Value,
    added: Option<Value>,
}

/// Loads of one block to widen.
#[derive(Debug)]
struct WidenPlan {
    header: Block,
    /// The source of the loop's entry edge.
    preheader: Block,
    latch: Block,
    block: Block,
    loads: SmallVec<[StridedLoad; 4]>,
}

/// Widens loads in the loops where that is faster; `uniformity` is that of the kernel. Returns whether there were any.
pub(in crate::vectorize) fn widen_loads(kernel: &mut Kernel, uniformity: &Uniformity) -> bool {
    let mut plans = plans(kernel, uniformity);
    for position in 0..plans.len() {
        let rest = WidenRewrite::new(kernel).apply(&plans[position]);
        // The block's terminator moved to its second part: it may be an entry or back edge of another planned loop.
        let split = plans[position].block;
        for plan in &mut plans[position + 1..] {
            [&mut plan.preheader, &mut plan.latch].into_iter().filter(|end| **end == split).for_each(|end| *end = rest);
        }
    }
    !plans.is_empty()
}

fn plans(kernel: &Kernel, uniformity: &Uniformity) -> Vec<WidenPlan> {
    let loops = &uniformity.loops;
    let mut plans = Vec::new();
    let (mut clobbers, mut edges) = (None, None);
    for (number, found) in loops.all.iter().enumerate() {
        let [latch] = found.latches[..] else { continue };
        let counters = counters(kernel, found, latch);
        if counters.is_empty() {
            continue;
        }
        let mut inside: EntitySet<Block> = EntitySet::new();
        inside.extend(found.blocks.iter().copied());
        let changes = |value: Value| uniformity.defining_block(value).is_some_and(|defining| inside.contains(defining));
        for &block in found.blocks.iter().skip(1) {
            if loops.of(block) != Some(number) || !uniformity.dominators.dominates(block, latch) {
                continue;
            }
            let mut loads = SmallVec::new();
            for &inst in &kernel.blocks[block].insts {
                let InstData::Load {
                    width: Width::Word,
                    place: place @ Place::Buffer { buffer, offset, .. },
                    access,
                    ..
                } = kernel.insts[inst]
                else {
                    continue;
                };
                if let Some((base, index)) = word_of_array(kernel, offset)
                    && let Some((counter, added)) = split_index(kernel, &counters, index)
                    && ![Some(base), Some(buffer), added].into_iter().flatten().any(changes)
                    && [base, buffer].iter().all(|&value| uniformity.shape_in(value, block) == Shape::Uniform)
                    && is_noncontiguous(uniformity.shape_in(index, block))
                    && loads.len() < MAX_LOADS
                {
                    let clobbers = clobbers.get_or_insert_with(|| Clobbers::of_loops(kernel, loops));
                    if !clobbers[number].may_change(&place, access) {
                        loads.push(StridedLoad { load: inst, base, counter, added });
                    }
                }
            }
            if !loads.is_empty() {
                let edges = edges.get_or_insert_with(|| predecessors(kernel));
                let Some(&preheader) = edges[found.header].iter().find(|&&from| from != latch) else { break };
                plans.push(WidenPlan { header: found.header, preheader, latch, block, loads });
                // Only one block per loop, which then needs a single iteration counter.
                break;
            }
        }
    }
    plans
}

/// Whether the lanes' words are not contiguous.
fn is_noncontiguous(shape: Shape) -> bool {
    !matches!(shape, Shape::Uniform | Shape::Affine(LaneOffsetTable::CONTIGUOUS))
}

/// Parameters of the header that each iteration increments by 1.
fn counters(kernel: &Kernel, found: &Loop, latch: Block) -> SmallVec<[Value; 4]> {
    let inductions = Induction::all(kernel, found.header, latch);
    inductions.iter().filter(|induction| induction.step == 1).map(|induction| induction.param).collect()
}

/// Base and index of an offset into an array of words.
fn word_of_array(kernel: &Kernel, offset: Value) -> Option<(Value, Value)> {
    match *kernel.definition(offset)? {
        InstData::Element { base, index, stride: 4 } => Some((base, index)),
        _ => None,
    }
}

/// Splits an index into a counter and an addend.
fn split_index(kernel: &Kernel, counters: &[Value], index: Value) -> Option<(Value, Option<Value>)> {
    if counters.contains(&index) {
        return Some((index, None));
    }
    let [a, b] = terms(kernel, index)?;
    if counters.contains(&a) {
        return Some((a, Some(b)));
    }
    counters.contains(&b).then_some((b, Some(a)))
}

/// Emits the new code.
struct WidenRewrite<'a> {
    kernel: &'a mut Kernel,
    insts: Vec<Inst>,
}

impl<'a> WidenRewrite<'a> {
    fn new(kernel: &'a mut Kernel) -> Self {
        Self { kernel, insts: Vec::new() }
    }

    /// Splits the plan's block. Returns its second part, whose parameters are the loaded words of this
    /// iteration.
    fn apply(mut self, plan: &WidenPlan) -> Block {
        let [fill, rest] = [0, 1].map(|_| self.kernel.blocks.push(BlockData::default()));
        let numbers: SmallVec<[Value; 4]> = (0..WORDS).map(|word| self.constant(Type::I32, word)).collect();
        let (mut now, mut kept) = (BlockCall::new(rest), BlockCall::new(rest));
        for strided in &plan.loads {
            let words = self.load_words(strided, &numbers);
            kept.args.extend(self.pass_words(plan, strided, rest, words));
            now.args.extend(words);
        }
        self.effect(InstData::Jump { to: now });
        self.kernel.blocks[fill].insts = std::mem::take(&mut self.insts);
        let iteration = self.count_iterations(plan, &numbers);
        let args = SmallVec::from_slice(&[iteration, numbers[0]]);
        let due = self.emit(InstData::Pure { op: Op::IEq, args }, Type::Bool);
        self.effect(InstData::Branch { condition: due, then: BlockCall::new(fill), otherwise: kept });
        let old = &mut self.kernel.blocks[plan.block];
        let insts = std::mem::replace(&mut old.insts, std::mem::take(&mut self.insts));
        let merge = old.merge.replace(Merge::Selection { merge: rest });
        let is_widened = |inst: &Inst| plan.loads.iter().any(|strided| strided.load == *inst);
        self.kernel.blocks[rest].insts = insts.into_iter().filter(|inst| !is_widened(inst)).collect();
        self.kernel.blocks[rest].merge = merge;
        plan.loads.iter().for_each(|strided| self.kernel.results[strided.load] = None);
        if let Some(at) = self.kernel.layout.iter().position(|&block| block == plan.block) {
            self.kernel.layout.splice(at + 1..at + 1, [fill, rest]);
        }
        rest
    }

    /// Emits the loads of the next four words.
    fn load_words(&mut self, strided: &StridedLoad, numbers: &[Value]) -> [Value; WORDS as usize] {
        let InstData::Load { ty, width, place: Place::Buffer { space, buffer, .. }, access } =
            self.kernel.insts[strided.load]
        else {
            unreachable!("a strided load is from a buffer")
        };
        let first = match strided.added {
            Some(added) => self.add(strided.counter, added),
            None => strided.counter,
        };
        std::array::from_fn(|word| {
            let index = if word == 0 { first } else { self.add(first, numbers[word]) };
            let offset = self.emit(InstData::Element { base: strided.base, index, stride: 4 }, Type::I32);
            self.emit(InstData::Load { ty, width, place: Place::Buffer { space, buffer, offset }, access }, ty)
        })
    }

    /// Turns the load's result into the first of four parameters of `rest`; the others are passed to the next
    /// iteration. Returns the arguments for iterations that do not load.
    fn pass_words(
        &mut self,
        plan: &WidenPlan,
        strided: &StridedLoad,
        rest: Block,
        words: [Value; WORDS as usize],
    ) -> [Value; WORDS as usize] {
        let ty = self.kernel.ty(words[0]);
        let zero = self.constant(ty, 0);
        let kept = [(); WORDS as usize - 1].map(|()| self.param(plan.header, ty));
        let result = self.kernel.results[strided.load].unwrap_or(zero);
        let index = self.kernel.blocks[rest].params.len() as u32;
        self.kernel.values[result] = ValueDef::Param { block: rest, index, ty };
        self.kernel.blocks[rest].params.push(result);
        for _ in kept {
            let next = self.param(rest, ty);
            self.pass(plan, zero, next);
        }
        let [first, second, third] = kept;
        [first, second, third, third]
    }

    /// Adds a loop parameter that counts iterations modulo four.
    fn count_iterations(&mut self, plan: &WidenPlan, numbers: &[Value]) -> Value {
        let iteration = self.param(plan.header, Type::I32);
        let sum = self.add(iteration, numbers[1]);
        let args = SmallVec::from_slice(&[sum, numbers[WORDS as usize - 1]]);
        let next = self.emit(InstData::Pure { op: Op::And, args }, Type::I32);
        let counting = std::mem::take(&mut self.insts);
        let insts = &mut self.kernel.blocks[plan.latch].insts;
        let at = insts.len().saturating_sub(1);
        insts.splice(at..at, counting);
        self.pass(plan, numbers[0], next);
        iteration
    }

    fn param(&mut self, block: Block, ty: Type) -> Value {
        let index = self.kernel.blocks[block].params.len() as u32;
        let value = self.kernel.values.push(ValueDef::Param { block, index, ty });
        self.kernel.blocks[block].params.push(value);
        value
    }

    /// Adds an argument for the header to the entry edge and to the back edge.
    fn pass(&mut self, plan: &WidenPlan, first: Value, next: Value) {
        for (block, value) in [(plan.preheader, first), (plan.latch, next)] {
            let Some(&last) = self.kernel.blocks[block].insts.last() else { continue };
            let calls = self.kernel.insts[last].targets_mut().into_iter();
            calls.filter(|call| call.block == plan.header).for_each(|call| call.args.push(value));
        }
    }

    /// A constant at the start of the entry block.
    fn constant(&mut self, ty: Type, word: u32) -> Value {
        let value = self.emit(InstData::Const { ty, bits: u64::from(word) }, ty);
        if let (Some(inst), Some(&entry)) = (self.insts.pop(), self.kernel.layout.first()) {
            self.kernel.blocks[entry].insts.insert(0, inst);
        }
        value
    }

    fn add(&mut self, a: Value, b: Value) -> Value {
        self.emit(InstData::Pure { op: Op::IAdd, args: SmallVec::from_slice(&[a, b]) }, Type::I32)
    }

    fn emit(&mut self, data: InstData, ty: Type) -> Value {
        let inst = self.effect(data);
        self.kernel.define(inst, ty)
    }

    fn effect(&mut self, data: InstData) -> Inst {
        let inst = self.kernel.insts.push(data);
        self.insts.push(inst);
        inst
    }
}
