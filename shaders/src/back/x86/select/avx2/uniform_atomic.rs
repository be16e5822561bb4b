//! Atomics on one word for all lanes.

use iced_x86::Code;
use regalloc2::{Operand, VReg};

use super::super::super::atomic::AtomicCode;
use super::super::super::vcode::{Build, View};
use super::super::atomic::{LaneOperands, neutral};
use super::super::lane_address::LaneAddressRegisters;
use super::super::registers::OperandSlots;
use super::super::{Result, Select};
use super::Avx2;
use super::operand::RegisterPair;
use crate::ir::AtomicOp;
use crate::simd::{LaneAddress, Value};

/// Combines two vectors of values of an operation.
pub(super) fn reduction(op: AtomicOp) -> Option<Code> {
    Some(match op {
        AtomicOp::Add | AtomicOp::Sub => Code::VEX_Vpaddd_ymm_ymm_ymmm256,
        AtomicOp::SMin => Code::VEX_Vpminsd_ymm_ymm_ymmm256,
        AtomicOp::UMin => Code::VEX_Vpminud_ymm_ymm_ymmm256,
        AtomicOp::SMax => Code::VEX_Vpmaxsd_ymm_ymm_ymmm256,
        AtomicOp::UMax => Code::VEX_Vpmaxud_ymm_ymm_ymmm256,
        AtomicOp::And => Code::VEX_Vpand_ymm_ymm_ymmm256,
        AtomicOp::Or => Code::VEX_Vpor_ymm_ymm_ymmm256,
        AtomicOp::Xor => Code::VEX_Vpxor_ymm_ymm_ymmm256,
        _ => return None,
    })
}

impl Select<'_, Avx2> {
    /// Combines the values of the active lanes in a tree.
    pub(super) fn reduce(&mut self, op: AtomicOp, value: Value, mask: Value) -> Result<VReg> {
        let code = reduction(op).unwrap_or_else(|| unreachable!("no reduction of {op:?}"));
        let mut lanes = self.pair(value)?;
        if !self.is_all(mask) {
            let (mask, neutral) = (self.pair(mask)?, self.fill(neutral(op)));
            lanes = self.blend(mask, lanes.into(), neutral);
        }
        let whole = self.fold(code, lanes);
        let word = self.general();
        let build = Build::new(Code::VEX_Vmovd_rm32_xmm).def(word, View::Dword).reads(whole, View::Xmm);
        build.push(&mut self.code);
        Ok(word)
    }

    /// Combines all lanes; each lane of the result has the combined value.
    pub(super) fn fold(&mut self, code: Code, lanes: RegisterPair) -> VReg {
        let mut whole = self.lanes_reg();
        let build = Build::new(code).def(whole, View::Ymm).reads(lanes[0], View::Ymm);
        build.reads(lanes[1], View::Ymm).push(&mut self.code);
        let within = Code::VEX_Vpshufd_ymm_ymmm256_imm8;
        for (order, order_of) in [(Code::VEX_Vpermq_ymm_ymmm256_imm8, 0x4e), (within, 0x4e), (within, 0xb1)] {
            let (moved, folded) = (self.lanes_reg(), self.lanes_reg());
            let build = Build::new(order).def(moved, View::Ymm).reads(whole, View::Ymm);
            build.imm8(order_of).push(&mut self.code);
            let build = Build::new(code).def(folded, View::Ymm).reads(whole, View::Ymm);
            build.reads(moved, View::Ymm).push(&mut self.code);
            whole = folded;
        }
        whole
    }

    /// One operation with the combined value of all lanes: the lowest active lane does it and has the old value.
    pub(super) fn emit_uniform_atomic(
        &mut self,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        word: VReg,
        bits: VReg,
    ) -> Result<Option<RegisterPair>> {
        let lowest = self.general();
        Build::new(Code::VEX_Blsi_r32_rm32).def(lowest, View::Dword).reads(bits, View::Dword).push(&mut self.code);
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.pair(lanes.index)?;
        let mut slots = OperandSlots::default();
        let value = LaneOperands::Same(slots.add(Operand::reg_use(word)));
        let place = LaneAddressRegisters { base, index, scale: lanes.scale, disp };
        let result = atomic.result.then(|| [self.lanes_reg(), self.lanes_reg()]);
        let left = self.general();
        self.push_lane_by_lane(atomic, place, [value, LaneOperands::Nothing], [lowest, left], result, slots);
        Ok(result)
    }
}
