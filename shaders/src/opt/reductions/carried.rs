//! Sums of reductions that a loop carries from trip to trip: each invocation carries its own sum, put together behind the loop.
//!
//! That is right where all invocations that come to the loop leave it together, and each trip reduces what all of them
//! have. So the one test of the loop must have a condition that they agree about, and stand on every way around the loop.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::Sums;
use crate::analysis::{Dominators, Loops};
use crate::ir::{
    Access, Block, BufferSpace, BuiltIn, Inst, InstData, Kernel, Op, Place, SubgroupOp, Type, Value, ValueDef,
    VariableSpace, identity,
};
use crate::opt::cfg::{self, Edges};

/// Sums of a kernel that are carried otherwise, at most: all is looked at again after each.
const MAX_SUMS: usize = 16;

/// Values that a condition may depend on, at most.
const MAX_VALUES: usize = 256;

/// Carries sums otherwise where that saves reductions.
pub(super) fn run(kernel: &mut Kernel, dominators: &Dominators, loops: &Loops) {
    if loops.all.is_empty() {
        return;
    }
    let edges = Edges::from(kernel, &kernel.layout);
    for _ in 0..MAX_SUMS {
        let sums = Sums::new(kernel);
        let finder = Finder { kernel, dominators, loops, edges: &edges, sums: &sums };
        // What an inner loop leaves behind may be what an outer one carries.
        let Some(carried) = (0..loops.all.len()).rev().find_map(|number| finder.find(number)) else { return };
        carried.change(kernel, loops);
    }
}

/// A sum that a loop carries.
struct Carried {
    number: usize,
    /// The block behind the loop.
    behind: Block,
    /// The branch into the loop, and the place of the sum among what it passes.
    entry: Inst,
    index: usize,
    /// At first, in each trip, and after it.
    initial: Value,
    param: Value,
    next: Value,
    /// What makes the sum of the reduction and `param`.
    sum: Inst,
    op: Op,
    reduction: Inst,
    how: SubgroupOp,
    /// The block of the reduction.
    home: Block,
    /// What is reduced.
    value: Value,
}

/// The ways into a loop, around it and out of it.
struct Ways {
    entry: Inst,
    latch: Block,
    back: Inst,
    behind: Block,
}

struct Finder<'a> {
    kernel: &'a Kernel,
    dominators: &'a Dominators,
    loops: &'a Loops,
    edges: &'a Edges,
    sums: &'a Sums,
}

