//! Words of workgroup memory that every subgroup loads between two barriers, where nobody writes, are loaded once for all of them.
//!
//! So it is with tiles: each subgroup multiplies rows of its own by the same columns.

use cranelift_entity::EntitySet;

use super::{Address, Block, Field, Inst, InstData, Kernel, Row, Type, Value, WideOp};
use crate::ssa::{Predecessors, natural_loop, predecessors};

/// Vectors that are kept for all subgroups of a turn, at most: half of the registers.
const MAX_HOISTED: usize = 16;

/// Sums that lead to an address, at most.
const MAX_ADDRESS_DEPTH: usize = 8;

/// Moves loads out of loops over subgroups.
pub fn licm(kernel: &mut Kernel) {
    if kernel.shared_bytes == 0 {
        return;
    }
    let predecessors = predecessors(kernel);
    let entries: Vec<Block> =
        kernel.layout.iter().copied().filter(|&block| kernel.blocks[block].is_region_entry).collect();
    for header in entries {
        let [before, latch] = predecessors[header][..] else { continue };
        let enters = matches!(kernel.terminator(before), Some(InstData::Jump { .. }));
        let (_, inside) = natural_loop(header, &[latch], &predecessors, |_| true);
        let body: Vec<Block> = kernel.layout.iter().copied().filter(|&block| inside.contains(block)).collect();
        if enters && !inside.contains(before) && !writes(kernel, &body) {
            let loads = take_loads(kernel, &predecessors, header, &body);
            let insts = &mut kernel.blocks[before].insts;
            let end = insts.len().saturating_sub(1);
            insts.splice(end..end, loads);
        }
    }
}

/// Whether anything but buffers and the subgroups' own frames may be written there.
fn writes(kernel: &Kernel, body: &[Block]) -> bool {
    let mut insts = body.iter().flat_map(|&block| &kernel.blocks[block].insts).map(|&inst| &kernel.insts[inst]);
    insts.any(|data| match data {
        InstData::FrameStore { .. } => false,
        InstData::Store { address: Address { base, .. }, .. } | InstData::StoreRow { row: Row { base, .. }, .. } => {
            !leads_to(kernel, *base, MAX_ADDRESS_DEPTH, |data| matches!(data, InstData::BufferBase { .. }))
        }
        _ => data.changes_memory(),
    })
}

/// Takes loads out of the blocks that each subgroup begins with, if they do not depend on it.
fn take_loads(kernel: &mut Kernel, predecessors: &Predecessors<Block>, header: Block, body: &[Block]) -> Vec<Inst> {
    let mut own: EntitySet<Value> = EntitySet::new();
    for &block in body {
        let data = &kernel.blocks[block];
        own.extend(data.params.iter().copied());
        data.insts.iter().for_each(|&inst| own.extend(kernel.results[inst].iter().copied()));
    }
    let (mut loads, mut block) = (Vec::new(), header);
    loop {
        let mut rest = Vec::new();
        for inst in std::mem::take(&mut kernel.blocks[block].insts) {
            let mut depends = loads.len() >= MAX_HOISTED;
            kernel.insts[inst].for_each_use(|value| depends |= own.contains(value));
            let list = if !depends && loads_shared_vector(kernel, inst) { &mut loads } else { &mut rest };
            list.push(inst);
        }
        kernel.blocks[block].insts = rest;
        match kernel.terminator(block) {
            Some(InstData::Jump { to }) if to.block != header && predecessors[to.block].len() == 1 => block = to.block,
            _ => return loads,
        }
    }
}

fn loads_shared_vector(kernel: &Kernel, inst: Inst) -> bool {
    let base = match kernel.insts[inst] {
        InstData::LoadRow { row } => row.base,
        InstData::Load { ty: Type::V32, address } => address.base,
        _ => return false,
    };
    leads_to(kernel, base, MAX_ADDRESS_DEPTH, |data| matches!(data, InstData::Context { field: Field::Shared }))
}

/// Whether an address is so much behind what such an instruction gives.
fn leads_to(kernel: &Kernel, address: Value, deepest: usize, to: fn(&InstData) -> bool) -> bool {
    match kernel.definition(address) {
        Some(InstData::Wide { op: WideOp::Add, args }) if deepest > 0 => {
            args.iter().any(|&arg| leads_to(kernel, arg, deepest - 1, to))
        }
        Some(data) => to(data),
        None => false,
    }
}
