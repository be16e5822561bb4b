//! Preserves SPIR-V convergence in loop-exit code: invocations that leave a loop in different iterations stay apart
//! until the end of the loop construct.
//!
//! The IR has natural loops only, so code between a loop's exit and its merge block is outside the loop: invocations
//! would execute it together, after the last of them has left. In SPIR-V that code is in the loop construct, where the
//! invocations of one iteration execute it together. So each block there with a subgroup operation gets a back edge to
//! the loop's header that is never taken.

use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

use crate::abi::SUBGROUP_SIZE;
use crate::analysis::{Dominators, Loops, Step, dominator_walk};
use crate::ir::{
    Block, BlockCall, BlockData, Inst, InstData, Kernel, Merge, Op, SubgroupOp, Type, Value, reverse_postorder,
};

/// Constructs visited for all blocks together, at most.
const MAX_CONSTRUCTS: usize = 1 << 20;

/// A structured construct.
struct Construct {
    header: Block,
    /// Whether it is a loop construct.
    repeats: bool,
    parent: Option<usize>,
}

/// Adds the back edges. Must run before all other passes, while the constructs are those of the module.
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
    let mut kept_apart: Vec<(Block, SmallVec<[Block; 2]>)> = Vec::new();
    let mut work = 0;
    for step in dominator_walk(kernel, &dominators) {
        let Step::Enter(block) = step else {
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
                    // Without a back edge, the construct is no natural loop: then the block itself may be outside of
                    // the enclosing loop.
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
                kept_apart.push((block, headers));
            }
        }
    }
    for (block, headers) in kept_apart {
        add_back_edges(kernel, block, &headers);
    }
    Ok(())
}

/// Adds back edges to the headers before the block's terminator. Their condition, a ballot with more bits than the
/// subgroup has invocations, is never true, but no pass can know that.
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
        let most = add(kernel, at, InstData::Const { ty: Type::I32, bits: (1 << SUBGROUP_SIZE) - 1 }, Some(Type::I32));
        let args = most.into_iter().chain(ballot).collect();
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
