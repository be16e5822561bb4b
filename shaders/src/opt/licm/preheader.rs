//! Loop preheaders: an existing block that only jumps to the header, or a new block.

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

use crate::analysis::{Dominators, Loops, predecessors};
use crate::ir::{Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Value, ValueDef};

/// Inserts the moved instructions at the end of the preheaders.
pub(super) fn insert(kernel: &mut Kernel, loops: &Loops, dominators: &Dominators, moved: Vec<Vec<Inst>>) {
    if moved.iter().all(Vec::is_empty) {
        return;
    }
    let predecessors = predecessors(kernel);
    let mut placer = Placer { naming: naming(kernel), kernel, created: SecondaryMap::new() };
    for (found, insts) in loops.all.iter().zip(moved).filter(|(_, insts)| !insts.is_empty()) {
        let outside = |block: &Block| !dominators.dominates(found.header, *block);
        let entering: SmallVec<[Block; 2]> = predecessors[found.header].iter().copied().filter(outside).collect();
        let block = placer.preheader(found.header, &entering, dominators);
        let list = &mut placer.kernel.blocks[block].insts;
        let end = list.len().saturating_sub(1);
        list.splice(end..end, insts);
    }
    placer.lay_out();
}

/// For each block, the constructs whose annotations name it.
fn naming(kernel: &Kernel) -> SecondaryMap<Block, SmallVec<[Block; 2]>> {
    let mut naming: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
    for &block in &kernel.layout {
        match kernel.blocks[block].merge {
            None => {}
            Some(Merge::Selection { merge }) => naming[merge].push(block),
            Some(Merge::Loop { merge, continuing }) => {
                naming[merge].push(block);
                naming[continuing].push(block);
            }
        }
    }
    naming
}

struct Placer<'k> {
    kernel: &'k mut Kernel,
    naming: SecondaryMap<Block, SmallVec<[Block; 2]>>,
    /// The new preheader of each header.
    created: SecondaryMap<Block, Option<Block>>,
}

impl Placer<'_> {
    /// The preheader; `entering` are the blocks outside the loop that branch to the header.
    fn preheader(&mut self, header: Block, entering: &[Block], dominators: &Dominators) -> Block {
        let mut reachable = entering.iter().copied().filter(|&block| dominators.is_reachable(block));
        if let (Some(only), None) = (reachable.next(), reachable.next())
            && let Some(&last) = self.kernel.blocks[only].insts.last()
            && matches!(self.kernel.insts[last], InstData::Jump { .. })
        {
            return only;
        }
        let block = self.create(header);
        for &from in entering {
            let Some(&last) = self.kernel.blocks[from].insts.last() else { continue };
            for call in self.kernel.insts[last].targets_mut() {
                if call.block == header {
                    call.block = block;
                }
            }
        }
        // An enclosing construct that names the header as its merge or continue block now names the preheader.
        for construct in std::mem::take(&mut self.naming[header]) {
            if dominators.dominates(header, construct) {
                continue;
            }
            let rename = |name: &mut Block| {
                if *name == header {
                    *name = block;
                }
            };
            match &mut self.kernel.blocks[construct].merge {
                None => {}
                Some(Merge::Selection { merge }) => rename(merge),
                Some(Merge::Loop { merge, continuing }) => [merge, continuing].into_iter().for_each(rename),
            }
        }
        block
    }

    /// A block that takes the header's parameters and jumps to the header with them.
    fn create(&mut self, header: Block) -> Block {
        let kernel = &mut *self.kernel;
        let block = kernel.blocks.push(BlockData::default());
        let types: SmallVec<[_; 4]> =
            kernel.blocks[header].params.iter().map(|&param| kernel.values[param].ty()).collect();
        let params: SmallVec<[Value; 4]> =
            (0..).zip(types).map(|(index, ty)| kernel.values.push(ValueDef::Param { block, index, ty })).collect();
        let jump = kernel.insts.push(InstData::Jump { to: BlockCall { block: header, args: params.clone() } });
        kernel.blocks[block] = BlockData { params, insts: vec![jump], merge: None };
        self.created[header] = Some(block);
        block
    }

    /// Inserts each new block right before its header.
    fn lay_out(self) {
        let old = std::mem::take(&mut self.kernel.layout);
        self.kernel.layout = old.into_iter().flat_map(|block| self.created[block].into_iter().chain([block])).collect();
    }
}
