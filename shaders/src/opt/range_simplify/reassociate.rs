//! Sums of several terms, in an order that lets loops reuse the most: terms that change least come first, constants last.
//!
//! `(i + k) + 4 * n` in a loop over `k` becomes `(i + 4 * n) + k`, and the first sum can leave the loop. Neighbours that differ
//! by a constant share all but the last step. Sums wrap around, so the order does not matter to the result.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use crate::analysis::{Dominators, Loops};
use crate::ir::{Block, Inst, InstData, Kernel, Op, Value, ValueDef};

/// Terms of one sum, at most.
const MAX_TERMS: usize = 12;

/// Puts the terms of all sums in order.
pub(super) fn sums(kernel: &mut Kernel) {
    let order = Order::new(kernel);
    // Made once for all blocks: an instruction is in one of them.
    let mut inner = EntitySet::with_capacity(kernel.insts.len());
    let mut parts = SecondaryMap::new();
    for place in 0..kernel.layout.len() {
        let block = kernel.layout[place];
        let sums = order.sums(kernel, block, &mut inner);
        if !sums.is_empty() {
            rebuild(kernel, block, &sums, &mut parts);
        }
    }
}

/// A sum: the instructions that add it up, the last of which gives it, and its terms in the new order.
struct Sum {
    insts: SmallVec<[Inst; 4]>,
    terms: SmallVec<[Value; 6]>,
}

struct Order {
    uses: SecondaryMap<Value, u32>,
    /// How many loops are around each block.
    depths: SecondaryMap<Block, u32>,
    homes: SecondaryMap<Inst, Option<Block>>,
}

impl Order {
    fn new(kernel: &Kernel) -> Self {
        let loops = Loops::new(kernel, &Dominators::new(kernel));
        let mut loop_depths: Vec<u32> = Vec::with_capacity(loops.all.len());
        for found in &loops.all {
            loop_depths.push(found.parent.map_or(1, |parent| loop_depths[parent] + 1));
        }
        let mut order = Self { uses: SecondaryMap::new(), depths: SecondaryMap::new(), homes: SecondaryMap::new() };
        order.uses.resize(kernel.values.len());
        order.depths.resize(kernel.blocks.len());
        order.homes.resize(kernel.insts.len());
        for &block in &kernel.layout {
            order.depths[block] = loops.of(block).map_or(0, |number| loop_depths[number]);
            for &inst in &kernel.blocks[block].insts {
                order.homes[inst] = Some(block);
                kernel.insts[inst].for_each_use(|value| order.uses[value] += 1);
            }
        }
        order
    }

    /// The sums of a block whose terms are to change places.
    fn sums(&self, kernel: &Kernel, block: Block, inner: &mut EntitySet<Inst>) -> Vec<Sum> {
        let mut sums = Vec::new();
        for &inst in kernel.blocks[block].insts.iter().rev() {
            if inner.contains(inst) || addends(kernel, inst).is_none() {
                continue;
            }
            let mut sum = Sum { insts: SmallVec::new(), terms: SmallVec::new() };
            self.gather(kernel, block, inst, &mut sum);
            sum.insts.iter().for_each(|&part| _ = inner.insert(part));
            let before = sum.terms.clone();
            sum.terms.sort_by_key(|&term| self.rank(kernel, term));
            if sum.terms.len() > 2 && sum.terms != before {
                sums.push(sum);
            }
        }
        sums
    }

    /// Takes a sum apart as far as its parts serve nobody else.
    fn gather(&self, kernel: &Kernel, block: Block, root: Inst, sum: &mut Sum) {
        let mut stack: SmallVec<[Value; 8]> = SmallVec::new();
        stack.extend(addends(kernel, root).into_iter().flatten().rev());
        sum.insts.push(root);
        while let Some(value) = stack.pop() {
            let part = match kernel.values[value] {
                ValueDef::Result { inst, .. } if self.uses[value] == 1 && self.homes[inst] == Some(block) => Some(inst),
                _ => None,
            };
            let room = sum.terms.len() + stack.len() + 2 <= MAX_TERMS;
            match part.and_then(|inst| addends(kernel, inst).filter(|_| room).zip(Some(inst))) {
                Some((more, inst)) => {
                    sum.insts.push(inst);
                    stack.extend(more.into_iter().rev());
                }
                None => sum.terms.push(value),
            }
        }
    }

    /// How late a term is added.
    fn rank(&self, kernel: &Kernel, term: Value) -> (bool, u32) {
        let home = match kernel.values[term] {
            ValueDef::Result { inst, .. } => self.homes[inst],
            ValueDef::Param { block, .. } => Some(block),
        };
        (kernel.constant(term).is_some(), home.map_or(0, |home| self.depths[home]))
    }
}

fn addends(kernel: &Kernel, inst: Inst) -> Option<[Value; 2]> {
    match &kernel.insts[inst] {
        InstData::Pure { op: Op::IAdd, args } => args[..].try_into().ok(),
        _ => None,
    }
}

/// Adds the sums up anew, where they were complete before.
fn rebuild(kernel: &mut Kernel, block: Block, sums: &[Sum], parts: &mut SecondaryMap<Inst, Option<u32>>) {
    parts.resize(kernel.insts.len());
    for (number, sum) in sums.iter().enumerate() {
        sum.insts.iter().for_each(|&inst| parts[inst] = Some(number as u32));
    }
    let old = std::mem::take(&mut kernel.blocks[block].insts);
    let mut insts = Vec::with_capacity(old.len());
    for inst in old {
        let Some(sum) = parts[inst].map(|number| &sums[number as usize]) else {
            insts.push(inst);
            continue;
        };
        // The first of the list is the whole sum; the others wait for it.
        let Some((&whole, others)) = sum.insts.split_first().filter(|(whole, _)| **whole == inst) else { continue };
        let steps = others.iter().copied().chain([whole]);
        let mut so_far = sum.terms[0];
        for (step, &term) in steps.zip(&sum.terms[1..]) {
            kernel.insts[step] = InstData::Pure { op: Op::IAdd, args: SmallVec::from_slice(&[so_far, term]) };
            so_far = kernel.results[step].unwrap_or(so_far);
            insts.push(step);
        }
    }
    kernel.blocks[block].insts = insts;
}
