//! Constant-array promotion: a private variable that always holds the same words moves to constant memory.
//!
//! Front ends emit an indexed constant array as a private variable into which each invocation stores all words before
//! it loads one. If every word is only ever stored one constant, and is stored before each load, one copy serves all
//! invocations.

use std::collections::BTreeMap;

use cranelift_entity::SecondaryMap;

use super::cfg;
use crate::analysis::Dominators;
use crate::ir::{Block, InstData, Kernel, Place, Type, Value, Variable, VariableSpace};

/// What is known of a private variable.
#[derive(Clone, Debug, Default)]
struct CandidateVariable {
    /// The only constant stored at each byte offset.
    words: BTreeMap<u32, u32>,
    /// The blocks with stores, in layout order, each with the number of different offsets that it stores to.
    stores: Vec<(Block, usize)>,
    /// The block of each load, with the number of different offsets that this block stores to before the load.
    loads: Vec<(Block, usize)>,
    /// Whether promotion is ruled out: the variable is not private, or an access is an atomic, is volatile, loads at a
    /// constant offset, or stores what is no constant, no whole word in bounds, or a second constant.
    disqualified: bool,
}

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    if kernel.variables.values().all(|data| data.space != VariableSpace::Private) {
        return;
    }
    cfg::prune(kernel);
    let candidates = find(kernel);
    let dominators = Dominators::new(kernel);
    let mut changed = false;
    for (variable, candidate) in candidates.iter() {
        if kernel.variables.is_valid(variable) && is_constant_array(&dominators, candidate) {
            let data = &mut kernel.variables[variable];
            data.space = VariableSpace::Constant;
            data.words =
                (0..data.bytes / 4).map(|word| candidate.words.get(&(word * 4)).copied().unwrap_or(0)).collect();
            changed = true;
        }
    }
    if !changed {
        return;
    }
    for &block in &kernel.layout {
        let Kernel { blocks, insts, variables, .. } = kernel;
        blocks[block].insts.retain(|&inst| match insts[inst] {
            InstData::Store { place: Place::Variable { variable, .. }, .. } => {
                variables[variable].space != VariableSpace::Constant
            }
            _ => true,
        });
    }
}

fn find(kernel: &Kernel) -> SecondaryMap<Variable, CandidateVariable> {
    let mut candidates: SecondaryMap<Variable, CandidateVariable> = SecondaryMap::new();
    for &block in &kernel.layout {
        // Offsets stored to in this block.
        let mut here: BTreeMap<(Variable, u32), ()> = BTreeMap::new();
        for &inst in &kernel.blocks[block].insts {
            match kernel.insts[inst] {
                InstData::Load { place: Place::Variable { variable, offset }, access, .. } => {
                    let candidate = &mut candidates[variable];
                    let before =
                        candidate.stores.last().filter(|stores| stores.0 == block).map_or(0, |stores| stores.1);
                    candidate.loads.push((block, before));
                    // Words at known offsets are better as SSA values (mem2reg).
                    candidate.disqualified |= access.volatile || kernel.constant(offset).is_some();
                }
                InstData::Store { place: Place::Variable { variable, offset }, value, access, .. } => {
                    let candidate = &mut candidates[variable];
                    let Some((offset, word)) = constants(kernel, variable, offset, value).filter(|_| !access.volatile)
                    else {
                        candidate.disqualified = true;
                        continue;
                    };
                    candidate.disqualified |= *candidate.words.entry(offset).or_insert(word) != word;
                    let first = here.insert((variable, offset), ()).is_none();
                    match candidate.stores.last_mut() {
                        Some((last, count)) if *last == block => *count += usize::from(first),
                        _ => candidate.stores.push((block, 1)),
                    }
                }
                InstData::Atomic { place: Place::Variable { variable, .. }, .. } => {
                    candidates[variable].disqualified = true;
                }
                _ => {}
            }
        }
    }
    candidates.iter_mut().for_each(|(variable, candidate)| {
        let private = kernel.variables.get(variable).is_some_and(|data| data.space == VariableSpace::Private);
        candidate.disqualified |= !private;
    });
    candidates
}

/// Byte offset and word, if the store writes a constant to a whole word in bounds.
fn constants(kernel: &Kernel, variable: Variable, offset: Value, value: Value) -> Option<(u32, u32)> {
    let (offset, word) = (kernel.constant(offset)?, kernel.constant(value)?);
    let inside = offset.is_multiple_of(4) && offset < u64::from(kernel.variables[variable].bytes);
    let fits = matches!(kernel.ty(value), Type::I32 | Type::F32);
    (inside && fits).then_some((offset as u32, word as u32))
}

/// Whether each load is preceded by stores to all words that any store writes: in its block, or in one block that
/// dominates it.
fn is_constant_array(dominators: &Dominators, candidate: &CandidateVariable) -> bool {
    let all = candidate.words.len();
    let complete_blocks: Vec<Block> =
        candidate.stores.iter().filter(|stores| stores.1 == all).map(|stores| stores.0).collect();
    let dominated =
        |block: Block| complete_blocks.iter().any(|&other| other != block && dominators.dominates(other, block));
    // The check below is quadratic: bounds its cost.
    let is_affordable = candidate.loads.len() * complete_blocks.len() < 1 << 16;
    let complete = |&(block, before): &(Block, usize)| before == all || dominated(block);
    !candidate.disqualified && is_affordable && !candidate.loads.is_empty() && candidate.loads.iter().all(complete)
}