impl Finder<'_> {
    fn find(&self, number: usize) -> Option<Carried> {
        let found = &self.loops.all[number];
        let params = &self.kernel.blocks[found.header].params;
        // Few loops get beyond this.
        let mut all = None;
        for index in 0..params.len() {
            if !self.may_be(found.header, index, &found.latches) {
                continue;
            }
            let (ways, uses) = match &mut all {
                Some(all) => all,
                empty => empty.insert((self.ways(number)?, self.uses(&found.blocks))),
            };
            if let Some(carried) = self.carried(number, index, ways, uses) {
                return Some(carried);
            }
        }
        None
    }

    /// Whether a loop passes the sum of a parameter and a reduction back to itself.
    fn may_be(&self, header: Block, index: usize, latches: &[Block]) -> bool {
        let back = |latch: &Block| self.passed(*latch, header, index);
        let [latch] = latches else { return false };
        back(latch).is_some_and(|next| self.summands(self.kernel.blocks[header].params[index], next).is_some())
    }

    /// What a block's only branch to a header passes for a parameter.
    fn passed(&self, from: Block, header: Block, index: usize) -> Option<Value> {
        let targets = self.kernel.insts[cfg::terminator(self.kernel, from)?].targets();
        let mut calls = targets.iter().filter(|call| call.block == header);
        let (call, None) = (calls.next()?, calls.next()) else { return None };
        call.args.get(index).copied()
    }

    /// The sum that `next` is, and the reduction in it, of which the other summand is `param`.
    fn summands(&self, param: Value, next: Value) -> Option<(Inst, Op, Inst, SubgroupOp)> {
        let ValueDef::Result { inst, .. } = self.kernel.values[next] else { return None };
        let InstData::Pure { op, ref args } = self.kernel.insts[inst] else { return None };
        let other = match args[..] {
            [a, b] if a == param && b != param => b,
            [a, b] if b == param && a != param => a,
            _ => return None,
        };
        let (reduction, how) = self.sums.reduction(self.kernel, other, op)?;
        Some((inst, op, reduction, how))
    }

    /// How often the loop's own instructions use values.
    fn uses(&self, blocks: &[Block]) -> SecondaryMap<Value, u32> {
        let mut uses = SecondaryMap::new();
        let insts = blocks.iter().flat_map(|&block| &self.kernel.blocks[block].insts);
        insts.for_each(|&inst| self.kernel.insts[inst].for_each_use(|value| uses[value] += 1));
        uses
    }

    /// The ways of a loop that all its invocations leave together, for one block behind it that nobody else comes to.
    fn ways(&self, number: usize) -> Option<Ways> {
        let (kernel, found) = (self.kernel, &self.loops.all[number]);
        let (latch, before) = self.turns(number)?;
        let ends = |block: Block| cfg::terminator(kernel, block);
        let mut leaving: SmallVec<[(Block, Block); 2]> = SmallVec::new();
        for &block in &found.blocks {
            let targets = ends(block).map(|last| kernel.insts[last].targets()).unwrap_or_default();
            let out = targets.iter().filter(|call| !self.loops.contains(number, call.block));
            leaving.extend(out.map(|call| (block, call.block)));
        }
        let [(test, behind)] = leaving[..] else { return None };
        let InstData::Branch { condition, .. } = kernel.insts[ends(test)?] else { return None };
        let fits = self.dominators.dominates(test, latch)
            && self.edges.ways[behind] == 1
            && self.loops.of(behind) == found.parent
            && self.is_agreed(condition, found.header);
        fits.then_some(Ways { entry: ends(before)?, latch, back: ends(latch)?, behind })
    }

    /// The one block that leads back to a loop's header, and the one that leads into the loop, each by one branch.
    fn turns(&self, number: usize) -> Option<(Block, Block)> {
        let found = &self.loops.all[number];
        let [latch] = found.latches[..] else { return None };
        let leads = |block: Block| {
            let targets = cfg::terminator(self.kernel, block).map(|last| self.kernel.insts[last].targets());
            targets.unwrap_or_default().iter().any(|call| call.block == found.header)
        };
        let mut entering = self.kernel.layout.iter().copied().filter(|&block| block != latch && leads(block));
        let before = entering.next()?;
        (self.edges.ways[found.header] == 2).then_some((latch, before))
    }

    fn carried(&self, number: usize, index: usize, ways: &Ways, uses: &SecondaryMap<Value, u32>) -> Option<Carried> {
        let (kernel, found) = (self.kernel, &self.loops.all[number]);
        let param = kernel.blocks[found.header].params[index];
        let next = self.passed(ways.latch, found.header, index)?;
        let (sum, op, reduction, how) = self.summands(param, next)?;
        let home = self.sums.home(reduction)?;
        let together = self.loops.of(home) == Some(number)
            && self.dominators.dominates(home, ways.latch)
            && self.sums.home(sum).and_then(|home| self.loops.of(home)) == Some(number);
        // Inside the loop nobody else may ask for the sum.
        let alone = uses[param] == 1 && uses[next] == 1 && kernel.insts[ways.back].targets().len() <= 2;
        let InstData::Subgroup { args, .. } = &kernel.insts[reduction] else { return None };
        let entry = kernel.insts[ways.entry].targets();
        let initial = entry.iter().find(|call| call.block == found.header)?.args.get(index).copied()?;
        (together && alone).then_some(Carried {
            number,
            behind: ways.behind,
            entry: ways.entry,
            index,
            initial,
            param,
            next,
            sum,
            op,
            reduction,
            how,
            home,
            value: *args.first()?,
        })
    }

    /// Whether all invocations of a subgroup that are in the loop on the same trip have the same value.
    fn is_agreed(&self, value: Value, header: Block) -> bool {
        let mut seen = EntitySet::new();
        let mut stack = vec![value];
        let mut count = 0;
        while let Some(value) = stack.pop() {
            if !seen.insert(value) {
                continue;
            }
            count += 1;
            if count > MAX_VALUES || !self.agrees(value, header, &mut stack) {
                return false;
            }
        }
        true
    }

    /// Whether they have if they have those that it pushes.
    fn agrees(&self, value: Value, header: Block, stack: &mut Vec<Value>) -> bool {
        // What a loop computes that they have left need not be of the same trip.
        let same_trip = |block: Block| self.loops.of(block).is_none_or(|number| self.loops.contains(number, header));
        let inst = match self.kernel.values[value] {
            ValueDef::Param { block, index, .. } => {
                let number = self.loops.of(block).filter(|&number| self.loops.all[number].header == block);
                let turns = number.filter(|_| same_trip(block)).and_then(|number| self.turns(number));
                let Some((latch, before)) = turns else { return false };
                let args = [latch, before].map(|from| self.passed(from, block, index as usize));
                stack.extend(args.iter().flatten());
                return args.iter().all(Option::is_some);
            }
            ValueDef::Result { inst, .. } => inst,
        };
        let data = &self.kernel.insts[inst];
        let at_once = || self.sums.home(inst).is_some_and(same_trip);
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
        kernel.blocks[self.home].insts.retain(|&inst| inst != self.reduction);
        kernel.insts[self.sum] = InstData::Pure { op: self.op, args: [self.param, self.value].into_iter().collect() };
        let header = loops.all[self.number].header;
        for call in kernel.insts[self.entry].targets_mut().into_iter().filter(|call| call.block == header) {
            call.args[self.index] = neutral;
        }
        for own in [self.param, self.next] {
            let args = std::iter::once(own).collect();
            let (reduction, together) =
                cfg::create(kernel, InstData::Subgroup { op: self.how, args }, Type::I32, origin);
            let args = [self.initial, together].into_iter().collect();
            let (sum, total) = cfg::create(kernel, InstData::Pure { op: self.op, args }, Type::I32, origin);
            if replace_behind(kernel, loops, self.number, own, total) {
                kernel.blocks[self.behind].insts.splice(0..0, [reduction, sum]);
            }
        }
    }
}

/// Lets what is behind a loop use another value. Whether anything does.
fn replace_behind(kernel: &mut Kernel, loops: &Loops, number: usize, old: Value, new: Value) -> bool {
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
