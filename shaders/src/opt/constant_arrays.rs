//! Private variables that always hold the same become tables.
//!
//! A constant array that is indexed comes as a private variable, into which each invocation stores all words before it
//! loads one. Where every word is only ever given the same constant, and has it before each load, one table serves all.

use std::collections::BTreeMap;

use cranelift_entity::SecondaryMap;

use super::cfg;
use crate::analysis::Dominators;
use crate::ir::{Block, InstData, Kernel, Place, Type, Value, Variable, VariableSpace};

/// What is known of a private variable.
#[derive(Clone, Debug, Default)]
struct Candidate {
    /// The only constant that is stored at each offset.
    words: BTreeMap<u32, u32>,
    /// Blocks that store, in the layout's order, with how many stores of words that the block had not stored to before.
    stores: Vec<(Block, usize)>,
    /// Blocks that load, each with the number of stores in the block before.
    loads: Vec<(Block, usize)>,
    /// Whether it is written in other ways, too.
    spoilt: bool,
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
        if kernel.variables.is_valid(variable) && is_table(&dominators, candidate) {
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

fn find(kernel: &Kernel) -> SecondaryMap<Variable, Candidate> {
    let mut candidates: SecondaryMap<Variable, Candidate> = SecondaryMap::new();
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
                    // Words at known offsets are better off as values.
                    candidate.spoilt |= access.volatile || kernel.constant(offset).is_some();
                }
                InstData::Store { place: Place::Variable { variable, offset }, value, access, .. } => {
                    let candidate = &mut candidates[variable];
                    let Some((offset, word)) = constants(kernel, variable, offset, value).filter(|_| !access.volatile)
                    else {
                        candidate.spoilt = true;
                        continue;
                    };
                    candidate.spoilt |= *candidate.words.entry(offset).or_insert(word) != word;
                    let first = here.insert((variable, offset), ()).is_none();
                    match candidate.stores.last_mut() {
                        Some((last, count)) if *last == block => *count += usize::from(first),
                        _ => candidate.stores.push((block, 1)),
                    }
                }
                InstData::Atomic { place: Place::Variable { variable, .. }, .. } => candidates[variable].spoilt = true,
                _ => {}
            }
        }
    }
    candidates.iter_mut().for_each(|(variable, candidate)| {
        let private = kernel.variables.get(variable).is_some_and(|data| data.space == VariableSpace::Private);
        candidate.spoilt |= !private;
    });
    candidates
}

/// Offset and word of a store of a constant to a whole word inside.
fn constants(kernel: &Kernel, variable: Variable, offset: Value, value: Value) -> Option<(u32, u32)> {
    let (offset, word) = (kernel.constant(offset)?, kernel.constant(value)?);
    let inside = offset.is_multiple_of(4) && offset < u64::from(kernel.variables[variable].bytes);
    let fits = matches!(kernel.ty(value), Type::I32 | Type::F32);
    (inside && fits).then_some((offset as u32, word as u32))
}

/// Whether each load comes after some block that stores all words.
fn is_table(dominators: &Dominators, candidate: &Candidate) -> bool {
    let all = candidate.words.len();
    let full: Vec<Block> = candidate.stores.iter().filter(|stores| stores.1 == all).map(|stores| stores.0).collect();
    let above = |block: Block| full.iter().any(|&other| other != block && dominators.dominates(other, block));
    let few = candidate.loads.len() * full.len() < 1 << 16;
    let complete = |&(block, before): &(Block, usize)| before == all || above(block);
    !candidate.spoilt && few && !candidate.loads.is_empty() && candidate.loads.iter().all(complete)
}
