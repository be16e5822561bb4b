//! Two blocks with nothing but a jump between them are one.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::{named, terminator};
use crate::ir::{Block, InstData, Kernel, Merge};
use crate::opt::aliases::Aliases;

/// Takes blocks into their only predecessors. Says whether there were any.
pub(super) fn blocks(kernel: &mut Kernel) -> bool {
    let mut joiner = Joiner::new(kernel);
    for place in 0..kernel.layout.len() {
        let block = kernel.layout[place];
        if joiner.home[block].is_some() {
            continue;
        }
        while let Some(next) = joiner.follower(kernel, block) {
            joiner.join(kernel, block, next);
        }
    }
    joiner.finish(kernel)
}

struct Joiner {
    /// How many branches lead to each block.
    ways: SecondaryMap<Block, u32>,
    named: EntitySet<Block>,
    /// The block that a block went into.
    home: SecondaryMap<Block, Option<Block>>,
    aliases: Aliases,
    any: bool,
}

impl Joiner {
    fn new(kernel: &Kernel) -> Self {
        let mut joiner = Self {
            ways: SecondaryMap::new(),
            named: EntitySet::new(),
            home: SecondaryMap::new(),
            aliases: Aliases::default(),
            any: false,
        };
        for &block in &kernel.layout {
            joiner.named.extend(named(kernel.blocks[block].merge));
            let Some(last) = terminator(kernel, block) else { continue };
            kernel.insts[last].targets().iter().for_each(|call| joiner.ways[call.block] += 1);
        }
        joiner
    }

    /// The block that `block` can take in.
    fn follower(&self, kernel: &Kernel, block: Block) -> Option<Block> {
        let InstData::Jump { to } = &kernel.insts[terminator(kernel, block)?] else { return None };
        let next = to.block;
        let is_header = matches!(kernel.blocks[block].merge, Some(Merge::Loop { .. }));
        let fits = self.ways[next] == 1
            && next != block
            // One block has one annotation, and is named by one construct.
            && !(is_header && kernel.blocks[next].merge.is_some())
            && !(self.named.contains(block) && self.named.contains(next));
        fits.then_some(next)
    }

    fn join(&mut self, kernel: &mut Kernel, block: Block, next: Block) {
        let Some(jump) = kernel.blocks[block].insts.pop() else { return };
        let taken = std::mem::take(&mut kernel.blocks[next]);
        if let InstData::Jump { to } = &kernel.insts[jump] {
            for (&param, &arg) in taken.params.iter().zip(&to.args) {
                self.aliases.replace(param, arg);
            }
        }
        let head = &mut kernel.blocks[block];
        match (head.merge, taken.insts.last()) {
            // Where a loop is in the source is read off the end of its header.
            (Some(Merge::Loop { .. }), Some(&last)) => kernel.origins[last] = kernel.origins[jump],
            (Some(Merge::Loop { .. }), None) => {}
            _ => head.merge = taken.merge,
        }
        head.insts.extend(taken.insts);
        if self.named.contains(next) {
            self.named.insert(block);
        }
        self.home[next] = Some(block);
        self.any = true;
    }

    fn finish(self, kernel: &mut Kernel) -> bool {
        if !self.any {
            return false;
        }
        kernel.layout.retain(|&block| self.home[block].is_none());
        for &block in &kernel.layout {
            match &mut kernel.blocks[block].merge {
                None => {}
                Some(Merge::Selection { merge }) => *merge = self.home[*merge].unwrap_or(*merge),
                Some(Merge::Loop { merge, continuing }) => {
                    for name in [merge, continuing] {
                        *name = self.home[*name].unwrap_or(*name);
                    }
                }
            }
        }
        self.aliases.apply(kernel);
        true
    }
}
