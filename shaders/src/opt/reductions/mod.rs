//! Sums of what subgroups put together: the summands are put together once, after each invocation has summed up its own.
//!
//! A reduction takes four shuffles, and a kernel that reduces an array often has one for each element that an invocation takes.
//! The operation is associative and commutative, so the sum of two reductions is the reduction of the sums, if the same
//! invocations do both; the same holds for scans. They do if the reductions are in blocks that every invocation goes through
//! both of, in the same trip through the same loops: one dominates the other, which postdominates it. Only integers: floats
//! would be rounded otherwise. `carried.rs` does it for sums that loops carry.

mod carried;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use super::aliases::Aliases;
use super::cfg;
use crate::analysis::{Dominators, Loops, Postdominators, positions};
use crate::ir::{Block, Inst, InstData, Kernel, Op, SubgroupOp, Value, ValueDef};

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let is_reduction = |data: &InstData| matches!(data, InstData::Subgroup { op, .. } if puts_together(*op).is_some());
    if !kernel.insts.values().any(is_reduction) || !Sums::new(kernel).any(kernel) || !is_reducible(kernel) {
        return;
    }
    let dominators = Dominators::new(kernel);
    let loops = Loops::new(kernel, &dominators);
    Joiner::new(kernel, &dominators, &loops).join();
    carried::run(kernel, &dominators, &loops);
}

/// Whether all edges backwards are those of loops: only there trips are what they seem to be.
fn is_reducible(kernel: &Kernel) -> bool {
    let (positions, dominators) = (positions(kernel), Dominators::new(kernel));
    kernel.layout.iter().all(|&block| {
        let targets = cfg::terminator(kernel, block).map(|last| kernel.insts[last].targets()).unwrap_or_default();
        targets.iter().all(|to| positions[to.block] > positions[block] || dominators.dominates(to.block, block))
    })
}

/// The operation with which a group's values are put together, if their order makes no difference.
fn puts_together(op: SubgroupOp) -> Option<Op> {
    use Op::{And, IAdd, IMul, Or, SMax, SMin, UMax, UMin, Xor};
    match op {
        SubgroupOp::Reduce(op, _) | SubgroupOp::Inclusive(op) | SubgroupOp::Exclusive(op) => {
            matches!(op, IAdd | IMul | And | Or | Xor | UMin | UMax | SMin | SMax).then_some(op)
        }
        SubgroupOp::Ballot | SubgroupOp::Shuffle(_) => None,
    }
}

/// Where instructions are, and how often values are used.
struct Sums {
    homes: SecondaryMap<Inst, Option<(Block, u32)>>,
    uses: SecondaryMap<Value, u32>,
}

impl Sums {
    fn new(kernel: &Kernel) -> Self {
        let mut sums = Self { homes: SecondaryMap::new(), uses: SecondaryMap::new() };
        for &block in &kernel.layout {
            for (place, &inst) in (0u32..).zip(&kernel.blocks[block].insts) {
                sums.homes[inst] = Some((block, place));
                kernel.insts[inst].for_each_use(|value| sums.uses[value] += 1);
            }
        }
        sums
    }

    fn home(&self, inst: Inst) -> Option<Block> {
        self.homes[inst].map(|(block, _)| block)
    }

    /// Whether there is a sum of a reduction and something.
    fn any(&self, kernel: &Kernel) -> bool {
        let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        insts.into_iter().any(|&inst| match &kernel.insts[inst] {
            InstData::Pure { op, args } => args.iter().any(|&arg| self.reduction(kernel, arg, *op).is_some()),
            _ => false,
        })
    }

    /// The reduction by an operation that a value is, if it is used once.
    fn reduction(&self, kernel: &Kernel, value: Value, op: Op) -> Option<(Inst, SubgroupOp)> {
        let ValueDef::Result { inst, .. } = kernel.values[value] else { return None };
        match kernel.insts[inst] {
            InstData::Subgroup { op: how, .. } if puts_together(how) == Some(op) && self.uses[value] == 1 => {
                Some((inst, how))
            }
            _ => None,
        }
    }
}

/// Joins reductions that are summed up.
struct Joiner<'a> {
    kernel: &'a mut Kernel,
    sums: Sums,
    dominators: &'a Dominators,
    postdominators: Postdominators,
    loops: &'a Loops,
    aliases: Aliases,
    /// New instructions, by what they come right before.
    before: HashMap<Inst, SmallVec<[Inst; 2]>>,
    gone: EntitySet<Inst>,
}

impl<'a> Joiner<'a> {
    fn new(kernel: &'a mut Kernel, dominators: &'a Dominators, loops: &'a Loops) -> Self {
        let postdominators = Postdominators::new(kernel, dominators, loops);
        let (sums, aliases, before) = (Sums::new(kernel), Aliases::default(), HashMap::default());
        Self { kernel, sums, dominators, postdominators, loops, aliases, before, gone: EntitySet::new() }
    }

