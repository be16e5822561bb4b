//! Merges B into A if A's only outgoing edge is B's only incoming edge.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::named;
use crate::ir::{Block, InstData, Kernel, Merge};
use crate::opt::aliases::Aliases;

/// Merges blocks into their only predecessors. Returns whether there were any.
pub(super) fn blocks(kernel: &mut Kernel) -> bool {
    let mut merger = BlockMerger::new(kernel);
    for position in 0..kernel.layout.len() {
        let block = kernel.layout[position];
        if merger.merged_into[block].is_some() {
            continue;
        }
        while let Some(next) = merger.successor(kernel, block) {
            merger.merge_into(kernel, block, next);
        }
    }
    merger.finish(kernel)
}

struct BlockMerger {
    /// How many edges lead to each block.
    incoming: SecondaryMap<Block, u32>,
    /// The blocks that annotations name as a merge or continuing block.
    named: EntitySet<Block>,
    /// The block that a block was merged into.
    merged_into: SecondaryMap<Block, Option<Block>>,
    aliases: Aliases,
    any: bool,
}

impl BlockMerger {
    fn new(kernel: &Kernel) -> Self {
        let mut merger = Self {
            incoming: SecondaryMap::new(),
            named: EntitySet::new(),
            merged_into: SecondaryMap::new(),
            aliases: Aliases::default(),
            any: false,
        };
        for &block in &kernel.layout {
            merger.named.extend(named(kernel.blocks[block].merge));
            let Some(last) = kernel.last_inst(block) else { continue };
            kernel.insts[last].targets().iter().for_each(|call| merger.incoming[call.block] += 1);
        }
        merger
    }

    /// The only successor of `block`, if it can be merged into `block`.
    fn successor(&self, kernel: &Kernel, block: Block) -> Option<Block> {
        let InstData::Jump { to } = kernel.terminator(block)? else { return None };
        let next = to.block;
        let is_header = matches!(kernel.blocks[block].merge, Some(Merge::Loop { .. }));
        let fits = self.incoming[next] == 1
            && next != block
            // The merged block would otherwise need two annotations, or two constructs would name it.
            && !(is_header && kernel.blocks[next].merge.is_some())
            && !(self.named.contains(block) && self.named.contains(next));
        fits.then_some(next)
    }

    fn merge_into(&mut self, kernel: &mut Kernel, block: Block, next: Block) {
        let Some(jump) = kernel.blocks[block].insts.pop() else { return };
        let taken = std::mem::take(&mut kernel.blocks[next]);
        if let InstData::Jump { to } = &kernel.insts[jump] {
            for (&param, &arg) in taken.params.iter().zip(&to.args) {
                self.aliases.replace(param, arg);
            }
        }
        let head = &mut kernel.blocks[block];
        match (head.merge, taken.insts.last()) {
            // The terminator of the header carries the loop's source position.
            (Some(Merge::Loop { .. }), Some(&last)) => kernel.origins[last] = kernel.origins[jump],
            (Some(Merge::Loop { .. }), None) => {}
            _ => head.merge = taken.merge,
        }
        head.insts.extend(taken.insts);
        if self.named.contains(next) {
            self.named.insert(block);
        }
        self.merged_into[next] = Some(block);
        self.any = true;
    }

    fn finish(self, kernel: &mut Kernel) -> bool {
        if !self.any {
            return false;
        }
        kernel.layout.retain(|&block| self.merged_into[block].is_none());
        for &block in &kernel.layout {
            match &mut kernel.blocks[block].merge {
                None => {}
                Some(Merge::Selection { merge }) => *merge = self.merged_into[*merge].unwrap_or(*merge),
                Some(Merge::Loop { merge, continuing }) => {
                    for name in [merge, continuing] {
                        *name = self.merged_into[*name].unwrap_or(*name);
                    }
                }
            }
        }
        self.aliases.apply(kernel);
        true
    }
}
