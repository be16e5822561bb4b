//! Hoists loads of workgroup memory out of subgroup loops: loads that every subgroup repeats between two barriers,
//! where no subgroup writes workgroup memory, move to the preheader. Only those of a loop's first straight line do.
//!
//! Tiled algorithms have such loads: each subgroup multiplies rows of its own by the same columns.

use cranelift_entity::EntitySet;

use super::{Address, Block, ContextField, Inst, InstData, Kernel, Row, Type, Value, WideOp};
use crate::ssa::{Predecessors, natural_loop, predecessors};

/// Loads that move out of one loop, at most: half of the vector registers.
const MAX_HOISTED: usize = 16;

/// Additions between an address and its base, at most.
const MAX_ADDRESS_DEPTH: usize = 8;

/// Moves loads of workgroup memory out of subgroup loops.
pub fn hoist_shared_loads(kernel: &mut Kernel) {
    if kernel.shared_bytes == 0 {
        return;
    }
    let predecessors = predecessors(kernel);
    for subgroup_loop in kernel.subgroup_loops.clone() {
        // In any order: a kernel may have thousands of loops, and sorting the blocks by the layout visits all of it.
        let (body, _) = natural_loop(subgroup_loop.header, &[subgroup_loop.latch], &predecessors, |_| true);
        if writes_workgroup_memory(kernel, &body) {
            continue;
        }
        let loads = take_loads(kernel, &predecessors, subgroup_loop.header, &body);
        let insts = &mut kernel.blocks[subgroup_loop.preheader].insts;
        let end = insts.len().saturating_sub(1);
        insts.splice(end..end, loads);
    }
}

/// Whether a loop may write memory other than buffers and the subgroups' context frames.
fn writes_workgroup_memory(kernel: &Kernel, body: &[Block]) -> bool {
    let mut insts = body.iter().flat_map(|&block| &kernel.blocks[block].insts).map(|&inst| &kernel.insts[inst]);
    insts.any(|data| match data {
        InstData::FrameStore { .. } => false,
        InstData::Store { address: Address { base, .. }, .. } | InstData::StoreRow { row: Row { base, .. }, .. } => {
            !has_base(kernel, *base, MAX_ADDRESS_DEPTH, |data| matches!(data, InstData::BufferBase { .. }))
        }
        _ => data.changes_memory(),
    })
}

/// Removes invariant loads from the blocks that every iteration executes first: the header and the straight line after
/// it.
fn take_loads(kernel: &mut Kernel, predecessors: &Predecessors<Block>, header: Block, body: &[Block]) -> Vec<Inst> {
    let mut variant: EntitySet<Value> = EntitySet::new();
    for &block in body {
        let data = &kernel.blocks[block];
        variant.extend(data.params.iter().copied());
        data.insts.iter().for_each(|&inst| variant.extend(kernel.results[inst].iter().copied()));
    }
    let (mut loads, mut block) = (Vec::new(), header);
    loop {
        let mut rest = Vec::new();
        for inst in std::mem::take(&mut kernel.blocks[block].insts) {
            let mut stays = loads.len() >= MAX_HOISTED;
            kernel.insts[inst].for_each_use(|value| stays |= variant.contains(value));
            let list = if !stays && loads_workgroup_memory(kernel, inst) { &mut loads } else { &mut rest };
            list.push(inst);
        }
        kernel.blocks[block].insts = rest;
        match kernel.terminator(block) {
            Some(InstData::Jump { to }) if to.block != header && predecessors[to.block].len() == 1 => block = to.block,
            _ => return loads,
        }
    }
}

/// Whether an instruction loads a vector from workgroup memory.
fn loads_workgroup_memory(kernel: &Kernel, inst: Inst) -> bool {
    let base = match kernel.insts[inst] {
        InstData::LoadRow { row } => row.base,
        InstData::Load { ty: Type::V32, address } => address.base,
        _ => return false,
    };
    has_base(kernel, base, MAX_ADDRESS_DEPTH, |data| matches!(data, InstData::Context { field: ContextField::Shared }))
}

/// Whether an address is a sum with such a base, at most `depth` additions away.
fn has_base(kernel: &Kernel, address: Value, depth: usize, is_base: fn(&InstData) -> bool) -> bool {
    match kernel.definition(address) {
        Some(InstData::Wide { op: WideOp::Add, args }) if depth > 0 => {
            args.iter().any(|&arg| has_base(kernel, arg, depth - 1, is_base))
        }
        Some(data) => is_base(data),
        None => false,
    }
}
