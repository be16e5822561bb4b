//! Predecessors of blocks, and natural loops.

use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::{Function, Instruction};

/// Predecessors by block.
pub type Predecessors<Block> = SecondaryMap<Block, SmallVec<[Block; 4]>>;

/// Predecessors of every block of the layout, each once.
pub fn predecessors<K: Function>(kernel: &K) -> Predecessors<K::Block> {
    let mut predecessors = Predecessors::new();
    for &block in kernel.layout() {
        let last = kernel.block(block).and_then(|(_, insts)| insts.last()).and_then(|&last| kernel.inst(last));
        for call in last.map(Instruction::targets).unwrap_or_default() {
            let list: &mut SmallVec<[K::Block; 4]> = &mut predecessors[call.block];
            if list.last() != Some(&block) {
                list.push(block);
            }
        }
    }
    predecessors
}

/// The natural loop of some back edges: the header, and all blocks that reach a latch without passing the header,
/// restricted to blocks that `reachable` accepts. As a list, header first, and as a set.
pub(crate) fn natural_loop<Block: EntityRef>(
    header: Block,
    latches: &[Block],
    predecessors: &Predecessors<Block>,
    reachable: impl Fn(Block) -> bool,
) -> (Vec<Block>, EntitySet<Block>) {
    let mut blocks = vec![header];
    let mut seen = EntitySet::new();
    seen.insert(header);
    let mut stack = latches.to_vec();
    while let Some(block) = stack.pop() {
        if reachable(block) && seen.insert(block) {
            blocks.push(block);
            stack.extend(&predecessors[block]);
        }
    }
    (blocks, seen)
}
