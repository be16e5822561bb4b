//! Cost model for a machine with 16-word vectors: latencies of instructions and occupancy of execution units.

use super::{Block, Inst, InstData, Kernel, Type};
use crate::ir::Op;

/// Latency in cycles: from an instruction's operands to its results.
pub(crate) fn latency(kernel: &Kernel, inst: Inst) -> u32 {
    let vector = kernel.results[inst].first().is_some_and(|&result| kernel.ty(result).is_vector());
    match &kernel.insts[inst] {
        InstData::Pure { op, .. } if vector => match op {
            Op::FDiv => 13,
            Op::Sqrt | Op::InverseSqrt => 20,
            Op::Fma | Op::IMul => 4,
            // Two vectors of eight products each, with shuffles before and after them.
            Op::SMulHigh | Op::UMulHigh => 8,
            // Words of doubles: converts the words to doubles and the result back to words.
            Op::DDivLow | Op::DDivHigh => 18,
            Op::DSqrtLow | Op::DSqrtHigh => 25,
            Op::DAddLow | Op::DAddHigh | Op::DSubLow | Op::DSubHigh | Op::DMulLow | Op::DMulHigh => 7,
            Op::LAnd | Op::LOr | Op::LXor | Op::LNot => 1,
            _ if op.result() == crate::ir::Type::Bool => 5,
            _ if op.params().contains(&crate::ir::Type::F32) => 3,
            _ => 1,
        },
        InstData::Load { .. } | InstData::LoadRow { .. } | InstData::LoadElements { .. } => 8,
        InstData::Gather { .. } | InstData::GatherElements { .. } => 25,
        InstData::Splat { .. } | InstData::Extract { .. } | InstData::Any { .. } => 4,
        _ => 1,
    }
}

/// Cycles for which some blocks occupy the execution units: one unit each for multiplication, addition and division,
/// all of vector width, and an issue width of two vector operations per cycle.
pub(crate) fn busy(kernel: &Kernel, blocks: &[Block]) -> u32 {
    let (mut multiplying, mut adding, mut dividing, mut all) = (0, 0, 0, 0);
    for &inst in blocks.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let vector = kernel.results[inst].iter().any(|&result| kernel.ty(result) == Type::V32);
        match &kernel.insts[inst] {
            InstData::Pure { op, .. } if vector => {
                all += 1;
                match op {
                    Op::FMul | Op::Fma | Op::IMul => multiplying += 1,
                    Op::FAdd | Op::FSub => adding += 1,
                    Op::FDiv | Op::Sqrt | Op::DDivLow => dividing += 9,
                    Op::DSqrtLow => dividing += 18,
                    // The high words come from the same double-precision operation.
                    Op::DMulLow => multiplying += 2,
                    Op::DAddLow | Op::DSubLow => adding += 2,
                    Op::SMulHigh | Op::UMulHigh => multiplying += 2,
                    Op::InverseSqrt => multiplying += 4,
                    _ => {}
                }
            }
            InstData::Gather { .. }
            | InstData::GatherElements { .. }
            | InstData::Scatter { .. }
            | InstData::Atomic { .. } => all += 40,
            InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. } => {}
            _ => all += u32::from(vector),
        }
    }
    multiplying.max(adding).max(dividing).max(all / 2)
}
