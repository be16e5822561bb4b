//! Atomic adds, subtracts and loads at one uniform address whose old values are used: one atomic with the sum of the
//! active lanes' values; each lane's old value is the word's old value plus (for a subtraction, minus) its exclusive
//! prefix sum.

use iced_x86::Code;
use regalloc2::VReg;

use super::super::{Result, Select, VectorIsa};
use super::Avx512;
use super::operand::Source;
use super::row::IOTA;
use crate::back::x86::atomic::AtomicCode;
use crate::back::x86::vcode::{Build, View};
use crate::ir::AtomicOp;
use crate::simd::{Inst, LaneAddress, Value};

const ADD: Code = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
const SUBTRACT: Code = Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32;

impl Select<'_, Avx512> {
    /// Additions, subtractions and loads; returns whether the operation is one of them.
    pub(super) fn scan(
        &mut self,
        inst: Inst,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        index: Value,
        value: Option<Value>,
        mask: Value,
    ) -> Result<bool> {
        if !matches!(atomic.op, AtomicOp::Add | AtomicOp::Sub | AtomicOp::Load) {
            return Ok(false);
        }
        let bits = self.mask_bits(mask)?;
        let active = self.lanes(mask)?;
        let (before, sum) = match value {
            None => (None, bits),
            Some(value) => match self.constant(value) {
                Some(step) => (Some(self.ranks(active, step as u32)), Avx512::step_for_each(self, bits, step as u32)),
                None => {
                    let (before, sum) = self.exclusive_scan(value, active)?;
                    (Some(before), sum)
                }
            },
        };
        let Some(old) = self.emit_uniform_atomic(atomic, lanes, index, bits, sum)? else { return Ok(false) };
        let broadcast = if before.is_some() { self.lanes_reg() } else { self.define_lanes(inst) };
        let mut build =
            Build::new(Code::EVEX_Vpbroadcastd_zmm_k1z_r32).def(broadcast, View::Zmm).reads(old, View::Dword);
        if before.is_none() {
            build = build.mask(active).zeroing();
        }
        build.push(&mut self.code);
        if let Some(before) = before {
            let code = if atomic.op == AtomicOp::Sub { SUBTRACT } else { ADD };
            let result = self.define_lanes(inst);
            let build = Build::new(code).def(result, View::Zmm).reads(broadcast, View::Zmm).reads(before, View::Zmm);
            build.mask(active).zeroing().push(&mut self.code);
        }
        Ok(true)
    }

    /// `step` times the number of active lanes before each lane.
    fn ranks(&mut self, active: VReg, step: u32) -> VReg {
        let (ranks, scaled) = (self.lanes_reg(), self.lanes_reg());
        let iota = Self::pool_vector(self.code.pool.vector(IOTA));
        let build = Build::new(Code::EVEX_Vpexpandd_zmm_k1z_zmmm512).def(ranks, View::Zmm).memory(iota);
        build.mask(active).zeroing().push(&mut self.code);
        if step == 1 {
            return ranks;
        }
        let build = Build::new(Code::EVEX_Vpmulld_zmm_k1z_zmm_zmmm512b32).def(scaled, View::Zmm);
        self.push_with(build.reads(ranks, View::Zmm), Source::Word(step), None);
        scaled
    }

    /// The exclusive prefix sums of the lanes' values, and the sum of all.
    fn exclusive_scan(&mut self, value: Value, active: VReg) -> Result<(VReg, VReg)> {
        let value = self.lanes(value)?;
        let (masked, zeros) = (self.lanes_reg(), self.lanes_reg());
        let build = Build::new(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512).def(masked, View::Zmm).reads(value, View::Zmm);
        build.mask(active).zeroing().push(&mut self.code);
        self.set_lanes(zeros, 0);
        let mut sums = masked;
        for distance in [1, 2, 4, 8] {
            let (moved, more) = (self.lanes_reg(), self.lanes_reg());
            let build = Build::new(Code::EVEX_Valignd_zmm_k1z_zmm_zmmm512b32_imm8).def(moved, View::Zmm);
            let build = build.reads(sums, View::Zmm).reads(zeros, View::Zmm).imm8(16 - distance);
            build.push(&mut self.code);
            self.lanes3(ADD, more, sums, moved);
            sums = more;
        }
        let (before, last, sum) = (self.lanes_reg(), self.lanes_reg(), self.general());
        self.lanes3(SUBTRACT, before, sums, masked);
        let build = Build::new(Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8).def(last, View::Xmm);
        build.reads(sums, View::Zmm).imm8(3).push(&mut self.code);
        let build = Build::new(Code::EVEX_Vpextrd_rm32_xmm_imm8).def(sum, View::Dword).reads(last, View::Xmm);
        build.imm8(3).push(&mut self.code);
        Ok((before, sum))
    }
}
