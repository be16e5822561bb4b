//! Reassociation of subgroup reductions: a sum of reductions becomes one reduction of a sum.
//!
//! A reduction takes four shuffles, and kernels that reduce an array often have one per element that an invocation
//! handles. The operation is associative and commutative, so the sum of two reductions is the reduction of the sums, if
//! the same invocations execute both; the same holds for scans. This is so if every invocation that executes one of the
//! two blocks executes the other in the same iteration of the same loops: one dominates the other, which postdominates
//! it. Only for integers: floats would round differently. `carried.rs` does the same for loop-carried sums.

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
    let is_reduction = |data: &InstData| matches!(data, InstData::Subgroup { op, .. } if commutative_op(*op).is_some());
    if !kernel.insts.values().any(is_reduction) || !Definitions::new(kernel).has_sum(kernel) || !is_reducible(kernel) {
        return;
    }
    let dominators = Dominators::new(kernel);
    let loops = Loops::new(kernel, &dominators);
    Merger::new(kernel, &dominators, &loops).merge();
    carried::run(kernel, &dominators, &loops);
}

/// Whether every edge to an earlier block is a loop's back edge. Without this, [`Loops`] does not describe iterations.
fn is_reducible(kernel: &Kernel) -> bool {
    let (positions, dominators) = (positions(kernel), Dominators::new(kernel));
    kernel.layout.iter().all(|&block| {
        let targets = kernel.targets(block);
        targets.iter().all(|to| positions[to.block] > positions[block] || dominators.dominates(to.block, block))
    })
}

/// The operation of a reduction or scan, if it is associative and commutative.
fn commutative_op(op: SubgroupOp) -> Option<Op> {
    use Op::{And, IAdd, IMul, Or, SMax, SMin, UMax, UMin, Xor};
    match op {
        SubgroupOp::Reduce(op, _) | SubgroupOp::Inclusive(op) | SubgroupOp::Exclusive(op) => {
            matches!(op, IAdd | IMul | And | Or | Xor | UMin | UMax | SMin | SMax).then_some(op)
        }
        SubgroupOp::Ballot | SubgroupOp::Shuffle(_) => None,
    }
}

/// The position of each instruction (block, index), and the number of uses of each value.
struct Definitions {
    positions: SecondaryMap<Inst, Option<(Block, u32)>>,
    uses: SecondaryMap<Value, u32>,
}

impl Definitions {
    fn new(kernel: &Kernel) -> Self {
        let mut definitions = Self { positions: SecondaryMap::new(), uses: SecondaryMap::new() };
        for &block in &kernel.layout {
            for (index, &inst) in (0u32..).zip(&kernel.blocks[block].insts) {
                definitions.positions[inst] = Some((block, index));
                kernel.insts[inst].for_each_use(|value| definitions.uses[value] += 1);
            }
        }
        definitions
    }

    fn block(&self, inst: Inst) -> Option<Block> {
        self.positions[inst].map(|(block, _)| block)
    }

    /// Whether some operand of a sum is a reduction by the same operation.
    fn has_sum(&self, kernel: &Kernel) -> bool {
        let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        insts.into_iter().any(|&inst| match &kernel.insts[inst] {
            InstData::Pure { op, args } => args.iter().any(|&arg| self.reduction(kernel, arg, *op).is_some()),
            _ => false,
        })
    }

    /// The reduction by `op` that defines a value with one use.
    fn reduction(&self, kernel: &Kernel, value: Value, op: Op) -> Option<(Inst, SubgroupOp)> {
        let ValueDef::Result { inst, .. } = kernel.values[value] else { return None };
        match kernel.insts[inst] {
            InstData::Subgroup { op: kind, .. } if commutative_op(kind) == Some(op) && self.uses[value] == 1 => {
                Some((inst, kind))
            }
            _ => None,
        }
    }
}

/// Merges reductions whose results are summed.
struct Merger<'a> {
    kernel: &'a mut Kernel,
    definitions: Definitions,
    dominators: &'a Dominators,
    postdominators: Postdominators,
    loops: &'a Loops,
    aliases: Aliases,
    /// New instructions, by the instruction that each is inserted before.
    inserted: HashMap<Inst, SmallVec<[Inst; 2]>>,
    removed: EntitySet<Inst>,
}

impl<'a> Merger<'a> {
    fn new(kernel: &'a mut Kernel, dominators: &'a Dominators, loops: &'a Loops) -> Self {
        let postdominators = Postdominators::new(kernel, dominators, loops);
        let (definitions, aliases, inserted) = (Definitions::new(kernel), Aliases::default(), HashMap::default());
        Self { kernel, definitions, dominators, postdominators, loops, aliases, inserted, removed: EntitySet::new() }
    }

    fn merge(mut self) {
        let kernel = &*self.kernel;
        let all: Vec<Inst> = kernel.layout.iter().flat_map(|&block| kernel.blocks[block].insts.clone()).collect();
        for inst in all {
            self.sum(inst);
        }
        let Self { kernel, aliases, inserted, removed, .. } = self;
        if removed.is_empty() {
            return;
        }
        for &block in &kernel.layout {
            let old = std::mem::take(&mut kernel.blocks[block].insts);
            let insts = &mut kernel.blocks[block].insts;
            for inst in old {
                insts.extend(inserted.get(&inst).into_iter().flatten());
                insts.extend(Some(inst).filter(|&inst| !removed.contains(inst)));
            }
        }
        aliases.apply(kernel);
    }

    /// The operands of the operation that defines a value.
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

    /// Merges the two reductions that a sum adds up, or one of them and one that its other summand adds up.
    fn sum(&mut self, inst: Inst) {
        let Some((op, args)) = self.operands_of(inst) else { return };
        if args[0] == args[1] {
            return;
        }
        for [summand, reduced] in [args, [args[1], args[0]]] {
            let Some(second) = self.definitions.reduction(self.kernel, reduced, op) else { continue };
            if let Some(first) = self.definitions.reduction(self.kernel, summand, op) {
                if let Some(merged) = self.merge_two(op, first, second) {
                    self.removed.insert(inst);
                    if let Some(result) = self.kernel.results[inst] {
                        self.definitions.uses[merged] = self.definitions.uses[result];
                        self.aliases.replace(result, merged);
                    }
                    return;
                }
                continue;
            }
            let Some((inner, inner_op, inner_args)) = self.operands(summand) else { continue };
            if inner_op != op || self.definitions.uses[summand] != 1 || inner_args[0] == inner_args[1] {
                continue;
            }
            for [rest, reduced] in [inner_args, [inner_args[1], inner_args[0]]] {
                if let Some(first) = self.definitions.reduction(self.kernel, reduced, op)
                    && let Some(merged) = self.merge_two(op, first, second)
                {
                    self.removed.insert(inner);
                    self.kernel.insts[inst] = InstData::Pure { op, args: [rest, merged].into_iter().collect() };
                    return;
                }
            }
        }
    }

    /// Merges two reductions that the same invocations execute. Returns the result.
    fn merge_two(&mut self, op: Op, first: (Inst, SubgroupOp), second: (Inst, SubgroupOp)) -> Option<Value> {
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
        self.inserted.entry(second).or_default().push(sum);
        self.removed.insert(first);
        if let InstData::Subgroup { args, .. } = &mut self.kernel.insts[second] {
            *args = std::iter::once(value).collect();
        }
        self.kernel.results[second]
    }

    /// Two instructions in execution order, if every invocation that executes one executes both.
    fn in_order(&self, first: Inst, second: Inst) -> Option<(Inst, Inst)> {
        let (a, b) = (self.definitions.positions[first]?, self.definitions.positions[second]?);
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
