//! Loop-carried sums of reductions: each invocation carries its own partial sum, and one reduction follows at the exit
//! block.
//!
//! This is valid if all invocations that enter the loop leave it in the same iteration, and every iteration reduces a
//! value of all of them. So the loop's only exit test must have a uniform condition and be executed in every iteration.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::Definitions;
use crate::analysis::{Dominators, Loops};
use crate::ir::{
    Access, Block, BufferSpace, BuiltIn, Inst, InstData, Kernel, Op, Place, SubgroupOp, Type, Value, ValueDef,
    VariableSpace, identity,
};
use crate::opt::cfg::{self, Edges};

/// Maximum number of sums changed per kernel: the search starts again after each.
const MAX_SUMS: usize = 16;

/// Maximum number of values that an exit condition depends on.
const MAX_VALUES: usize = 256;

/// Moves reductions of loop-carried sums after their loops.
pub(super) fn run(kernel: &mut Kernel, dominators: &Dominators, loops: &Loops) {
    if loops.all.is_empty() {
        return;
    }
    let edges = Edges::from(kernel, &kernel.layout);
    for _ in 0..MAX_SUMS {
        let sums = Definitions::new(kernel);
        let finder = Finder { kernel, dominators, loops, edges: &edges, sums: &sums };
        // Inner loops first: the value after an inner loop may be one that the outer loop carries.
        let Some(carried) = (0..loops.all.len()).rev().find_map(|number| finder.find(number)) else { return };
        carried.change(kernel, loops);
    }
}

/// A loop-carried sum.
struct Carried {
    number: usize,
    /// The exit block of the loop.
    exit_block: Block,
    /// The branch into the loop, and the index of the sum among its arguments.
    entry: Inst,
    index: usize,
    /// The sum's value before the loop, at the header, and at the back edge.
    initial: Value,
    param: Value,
    next: Value,
    /// The addition of the reduction and `param`.
    sum: Inst,
    op: Op,
    reduction: Inst,
    kind: SubgroupOp,
    /// The block of the reduction.
    block: Block,
    /// The reduced value.
    value: Value,
}

/// The entry edge, the back edge and the exit of a loop.
struct LoopEdges {
    entry: Inst,
    latch: Block,
    back: Inst,
    exit_block: Block,
}

struct Finder<'a> {
    kernel: &'a Kernel,
    dominators: &'a Dominators,
    loops: &'a Loops,
    edges: &'a Edges,
    sums: &'a Definitions,
}

