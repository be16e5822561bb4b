//! Componentwise float arithmetic and comparison. Nothing is contracted here; the builder marks results with
//! `NoContraction`, which later passes respect.

use spirv::Op as Spv;

use super::{ArithmeticResult, Call};
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, op: Spv) -> Option<ArithmeticResult> {
    if let Some(op) = componentwise(op) {
        return Some(call.each(op));
    }
    swapped(op).map(|op| call.each_swapped(op))
}

fn componentwise(op: Spv) -> Option<Op> {
    Some(match op {
        Spv::FNegate => Op::FNeg,
        Spv::FAdd => Op::FAdd,
        Spv::FSub => Op::FSub,
        Spv::FMul => Op::FMul,
        Spv::FDiv => Op::FDiv,
        Spv::FRem => Op::FRem,
        Spv::FMod => Op::FMod,
        Spv::FOrdEqual => Op::FOrdEq,
        Spv::FOrdNotEqual => Op::FOrdNe,
        Spv::FOrdLessThan => Op::FOrdLt,
        Spv::FOrdLessThanEqual => Op::FOrdLe,
        Spv::FUnordEqual => Op::FUnordEq,
        Spv::FUnordNotEqual => Op::FUnordNe,
        Spv::FUnordLessThan => Op::FUnordLt,
        Spv::FUnordLessThanEqual => Op::FUnordLe,
        Spv::IsNan => Op::IsNan,
        Spv::IsInf => Op::IsInf,
        _ => return None,
    })
}

fn swapped(op: Spv) -> Option<Op> {
    Some(match op {
        Spv::FOrdGreaterThan => Op::FOrdLt,
        Spv::FOrdGreaterThanEqual => Op::FOrdLe,
        Spv::FUnordGreaterThan => Op::FUnordLt,
        Spv::FUnordGreaterThanEqual => Op::FUnordLe,
        _ => return None,
    })
}
