//! Reassociation of integer sums of three or more terms: terms defined in fewer loops come first, constants last.
//!
//! In a loop over `k`, `(i + k) + 4 * n` becomes `(i + 4 * n) + k`, and LICM can hoist the first sum. Sums that differ
//! by a constant share everything but the last addition. Addition wraps, so the order does not change the result.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use crate::analysis::{Dominators, Loops};
use crate::ir::{Block, Inst, InstData, Kernel, Op, Value, ValueDef};

/// Maximum number of terms of one sum.
const MAX_TERMS: usize = 12;

/// Reorders the terms of all sums.
pub(super) fn sums(kernel: &mut Kernel) {
    let order = TermOrder::new(kernel);
    // Allocated once for all blocks: each instruction is in one of them.
    let mut inner = EntitySet::with_capacity(kernel.insts.len());
    let mut sum_of_inst = SecondaryMap::new();
    for position in 0..kernel.layout.len() {
        let block = kernel.layout[position];
        let sums = order.sums(kernel, block, &mut inner);
        if !sums.is_empty() {
            rebuild(kernel, block, &sums, &mut sum_of_inst);
        }
    }
}

/// A sum: its additions, the last executed one first, and its terms in the new order.
struct Sum {
    insts: SmallVec<[Inst; 4]>,
    terms: SmallVec<[Value; 6]>,
}

struct TermOrder {
    uses: SecondaryMap<Value, u32>,
    /// The loop depth of each block.
    depths: SecondaryMap<Block, u32>,
    inst_blocks: SecondaryMap<Inst, Option<Block>>,
}

impl TermOrder {
    fn new(kernel: &Kernel) -> Self {
        let loops = Loops::new(kernel, &Dominators::new(kernel));
        let mut loop_depths: Vec<u32> = Vec::with_capacity(loops.all.len());
        for found in &loops.all {
            loop_depths.push(found.parent.map_or(1, |parent| loop_depths[parent] + 1));
        }
        let mut order =
            Self { uses: SecondaryMap::new(), depths: SecondaryMap::new(), inst_blocks: SecondaryMap::new() };
        order.uses.resize(kernel.values.len());
        order.depths.resize(kernel.blocks.len());
        order.inst_blocks.resize(kernel.insts.len());
        for &block in &kernel.layout {
            order.depths[block] = loops.of(block).map_or(0, |number| loop_depths[number]);
            for &inst in &kernel.blocks[block].insts {
                order.inst_blocks[inst] = Some(block);
                kernel.insts[inst].for_each_use(|value| order.uses[value] += 1);
            }
        }
        order
    }

    /// The sums of a block whose order of terms changes.
    fn sums(&self, kernel: &Kernel, block: Block, inner: &mut EntitySet<Inst>) -> Vec<Sum> {
        let mut sums = Vec::new();
        for &inst in kernel.blocks[block].insts.iter().rev() {
            if inner.contains(inst) || addends(kernel, inst).is_none() {
                continue;
            }
            let mut sum = Sum { insts: SmallVec::new(), terms: SmallVec::new() };
            self.gather(kernel, block, inst, &mut sum);
            sum.insts.iter().for_each(|&inner_sum| _ = inner.insert(inner_sum));
            let before = sum.terms.clone();
            sum.terms.sort_by_key(|&term| self.rank(kernel, term));
            if sum.terms.len() > 2 && sum.terms != before {
                sums.push(sum);
            }
        }
        sums
    }

    /// Collects a sum's additions and terms. An addition with another use, or in another block, is a term.
    fn gather(&self, kernel: &Kernel, block: Block, root: Inst, sum: &mut Sum) {
        let mut stack: SmallVec<[Value; 8]> = SmallVec::new();
        stack.extend(addends(kernel, root).into_iter().flatten().rev());
        sum.insts.push(root);
        while let Some(value) = stack.pop() {
            let inner_sum = match kernel.values[value] {
                ValueDef::Result { inst, .. } if self.uses[value] == 1 && self.inst_blocks[inst] == Some(block) => {
                    Some(inst)
                }
                _ => None,
            };
            let room = sum.terms.len() + stack.len() + 2 <= MAX_TERMS;
            match inner_sum.and_then(|inst| addends(kernel, inst).filter(|_| room).zip(Some(inst))) {
                Some((addends, inst)) => {
                    sum.insts.push(inst);
                    stack.extend(addends.into_iter().rev());
                }
                None => sum.terms.push(value),
            }
        }
    }

    /// Sort key of a term: constants last, then by loop depth.
    fn rank(&self, kernel: &Kernel, term: Value) -> (bool, u32) {
        let defining_block = match kernel.values[term] {
            ValueDef::Result { inst, .. } => self.inst_blocks[inst],
            ValueDef::Param { block, .. } => Some(block),
        };
        (kernel.constant(term).is_some(), defining_block.map_or(0, |defining_block| self.depths[defining_block]))
    }
}

fn addends(kernel: &Kernel, inst: Inst) -> Option<[Value; 2]> {
    match &kernel.insts[inst] {
        InstData::Pure { op: Op::IAdd, args } => args[..].try_into().ok(),
        _ => None,
    }
}

/// Adds the sums up anew, where they were complete before.
fn rebuild(kernel: &mut Kernel, block: Block, sums: &[Sum], sum_of_inst: &mut SecondaryMap<Inst, Option<u32>>) {
    sum_of_inst.resize(kernel.insts.len());
    for (number, sum) in sums.iter().enumerate() {
        sum.insts.iter().for_each(|&inst| sum_of_inst[inst] = Some(number as u32));
    }
    let old = std::mem::take(&mut kernel.blocks[block].insts);
    let mut insts = Vec::with_capacity(old.len());
    for inst in old {
        let Some(sum) = sum_of_inst[inst].map(|number| &sums[number as usize]) else {
            insts.push(inst);
            continue;
        };
        // The first of the list is the whole sum; the others wait for it.
        let Some((&root, others)) = sum.insts.split_first().filter(|(root, _)| **root == inst) else { continue };
        let steps = others.iter().copied().chain([root]);
        let mut partial_sum = sum.terms[0];
        for (step, &term) in steps.zip(&sum.terms[1..]) {
            kernel.insts[step] = InstData::Pure { op: Op::IAdd, args: SmallVec::from_slice(&[partial_sum, term]) };
            partial_sum = kernel.results[step].unwrap_or(partial_sum);
            insts.push(step);
        }
    }
    kernel.blocks[block].insts = insts;
}