    fn join(mut self) {
        let kernel = &*self.kernel;
        let all: Vec<Inst> = kernel.layout.iter().flat_map(|&block| kernel.blocks[block].insts.clone()).collect();
        for inst in all {
            self.sum(inst);
        }
        let Self { kernel, aliases, before, gone, .. } = self;
        if gone.is_empty() {
            return;
        }
        for &block in &kernel.layout {
            let old = std::mem::take(&mut kernel.blocks[block].insts);
            let insts = &mut kernel.blocks[block].insts;
            for inst in old {
                insts.extend(before.get(&inst).into_iter().flatten());
                insts.extend(Some(inst).filter(|&inst| !gone.contains(inst)));
            }
        }
        aliases.apply(kernel);
    }

    /// The operands of a sum.
    fn operands(&self, value: Value) -> Option<(Inst, Op, [Value; 2])> {
        let ValueDef::Result { inst, .. } = self.kernel.values[value] else { return None };
        self.operands_of(inst).map(|(op, args)| (inst, op, args))
    }

    fn operands_of(&self, inst: Inst) -> Option<(Op, [Value; 2])> {
        match self.kernel.insts[inst] {
            InstData::Pure { op, ref args } => {
                let [a, b] = args[..].try_into().ok()?;
                Some((op, [self.aliases.resolve(a), self.aliases.resolve(b)]))
            }
            _ => None,
        }
    }

    /// Joins the two reductions that a sum is of, or one of them and one that a summand is a sum of.
    fn sum(&mut self, inst: Inst) {
        let Some((op, args)) = self.operands_of(inst) else { return };
        if args[0] == args[1] {
            return;
        }
        for [summand, reduced] in [args, [args[1], args[0]]] {
            let Some(second) = self.sums.reduction(self.kernel, reduced, op) else { continue };
            if let Some(first) = self.sums.reduction(self.kernel, summand, op) {
                if let Some(joined) = self.join_two(op, first, second) {
                    self.gone.insert(inst);
                    if let Some(result) = self.kernel.results[inst] {
                        self.sums.uses[joined] = self.sums.uses[result];
                        self.aliases.replace(result, joined);
                    }
                    return;
                }
                continue;
            }
            let Some((inner, inner_op, inner_args)) = self.operands(summand) else { continue };
            if inner_op != op || self.sums.uses[summand] != 1 || inner_args[0] == inner_args[1] {
                continue;
            }
            for [rest, reduced] in [inner_args, [inner_args[1], inner_args[0]]] {
                if let Some(first) = self.sums.reduction(self.kernel, reduced, op)
                    && let Some(joined) = self.join_two(op, first, second)
                {
                    self.gone.insert(inner);
                    self.kernel.insts[inst] = InstData::Pure { op, args: [rest, joined].into_iter().collect() };
                    return;
                }
            }
        }
    }

    /// Makes one reduction of two that the same invocations do; gives what it is.
    fn join_two(&mut self, op: Op, first: (Inst, SubgroupOp), second: (Inst, SubgroupOp)) -> Option<Value> {
        if first.1 != second.1 {
            return None;
        }
        let (first, second) = self.in_order(first.0, second.0)?;
        let summands = [first, second].map(|inst| match &self.kernel.insts[inst] {
            InstData::Subgroup { args, .. } => args.first().copied(),
            _ => None,
        });
        let args = [summands[0]?, summands[1]?].into_iter().collect();
        let origin = self.kernel.origins[second];
        let (sum, value) = cfg::create(self.kernel, InstData::Pure { op, args }, op.result(), origin);
        self.before.entry(second).or_default().push(sum);
        self.gone.insert(first);
        if let InstData::Subgroup { args, .. } = &mut self.kernel.insts[second] {
            *args = std::iter::once(value).collect();
        }
        self.kernel.results[second]
    }

    /// Two instructions as every invocation comes to them, if it comes to both.
    fn in_order(&self, first: Inst, second: Inst) -> Option<(Inst, Inst)> {
        let (a, b) = (self.sums.homes[first]?, self.sums.homes[second]?);
        if a.0 == b.0 {
            return Some(if a.1 < b.1 { (first, second) } else { (second, first) });
        }
        if self.loops.of(a.0) != self.loops.of(b.0) {
            return None;
        }
        let always = |above: Block, below: Block| {
            self.dominators.dominates(above, below) && self.postdominators.postdominates(below, above)
        };
        match (always(a.0, b.0), always(b.0, a.0)) {
            (true, _) => Some((first, second)),
            (_, true) => Some((second, first)),
            _ => None,
        }
    }
}
