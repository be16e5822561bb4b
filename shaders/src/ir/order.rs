//! Layout order of a kernel's blocks: reverse postorder, with the merge block of a construct after the construct.
//!
//! Annotations are followed like branches, so that a merge block is visited before the blocks of its construct and
//! comes after them in the layout. But they are not branches: once passes have found that a merge block has one
//! predecessor only, it may be in a loop that its construct is outside of. Followed into the loop, the annotation would
//! put blocks before the header that dominates them, or others between those of the loop. So the first walk follows
//! branches alone; the second also the annotations of loops that lead forwards in its order, which makes each loop
//! contiguous; the third also those of selections that do not enter a loop.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use super::{Block, Kernel, Merge};

type Successors = SmallVec<[Block; 4]>;
/// Position of each block, from 1; 0 for blocks that only annotations reach, which nothing must precede.
type BlockPositions = SecondaryMap<Block, u32>;

/// Blocks that branches or annotations reach from `entry`. A block comes after those that dominate it, and a loop's
/// merge after its body.
pub(crate) fn reverse_postorder(kernel: &Kernel, entry: Block) -> Vec<Block> {
    let order = walk(kernel, entry, |block| targets(kernel, block));
    if order.iter().all(|&block| kernel.blocks[block].merge.is_none()) {
        return order;
    }
    let branches = places(kernel, &order);
    let forwards = |from: Block, to: Block| branches[to] == 0 || branches[from] != 0 && branches[from] < branches[to];
    let goes_back = |&block: &Block| targets(kernel, block).iter().any(|&to| !forwards(block, to));
    if !order.iter().any(goes_back) {
        // Without loops, no annotation can enter one.
        return walk(kernel, entry, |block| {
            let mut list = targets(kernel, block);
            list.extend(of_loop(kernel, block));
            list.extend(of_selection(kernel, block));
            list.retain(|to| forwards(block, *to));
            list
        });
    }
    let in_runs = walk(kernel, entry, |block| {
        let mut list = targets(kernel, block);
        list.extend(of_loop(kernel, block));
        list.retain(|to| forwards(block, *to));
        list
    });
    let (runs, around) = (places(kernel, &in_runs), loops_around(kernel, &in_runs));
    let enters = |from: Block, to: Block| runs[to] != 0 && around[to] > runs[from];
    walk(kernel, entry, |block| {
        let mut list = targets(kernel, block);
        list.extend(of_loop(kernel, block));
        list.extend(of_selection(kernel, block).filter(|&merge| !enters(block, merge)));
        list.retain(|to| forwards(block, *to));
        list
    })
}

/// The blocks that a loop's annotation names. The continue target is visited right after the merge block, so it comes
/// last in the loop.
fn of_loop(kernel: &Kernel, block: Block) -> Successors {
    match kernel.blocks[block].merge {
        Some(Merge::Loop { merge, continuing }) => [continuing, merge].into_iter().collect(),
        _ => Successors::new(),
    }
}

fn of_selection(kernel: &Kernel, block: Block) -> Option<Block> {
    match kernel.blocks[block].merge {
        Some(Merge::Selection { merge }) => Some(merge),
        _ => None,
    }
}

fn places(kernel: &Kernel, order: &[Block]) -> BlockPositions {
    let mut places = BlockPositions::new();
    places.resize(kernel.blocks.len());
    for (position, &block) in (1..).zip(order) {
        places[block] = position;
    }
    places
}

/// For each block, the position of the innermost header before it with a back edge from after it; 0 if there is none.
fn loops_around(kernel: &Kernel, order: &[Block]) -> BlockPositions {
    let places = places(kernel, order);
    let mut ends = BlockPositions::new();
    ends.resize(kernel.blocks.len());
    for &block in order {
        for to in targets(kernel, block) {
            if places[to] != 0 && places[to] <= places[block] {
                ends[to] = ends[to].max(places[block]);
            }
        }
    }
    let mut around = BlockPositions::new();
    around.resize(kernel.blocks.len());
    let mut open: Vec<(u32, u32)> = Vec::new();
    for (position, &block) in (1..).zip(order) {
        while open.last().is_some_and(|&(_, end)| end < position) {
            open.pop();
        }
        around[block] = open.last().map_or(0, |&(header, _)| header);
        if ends[block] != 0 {
            open.push((position, ends[block]));
        }
    }
    around
}

/// Targets of the block's terminator.
fn targets(kernel: &Kernel, block: Block) -> Successors {
    kernel.targets(block).into_iter().map(|call| call.block).collect()
}

/// Depth-first walk in reverse postorder; the successors in each list are visited from the last to the first.
fn walk(kernel: &Kernel, entry: Block, successors: impl Fn(Block) -> Successors) -> Vec<Block> {
    let mut seen = EntitySet::with_capacity(kernel.blocks.len());
    let mut postorder = Vec::new();
    let mut stack = vec![(entry, successors(entry))];
    seen.insert(entry);
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) if seen.insert(next) => {
                let rest = successors(next);
                stack.push((next, rest));
            }
            Some(_) => {}
            None => {
                postorder.push(*block);
                stack.pop();
            }
        }
    }
    postorder.reverse();
    postorder
}