impl Finder<'_> {
    fn find(&self, number: usize) -> Option<Carried> {
        let found = &self.loops.all[number];
        let params = &self.kernel.blocks[found.header].params;
        // Computed at the first candidate: few loops have one.
        let mut all = None;
        for index in 0..params.len() {
            if !self.is_candidate(found.header, index, &found.latches) {
                continue;
            }
            let (edges, uses) = match &mut all {
                Some(all) => all,
                empty => empty.insert((self.edges(number)?, self.uses(&found.blocks))),
            };
            if let Some(carried) = self.carried(number, index, edges, uses) {
                return Some(carried);
            }
        }
        None
    }

    /// Whether the loop passes the sum of a parameter and a reduction back as that parameter.
    fn is_candidate(&self, header: Block, index: usize, latches: &[Block]) -> bool {
        let back = |latch: &Block| self.passed(*latch, header, index);
        let [latch] = latches else { return false };
        back(latch).is_some_and(|next| self.summands(self.kernel.blocks[header].params[index], next).is_some())
    }

    /// The argument for a parameter, if the block has exactly one edge to the header.
    fn passed(&self, from: Block, header: Block, index: usize) -> Option<Value> {
        let targets = self.kernel.insts[self.kernel.last_inst(from)?].targets();
        let mut calls = targets.iter().filter(|call| call.block == header);
        let (call, None) = (calls.next()?, calls.next()) else { return None };
        call.args.get(index).copied()
    }

    /// The addition that defines `next`, and its reduction, if its other operand is `param`.
    fn summands(&self, param: Value, next: Value) -> Option<(Inst, Op, Inst, SubgroupOp)> {
        let ValueDef::Result { inst, .. } = self.kernel.values[next] else { return None };
        let InstData::Pure { op, ref args } = self.kernel.insts[inst] else { return None };
        let other = match args[..] {
            [a, b] if a == param && b != param => b,
            [a, b] if b == param && a != param => a,
            _ => return None,
        };
        let (reduction, kind) = self.sums.reduction(self.kernel, other, op)?;
        Some((inst, op, reduction, kind))
    }

    /// The number of uses of each value in the loop.
    fn uses(&self, blocks: &[Block]) -> SecondaryMap<Value, u32> {
        let mut uses = SecondaryMap::new();
        let insts = blocks.iter().flat_map(|&block| &self.kernel.blocks[block].insts);
        insts.for_each(|&inst| self.kernel.insts[inst].for_each_use(|value| uses[value] += 1));
        uses
    }

    /// The edges of a loop that all its invocations leave in the same iteration, to an exit block with no other
    /// predecessor.
    fn edges(&self, number: usize) -> Option<LoopEdges> {
        let (kernel, found) = (self.kernel, &self.loops.all[number]);
        let (latch, entering) = self.latch_and_entry(number)?;
        let ends = |block: Block| kernel.last_inst(block);
        let mut exits: SmallVec<[(Block, Block); 2]> = SmallVec::new();
        for &block in &found.blocks {
            let targets = ends(block).map(|last| kernel.insts[last].targets()).unwrap_or_default();
            let out = targets.iter().filter(|call| !self.loops.contains(number, call.block));
            exits.extend(out.map(|call| (block, call.block)));
        }
        let [(test, exit_block)] = exits[..] else { return None };
        let InstData::Branch { condition, .. } = kernel.insts[ends(test)?] else { return None };
        let fits = self.dominators.dominates(test, latch)
            && self.edges.incoming[exit_block] == 1
            && self.loops.of(exit_block) == found.parent
            && self.is_uniform(condition, found.header);
        fits.then_some(LoopEdges { entry: ends(entering)?, latch, back: ends(latch)?, exit_block })
    }

    /// The only latch of a loop and the only block that enters it, with one edge each.
    fn latch_and_entry(&self, number: usize) -> Option<(Block, Block)> {
        let found = &self.loops.all[number];
        let [latch] = found.latches[..] else { return None };
        let jumps_to_header = |block: Block| {
            let targets = self.kernel.last_inst(block).map(|last| self.kernel.insts[last].targets());
            targets.unwrap_or_default().iter().any(|call| call.block == found.header)
        };
        let mut entering = self.kernel.layout.iter().copied().filter(|&block| block != latch && jumps_to_header(block));
        let entering = entering.next()?;
        (self.edges.incoming[found.header] == 2).then_some((latch, entering))
    }

    fn carried(
        &self,
        number: usize,
        index: usize,
        edges: &LoopEdges,
        uses: &SecondaryMap<Value, u32>,
    ) -> Option<Carried> {
        let (kernel, found) = (self.kernel, &self.loops.all[number]);
        let param = kernel.blocks[found.header].params[index];
        let next = self.passed(edges.latch, found.header, index)?;
        let (sum, op, reduction, kind) = self.summands(param, next)?;
        let block = self.sums.block(reduction)?;
        let together = self.loops.of(block) == Some(number)
            && self.dominators.dominates(block, edges.latch)
            && self.sums.block(sum).and_then(|block| self.loops.of(block)) == Some(number);
        // The partial sum changes its value in the loop, so it must have no other use there.
        let alone = uses[param] == 1 && uses[next] == 1 && kernel.insts[edges.back].targets().len() <= 2;
        let InstData::Subgroup { args, .. } = &kernel.insts[reduction] else { return None };
        let entry = kernel.insts[edges.entry].targets();
        let initial = entry.iter().find(|call| call.block == found.header)?.args.get(index).copied()?;
        (together && alone).then_some(Carried {
            number,
            exit_block: edges.exit_block,
            entry: edges.entry,
            index,
            initial,
            param,
            next,
            sum,
            op,
            reduction,
            kind,
            block,
            value: *args.first()?,
        })
    }

    /// Whether all invocations of a subgroup that are in the same iteration of the loop have the same value.
    fn is_uniform(&self, value: Value, header: Block) -> bool {
        let mut seen = EntitySet::new();
        let mut stack = vec![value];
        let mut count = 0;
        while let Some(value) = stack.pop() {
            if !seen.insert(value) {
                continue;
            }
            count += 1;
            if count > MAX_VALUES || !self.is_uniform_if(value, header, &mut stack) {
                return false;
            }
        }
        true
    }

    /// Whether a value is uniform if all values pushed onto the stack are.
    fn is_uniform_if(&self, value: Value, header: Block, stack: &mut Vec<Value>) -> bool {
        // A value defined in a loop that has been left may be of different iterations (temporal divergence).
        let same_iteration =
            |block: Block| self.loops.of(block).is_none_or(|number| self.loops.contains(number, header));
        let inst = match self.kernel.values[value] {
            ValueDef::Param { block, index, .. } => {
                let number = self.loops.of(block).filter(|&number| self.loops.all[number].header == block);
                let latch_and_entry =
                    number.filter(|_| same_iteration(block)).and_then(|number| self.latch_and_entry(number));
                let Some((latch, entering)) = latch_and_entry else { return false };
                let args = [latch, entering].map(|from| self.passed(from, block, index as usize));
                stack.extend(args.iter().flatten());
                return args.iter().all(Option::is_some);
            }
            ValueDef::Result { inst, .. } => inst,
        };
        let data = &self.kernel.insts[inst];
        let at_once = || self.sums.block(inst).is_some_and(same_iteration);
        match data {
            InstData::Const { .. } => return true,
            InstData::BuiltIn { builtin, .. } => {
                use BuiltIn::{NumSubgroups, NumWorkgroups, SubgroupId, WorkgroupId};
                return matches!(builtin, NumWorkgroups | WorkgroupId | NumSubgroups | SubgroupId);
            }
            InstData::Subgroup { op, .. } => return op.is_uniform() && at_once(),
            InstData::Pure { .. }
            | InstData::Select { .. }
            | InstData::Element { .. }
            | InstData::Buffer { .. }
            | InstData::BufferSize { .. }
            | InstData::BufferNumber { .. }
            | InstData::BufferOf { .. }
            | InstData::BufferAt { .. }
            | InstData::BufferOffset { .. }
            | InstData::ImageField { .. } => {}
            InstData::Load { access, .. } if access.volatile => return false,
            InstData::Load { place: Place::Push { .. }, .. }
            | InstData::Load { place: Place::Buffer { space: BufferSpace::Uniform, .. }, .. } => {}
            InstData::Load { place, access, .. } => {
                let own = |variable| self.kernel.variables[variable].space == VariableSpace::Private;
                let shared = !matches!(*place, Place::Variable { variable, .. } if own(variable));
                if !(shared && *access == Access::default() && at_once()) {
                    return false;
                }
            }
            _ => return false,
        }
        data.for_each_use(|value| stack.push(value));
        true
    }
}

