//! The workgroup loop: one call of the machine code runs a run of workgroups, adjacent in x, and computes once what is
//! invariant in the row.
//!
//! The entry is split in two. Instructions that depend on `WorkgroupId.x`, have an effect, or read memory that
//! workgroups may write run for each workgroup; the others run once: descriptors, push constants, sizes, masks. Returns
//! become jumps to the next workgroup.

use cranelift_entity::EntitySet;

use super::{Block, BlockCall, BlockData, ContextField, Inst, InstData, Kernel, Value, WideOp};

/// Wraps a kernel that runs one workgroup in a loop over those of a row; the context has their number.
pub fn workgroup_loop(kernel: &mut Kernel) {
    let Some(&entry) = kernel.layout.first() else { return };
    let again = split(kernel, entry);
    let ends: Vec<Block> = kernel.layout.iter().copied().filter(|&block| returns(kernel, block)).collect();
    let last = match ends[..] {
        [] => return,
        [only] => {
            kernel.blocks[only].insts.pop();
            only
        }
        _ => {
            let last = kernel.blocks.push(BlockData::default());
            kernel.layout.push(last);
            for end in ends {
                kernel.blocks[end].insts.pop();
                append(kernel, end, InstData::Jump { to: BlockCall::new(last) });
            }
            last
        }
    };
    append(kernel, last, InstData::NextWorkgroup);
    append(kernel, last, InstData::Jump { to: BlockCall::new(again) });
}

fn append(kernel: &mut Kernel, block: Block, data: InstData) {
    let inst = kernel.insts.push(data);
    kernel.blocks[block].insts.push(inst);
}

fn returns(kernel: &Kernel, block: Block) -> bool {
    matches!(kernel.terminator(block), Some(InstData::Return))
}

/// Splits the variant instructions of the entry off into a block of their own, the loop's header.
fn split(kernel: &mut Kernel, entry: Block) -> Block {
    let mut variant: EntitySet<Value> = EntitySet::new();
    let (mut once, mut each): (Vec<Inst>, Vec<Inst>) = (Vec::new(), Vec::new());
    for inst in std::mem::take(&mut kernel.blocks[entry].insts) {
        let mut varies = !is_invariant(kernel, &kernel.insts[inst]);
        kernel.insts[inst].for_each_use(|value| varies |= variant.contains(value));
        if varies {
            variant.extend(kernel.results[inst].iter().copied());
            each.push(inst);
        } else {
            once.push(inst);
        }
    }
    // A parallel region that starts in the entry starts for each workgroup.
    let BlockData { params, exec, is_region_entry, .. } = std::mem::take(&mut kernel.blocks[entry]);
    let again = kernel.blocks.push(BlockData { insts: each, exec, is_region_entry, ..BlockData::default() });
    kernel.blocks[entry] = BlockData { params, insts: once, ..BlockData::default() };
    kernel.layout.insert(1, again);
    for subgroup_loop in kernel.subgroup_loops.iter_mut().filter(|subgroup_loop| subgroup_loop.preheader == entry) {
        subgroup_loop.preheader = again;
    }
    append(kernel, entry, InstData::Jump { to: BlockCall::new(again) });
    again
}

/// Whether an instruction has the same result in all workgroups of a row if its operands have.
fn is_invariant(kernel: &Kernel, data: &InstData) -> bool {
    match data {
        InstData::Const { .. }
        | InstData::Lanes { .. }
        | InstData::Undef { .. }
        | InstData::Pure { .. }
        | InstData::Select { .. }
        | InstData::Wide { .. }
        | InstData::Splat { .. }
        | InstData::BufferBase { .. }
        | InstData::BufferLen { .. }
        | InstData::BufferAt { .. }
        | InstData::ImageField { .. } => true,
        InstData::Context { field } => *field != ContextField::WorkgroupId(0),
        InstData::Load { address, .. } => is_push_constant(kernel, address.base),
        _ => false,
    }
}

/// Whether an address is that of push constants.
fn is_push_constant(kernel: &Kernel, base: Value) -> bool {
    match kernel.definition(base) {
        Some(InstData::Context { field }) => *field == ContextField::Push,
        Some(InstData::Wide { op: WideOp::Add, args }) => {
            let data = kernel.definition(args[0]);
            matches!(data, Some(InstData::Context { field: ContextField::Push })) && kernel.constant(args[1]).is_some()
        }
        _ => false,
    }
}
