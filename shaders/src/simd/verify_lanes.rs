//! Proves that inactive lanes have no effects: every side effect has a mask that is a subset of its block's execution
//! mask, which is a subset of the mask with which the subgroup entered the parallel region.

use cranelift_entity::{EntitySet, SecondaryMap};

use super::subsets::Subsets;
use super::verify::Result;
use super::verify_scalars::check_scalars;
use super::{Block, ContextField, InstData, Kernel, Value};
use crate::analysis::Dominators;
use crate::ssa::{broken, general};

/// Checks all reachable blocks. The kernel must have passed the rest of the verifier.
pub(crate) fn check_lanes(kernel: &Kernel, dominators: &Dominators<Block>) -> Result {
    let starts = starts(kernel, dominators);
    let mut lasting = EntitySet::new();
    starts.values().flatten().for_each(|start| _ = lasting.insert(start.lanes));
    let mut subsets = Subsets::new(kernel, dominators, lasting);
    for &block in kernel.layout.iter().filter(|&&block| dominators.is_reachable(block)) {
        let data = &kernel.blocks[block];
        if let (Some(exec), Some(RegionStart { block: start, lanes })) = (data.exec, starts[block])
            && !subsets.contains(lanes, exec)
        {
            return general(format!("{block}: {}", not_subset(&subsets, exec, lanes, start)));
        }
        for &inst in &data.insts {
            let Some(mask) = effect(kernel, &kernel.insts[inst]) else { continue };
            let Some(exec) = data.exec else { return broken(kernel, inst, "the block has no execution mask") };
            if !subsets.contains(exec, mask) {
                return broken(kernel, inst, not_subset(&subsets, mask, exec, block));
            }
        }
    }
    check_scalars(kernel, dominators, &mut subsets)
}

/// Where a subgroup entered a parallel region, and with which lanes.
#[derive(Clone, Copy, Debug)]
struct RegionStart {
    block: Block,
    lanes: Value,
}

/// For each block, the block at which the subgroup entered the parallel region: the nearest dominator that is a region
/// entry, else the first one with an execution mask. `None` above such blocks.
fn starts(kernel: &Kernel, dominators: &Dominators<Block>) -> SecondaryMap<Block, Option<RegionStart>> {
    let mut starts = SecondaryMap::new();
    for &block in kernel.layout.iter().filter(|&&block| dominators.is_reachable(block)) {
        let above = dominators.idom(block).and_then(|idom| starts[idom]);
        let data = &kernel.blocks[block];
        let here = data.exec.map(|lanes| RegionStart { block, lanes });
        starts[block] = if data.is_region_entry { here } else { above.or(here) };
    }
    starts
}

fn not_subset(subsets: &Subsets<'_>, mask: Value, of: Value, block: Block) -> String {
    let end = if subsets.is_exhausted() { "; the search was too long" } else { "" };
    format!("{mask} is not known to be part of {of}, the execution mask of {block}{end}")
}

/// The mask of an instruction that changes memory for lanes. Stores directly at the frames' address are the workgroup's
/// own state, and need no mask, like frame stores.
fn effect(kernel: &Kernel, data: &InstData) -> Option<Value> {
    let frames = InstData::Context { field: ContextField::Frames };
    match *data {
        InstData::Atomic { op, .. } if op.is_load() => None,
        InstData::Store { address, .. } if kernel.definition(address.base) == Some(&frames) => None,
        InstData::Store { mask, .. }
        | InstData::StoreRow { mask, .. }
        | InstData::StoreElements { mask, .. }
        | InstData::Scatter { mask, .. }
        | InstData::Call { mask, .. }
        | InstData::Atomic { mask, .. } => Some(mask),
        // The workgroup's own state, and orders.
        InstData::FrameStore { .. } | InstData::Zero { .. } | InstData::Fence => None,
        InstData::Const { .. }
        | InstData::Lanes { .. }
        | InstData::Undef { .. }
        | InstData::Pure { .. }
        | InstData::Select { .. }
        | InstData::Wide { .. }
        | InstData::Splat { .. }
        | InstData::Extract { .. }
        | InstData::Pick { .. }
        | InstData::Permute { .. }
        | InstData::MaskBits { .. }
        | InstData::FirstLane { .. }
        | InstData::Any { .. }
        | InstData::Context { .. }
        | InstData::BufferBase { .. }
        | InstData::BufferLen { .. }
        | InstData::BufferAt { .. }
        | InstData::ImageField { .. }
        | InstData::Load { .. }
        | InstData::LoadRow { .. }
        | InstData::LoadElements { .. }
        | InstData::Gather { .. }
        | InstData::GatherElements { .. }
        | InstData::FrameLoad { .. }
        | InstData::Poll { .. }
        | InstData::NextWorkgroup
        | InstData::Jump { .. }
        | InstData::Branch { .. }
        | InstData::Switch { .. }
        | InstData::Return => None,
    }
}
