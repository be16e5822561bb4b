//! Placement of block parameters: the iterated dominance frontier of the blocks that store a word (Cytron and others,
//! "Efficiently Computing Static Single Assignment Form", 1991).

use cranelift_entity::SecondaryMap;

use super::words::PromotableWords;
use crate::analysis::{Dominators, predecessors};
use crate::ir::{Block, Kernel};

/// For each block, the numbers of the words that need a parameter there, in order.
pub(super) type Joins = SecondaryMap<Block, Vec<usize>>;

/// Finds the joins. Words that need too many parameters stay in memory.
pub(super) fn joins(kernel: &Kernel, dominators: &Dominators, words: &mut PromotableWords) -> Joins {
    // Frontiers of deep loop nests, and joins of programs with many words, grow with the square of their size.
    let mut budget = 65_536 + 4 * kernel.insts.len();
    let mut joins = Joins::new();
    let frontiers = frontiers(kernel, dominators, budget);
    let mut seen: SecondaryMap<Block, usize> = SecondaryMap::new();
    for (number, word) in words.all.iter_mut().enumerate().filter(|(_, word)| word.is_live_in) {
        let Some(frontiers) = &frontiers else {
            word.is_kept = true;
            continue;
        };
        let mut pending = word.stored_in.clone();
        let mut parameters_at = Vec::new();
        while let Some(block) = pending.pop() {
            for &join in &frontiers[block] {
                if seen[join] != number + 1 {
                    seen[join] = number + 1;
                    parameters_at.push(join);
                    pending.push(join);
                }
            }
            budget = budget.saturating_sub(1 + frontiers[block].len());
        }
        word.is_kept = budget == 0;
        if !word.is_kept {
            parameters_at.into_iter().for_each(|join| joins[join].push(number));
        }
    }
    joins
}

/// The dominance frontier of each block; `None` if they have more than `limit` entries in total.
fn frontiers(kernel: &Kernel, dominators: &Dominators, limit: usize) -> Option<SecondaryMap<Block, Vec<Block>>> {
    let mut frontiers: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    let predecessors = predecessors(kernel);
    let mut length = 0;
    for &join in kernel.layout.iter().filter(|&&block| predecessors[block].len() > 1) {
        let end = dominators.idom(join);
        for &from in &predecessors[join] {
            let mut at = Some(from);
            while let Some(block) = at.filter(|_| at != end) {
                if frontiers[block].last() == Some(&join) {
                    break;
                }
                frontiers[block].push(join);
                length += 1;
                if length > limit {
                    return None;
                }
                at = dominators.idom(block);
            }
        }
    }
    Some(frontiers)
}
