//! Preserves the convergence of subgroup operations between a loop and its merge block.
//!
//! The IR's loops are the natural ones, so blocks on an exit path of a loop, before its merge block, are not in the
//! loop: invocations would converge there after the last iteration. In SPIR-V they are in the loop's construct, where
//! only invocations of the same iteration execute a dynamic instance together. So each such block with a subgroup
//! operation gets a back edge to the loop's header, which is never taken.

use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

use crate::abi::SUBGROUP_SIZE;
use crate::analysis::{Dominators, Loops, WalkStep, dominator_walk};
use crate::ir::{
    Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Op, SubgroupOp, Type, Value, reverse_postorder,
};

/// Constructs that are visited, of all blocks together, at most.
const MAX_CONSTRUCTS: usize = 1 << 20;

/// A structured construct.
struct Construct {
    header: Block,
    /// Whether it is a loop construct.
    repeats: bool,
    parent: Option<usize>,
}

/// Adds the back edges. A front end that reads structured constructs calls this before any analysis of the kernel.
///
/// # Errors
///
/// Constructs nest so deeply that this would take too long.
pub fn preserve_convergence(kernel: &mut Kernel) -> Result<(), String> {
    let has_subgroup_ops = |kernel: &Kernel, block: Block| {
        kernel.blocks[block].insts.iter().any(|&inst| matches!(kernel.insts[inst], InstData::Subgroup { .. }))
    };
    if !kernel.layout.iter().any(|&block| has_subgroup_ops(kernel, block)) {
        return Ok(());
    }
    let dominators = Dominators::new(kernel);
    let loops = Loops::new(kernel, &dominators);
    let inside = |block: Block, header: Block| {
        let number = loops.headed_by(header).and_then(|_| loops.of(header));
        let mut around = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
        number.is_none_or(|number| around.any(|other| other == number))
    };
    let mut constructs: Vec<Construct> = Vec::new();
    let mut merges: SecondaryMap<Block, Option<usize>> = SecondaryMap::new();
    let (mut current, mut before) = (None, Vec::new());
    let mut exits: Vec<(Block, SmallVec<[Block; 2]>)> = Vec::new();
    let mut work = 0;
    for step in dominator_walk(kernel, &dominators) {
        let WalkStep::Enter(block) = step else {
            current = before.pop().flatten();
            continue;
        };
        before.push(current);
        // A merge block ends its construct and the constructs inside that.
        if let Some(ended) = merges[block] {
            current = constructs[ended].parent;
        }
        if let Some(merge) = kernel.blocks[block].merge {
            let (end, repeats) = match merge {
                Merge::Selection { merge } => (merge, false),
                Merge::Loop { merge, .. } => (merge, true),
            };
            merges[end] = Some(constructs.len());
            constructs.push(Construct { header: block, repeats, parent: current });
            current = Some(constructs.len() - 1);
        }
        if has_subgroup_ops(kernel, block) {
            let mut inner = block;
            let mut headers = SmallVec::new();
            let mut around = current;
            while let Some(construct) = around.map(|number| &constructs[number]) {
                work += 1;
                if construct.repeats {
                    if !inside(inner, construct.header) {
                        headers.push(construct.header);
                    }
                    // A loop construct without a back edge is no loop: the block itself may leave the enclosing loop.
                    if loops.headed_by(construct.header).is_some() {
                        inner = construct.header;
                    }
                }
                around = construct.parent;
            }
            if work > MAX_CONSTRUCTS {
                return Err("constructs with subgroup operations nest too deeply".into());
            }
            if !headers.is_empty() {
                exits.push((block, headers));
            }
        }
    }
    for (block, headers) in exits {
        add_back_edges(kernel, block, &headers);
    }
    Ok(())
}

/// Adds edges to the headers before the end of a block, on the condition that a ballot has more bits than there are
/// invocations.
fn add_back_edges(kernel: &mut Kernel, block: Block, headers: &[Block]) {
    let Some(end) = kernel.blocks[block].insts.pop() else { return };
    let origin = kernel.origins[end];
    let add = |kernel: &mut Kernel, block: Block, data: InstData, ty: Option<Type>| -> Option<Value> {
        let inst: Inst = kernel.insts.push(data);
        kernel.origins[inst] = origin;
        kernel.blocks[block].insts.push(inst);
        ty.map(|ty| kernel.define(inst, ty))
    };
    let mut at = block;
    for &header in headers {
        let yes = add(kernel, at, InstData::Const { ty: Type::Bool, bits: 1 }, Some(Type::Bool));
        let ballot = InstData::Subgroup { op: SubgroupOp::Ballot, args: yes.into_iter().collect() };
        let ballot = add(kernel, at, ballot, Some(Type::I32));
        let all = add(kernel, at, InstData::Const { ty: Type::I32, bits: (1 << SUBGROUP_SIZE) - 1 }, Some(Type::I32));
        let args = all.into_iter().chain(ballot).collect();
        let never = add(kernel, at, InstData::Pure { op: Op::ULt, args }, Some(Type::Bool));
        let rest = kernel.blocks.push(BlockData::default());
        if let Some(condition) = never {
            let back_edge = BlockCall { block: header, args: kernel.blocks[header].params.clone() };
            let forward = BlockCall { block: rest, args: smallvec![] };
            add(kernel, at, InstData::Branch { condition, then: back_edge, otherwise: forward }, None);
        }
        kernel.layout.push(rest);
        at = rest;
    }
    // The annotation of a loop must stay with its header.
    if !matches!(kernel.blocks[block].merge, Some(Merge::Loop { .. })) {
        kernel.blocks[at].merge = kernel.blocks[block].merge.take();
    }
    kernel.blocks[at].insts.push(end);
    kernel.layout = reverse_postorder(kernel, kernel.layout[0]);
}