impl Carried {
    fn change(self, kernel: &mut Kernel, loops: &Loops) {
        let origin = kernel.origins[self.reduction];
        let neutral = InstData::Const { ty: Type::I32, bits: identity(self.op).unwrap_or(0).into() };
        let (constant, neutral) = cfg::create(kernel, neutral, Type::I32, 0);
        kernel.blocks[kernel.layout[0]].insts.insert(0, constant);
        kernel.blocks[self.block].insts.retain(|&inst| inst != self.reduction);
        kernel.insts[self.sum] = InstData::Pure { op: self.op, args: [self.param, self.value].into_iter().collect() };
        let header = loops.all[self.number].header;
        for call in kernel.insts[self.entry].targets_mut().into_iter().filter(|call| call.block == header) {
            call.args[self.index] = neutral;
        }
        for own in [self.param, self.next] {
            let args = std::iter::once(own).collect();
            let (reduction, together) =
                cfg::create(kernel, InstData::Subgroup { op: self.kind, args }, Type::I32, origin);
            let args = [self.initial, together].into_iter().collect();
            let (sum, total) = cfg::create(kernel, InstData::Pure { op: self.op, args }, Type::I32, origin);
            if replace_after_loop(kernel, loops, self.number, own, total) {
                kernel.blocks[self.exit_block].insts.splice(0..0, [reduction, sum]);
            }
        }
    }
}

/// Replaces the uses of a value outside a loop. Returns whether there were any.
fn replace_after_loop(kernel: &mut Kernel, loops: &Loops, number: usize, old: Value, new: Value) -> bool {
    let mut any = false;
    for &block in kernel.layout.iter().filter(|&&block| !loops.contains(number, block)) {
        for &inst in &kernel.blocks[block].insts {
            kernel.insts[inst].for_each_use_mut(|value| {
                if *value == old {
                    *value = new;
                    any = true;
                }
            });
        }
    }
    any
}
