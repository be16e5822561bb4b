//! One call runs a row of workgroups, one after the other: what all of them have in common is computed once, before the first.
//!
//! The entry is split in two. What depends on the x of `WorkgroupId`, what has an effect and what reads memory that workgroups may
//! write is each workgroup's; the rest stays: descriptors, push constants, sizes, masks. Ways out lead to the next workgroup.

use cranelift_entity::EntitySet;

use super::{Block, BlockCall, BlockData, Field, Inst, InstData, Kernel, Value, WideOp};

/// Makes a kernel that ends after one workgroup go on with the others of its row, as far as the context says.
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

/// Moves what is each workgroup's from the entry to a block of its own, which comes next.
fn split(kernel: &mut Kernel, entry: Block) -> Block {
    let mut own: EntitySet<Value> = EntitySet::new();
    let (mut shared, mut each): (Vec<Inst>, Vec<Inst>) = (Vec::new(), Vec::new());
    for inst in std::mem::take(&mut kernel.blocks[entry].insts) {
        let mut differs = !is_common(kernel, &kernel.insts[inst]);
        kernel.insts[inst].for_each_use(|value| differs |= own.contains(value));
        if differs {
            own.extend(kernel.results[inst].iter().copied());
            each.push(inst);
        } else {
            shared.push(inst);
        }
    }
    // A subgroup that begins in the entry begins anew for each workgroup.
    let BlockData { params, exec, is_region_entry, .. } = std::mem::take(&mut kernel.blocks[entry]);
    let again = kernel.blocks.push(BlockData { insts: each, exec, is_region_entry, ..BlockData::default() });
    kernel.blocks[entry] = BlockData { params, insts: shared, ..BlockData::default() };
    kernel.layout.insert(1, again);
    append(kernel, entry, InstData::Jump { to: BlockCall::new(again) });
    again
}

/// Whether an instruction gives all workgroups of a row the same, if its operands do.
fn is_common(kernel: &Kernel, data: &InstData) -> bool {
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
        InstData::Context { field } => *field != Field::WorkgroupId(0),
        InstData::Load { address, .. } => is_pushed(kernel, address.base),
        _ => false,
    }
}

/// Whether an address is of push constants.
fn is_pushed(kernel: &Kernel, base: Value) -> bool {
    match kernel.definition(base) {
        Some(InstData::Context { field }) => *field == Field::Push,
        Some(InstData::Wide { op: WideOp::Add, args }) => {
            let data = kernel.definition(args[0]);
            matches!(data, Some(InstData::Context { field: Field::Push })) && kernel.constant(args[1]).is_some()
        }
        _ => false,
    }
}
