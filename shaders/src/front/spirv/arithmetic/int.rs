//! Integer arithmetic, comparison, bits and bit fields. Signedness comes from the instruction, not from operand types.

use spirv::Op as Spv;

use super::{ArithmeticResult, Call};
use crate::ir::Op;

/// Translates an instruction of this chapter.
pub(super) fn translate(call: &mut Call<'_>, op: Spv) -> Option<ArithmeticResult> {
    if let Some(op) = componentwise(op) {
        return Some(call.each(op));
    }
    if let Some(op) = swapped(op) {
        return Some(call.each_swapped(op));
    }
    Some(match op {
        Spv::IAddCarry => call.each_pair(Op::IAdd, Op::UCarry),
        Spv::ISubBorrow => call.each_pair(Op::ISub, Op::UBorrow),
        Spv::UMulExtended => call.each_pair(Op::IMul, Op::UMulHigh),
        Spv::SMulExtended => call.each_pair(Op::IMul, Op::SMulHigh),
        Spv::BitFieldInsert => call.each_then_scalars(Op::BitInsert, 2),
        Spv::BitFieldUExtract => call.each_then_scalars(Op::BitUExtract, 1),
        Spv::BitFieldSExtract => call.each_then_scalars(Op::BitSExtract, 1),
        _ => return None,
    })
}

fn componentwise(op: Spv) -> Option<Op> {
    Some(match op {
        Spv::SNegate => Op::INeg,
        Spv::IAdd => Op::IAdd,
        Spv::ISub => Op::ISub,
        Spv::IMul => Op::IMul,
        Spv::UDiv => Op::UDiv,
        Spv::SDiv => Op::SDiv,
        Spv::UMod => Op::UMod,
        Spv::SRem => Op::SRem,
        Spv::SMod => Op::SMod,
        Spv::IEqual => Op::IEq,
        Spv::INotEqual => Op::INe,
        Spv::ULessThan => Op::ULt,
        Spv::ULessThanEqual => Op::ULe,
        Spv::SLessThan => Op::SLt,
        Spv::SLessThanEqual => Op::SLe,
        Spv::ShiftLeftLogical => Op::Shl,
        Spv::ShiftRightLogical => Op::LShr,
        Spv::ShiftRightArithmetic => Op::AShr,
        Spv::BitwiseAnd => Op::And,
        Spv::BitwiseOr => Op::Or,
        Spv::BitwiseXor => Op::Xor,
        Spv::Not => Op::Not,
        Spv::BitReverse => Op::BitReverse,
        Spv::BitCount => Op::BitCount,
        _ => return None,
    })
}

fn swapped(op: Spv) -> Option<Op> {
    Some(match op {
        Spv::UGreaterThan => Op::ULt,
        Spv::UGreaterThanEqual => Op::ULe,
        Spv::SGreaterThan => Op::SLt,
        Spv::SGreaterThanEqual => Op::SLe,
        _ => return None,
    })
}
