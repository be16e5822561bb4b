//! Chooses which image samples and reads of a kernel are inlined: those in the innermost loops first, then in the order
//! of the kernel.

use cranelift_entity::EntitySet;

use crate::analysis::{Shape, Uniformity};
use crate::image::direct;
use crate::ir::{Block, Inst, InstData, Kernel};
use crate::vectorize::image::same_texel;

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
