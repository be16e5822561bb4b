//! Chooses which image samples and reads of a kernel are inlined: those in the innermost loops first, then in the order
//! of the kernel.

use cranelift_entity::EntitySet;
use smallvec::SmallVec;

use crate::analysis::{Shape, Uniformity};
use crate::image::{ImageOp, Kind, direct};
use crate::ir::{Block, Inst, InstData, Kernel};

/// Samples and reads of a kernel that are inlined, at most; others are calls. Each one takes half a millisecond of
/// compile time, and kernels of many thousand instructions are register-allocated in one pass, which costs more than
/// the calls.
const MAX_INLINE_SAMPLES: usize = 32;

/// The instructions of the samples that are inlined, if their operands allow it.
pub(in crate::vectorize) fn inline_samples(kernel: &Kernel, uniformity: &Uniformity) -> EntitySet<Inst> {
    let mut blocks = kernel.layout.clone();
    // A stable sort: blocks of one depth stay in order.
    blocks.sort_by_key(|&block| std::cmp::Reverse(uniformity.loops.depth(block)));
    let mut chosen = EntitySet::new();
    let mut count = 0;
    for block in blocks {
        for &inst in &kernel.blocks[block].insts {
            if chosen.contains(inst) || !is_candidate(kernel, uniformity, block, inst) {
                continue;
            }
            if count == MAX_INLINE_SAMPLES {
                return chosen;
            }
            count += 1;
            chosen.insert(inst);
            chosen.extend(same_texel(kernel, block, inst));
        }
    }
    chosen
}

/// Whether a sample or read has a form without a call: its descriptors must be the same in all lanes.
fn is_candidate(kernel: &Kernel, uniformity: &Uniformity, block: Block, inst: Inst) -> bool {
    let InstData::Image { op, image, sampler, .. } = &kernel.insts[inst] else { return false };
    let mut descriptors = [Some(*image), sampler.filter(|_| direct::is_direct(op))].into_iter().flatten();
    direct::may_be(op) && descriptors.all(|value| uniformity.shape_in(value, block) == Shape::Uniform)
}

/// The instructions from one on whose results are components of its texel, up to the next instruction that may change
/// memory.
pub(in crate::vectorize) fn same_texel(kernel: &Kernel, block: Block, inst: Inst) -> SmallVec<[Inst; 4]> {
    let mut found = SmallVec::new();
    let of = |data: &InstData| match data {
        InstData::Image { op, image, sampler, args, access } => {
            Some((ImageOp { component: 0, ..*op }, *image, *sampler, args.clone(), *access))
        }
        _ => None,
    };
    let this = of(&kernel.insts[inst]);
    let insts = kernel.blocks[block].insts.iter().skip_while(|&&other| other != inst);
    for &other in insts {
        let data = &kernel.insts[other];
        if matches!(data, InstData::Image { .. }) && of(data) == this {
            found.push(other);
        }
        let changes = match data {
            InstData::Image { op, access, .. } => op.kind == Kind::Write || access.volatile,
            InstData::Store { .. } | InstData::Atomic { .. } | InstData::Barrier { .. } | InstData::Fence { .. } => {
                true
            }
            _ => false,
        };
        if changes {
            break;
        }
    }
    found
}
