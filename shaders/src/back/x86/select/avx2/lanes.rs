//! Splats, extracts, broadcasts and selects.

use iced_x86::{Code, OpKind};
use regalloc2::VReg;

use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx2;
use super::operand::RegisterPair;
use crate::simd::{Address, Inst, Type, Value};

impl Select<'_, Avx2> {
    pub(super) fn splat(&mut self, value: Value) -> Result<RegisterPair> {
        if self.kernel.ty(value) == Type::S1 {
            let truth = self.reg(value)?;
            return Ok(self.spread_truth(truth));
        }
        if let Some(bits) = self.constant(value) {
            return Ok(self.fill(bits as u32));
        }
        let scalar = self.reg(value)?;
        Ok(self.spread(scalar))
    }

    /// A general register's word in each lane.
    pub(super) fn spread(&mut self, scalar: VReg) -> RegisterPair {
        let (word, lanes) = (self.lanes_reg(), self.lanes_reg());
        let build = Build::new(Code::VEX_Vmovd_xmm_rm32).def(word, View::Xmm).reads(scalar, View::Dword);
        build.push(&mut self.code);
        let build = Build::new(Code::VEX_Vpbroadcastd_ymm_xmmm32).def(lanes, View::Ymm).reads(word, View::Xmm);
        build.push(&mut self.code);
        [lanes, lanes]
    }

    pub(super) fn extract(&mut self, inst: Inst, vector: Value, lane: Value) -> Result {
        let vector = self.pair(vector)?;
        let Some(lane) = self.constant(lane).map(|lane| lane as u8 & 15) else {
            let lane = self.reg(lane)?;
            let word = self.lane_of(vector, lane);
            let result = self.kernel.results[inst][0];
            self.regs[result] = Some(word);
            return Ok(());
        };
        let mut lane128 = vector[usize::from(lane / 8)];
        if lane % 8 >= 4 {
            let half = lane128;
            lane128 = self.lanes_reg();
            let build = Build::new(Code::VEX_Vextracti128_xmmm128_ymm_imm8).def(lane128, View::Xmm);
            build.reads(half, View::Ymm).imm8(1).push(&mut self.code);
        }
        let result = self.define(inst);
        if lane % 4 == 0 {
            self.lowest(result, lane128);
            return Ok(());
        }
        let build = Build::new(Code::VEX_Vpextrd_rm32_xmm_imm8).def(result, View::Dword).reads(lane128, View::Xmm);
        build.imm8(lane % 4).push(&mut self.code);
        Ok(())
    }

    fn lowest(&mut self, result: VReg, vector: VReg) {
        let build = Build::new(Code::VEX_Vmovd_rm32_xmm).def(result, View::Dword).reads(vector, View::Xmm);
        build.push(&mut self.code);
    }

    /// The word of the lane whose number is in a general register.
    pub(super) fn lane_of(&mut self, vector: RegisterPair, lane: VReg) -> VReg {
        let index = self.lanes_reg();
        let build = Build::new(Code::VEX_Vmovd_xmm_rm32).def(index, View::Xmm).reads(lane, View::Dword);
        build.push(&mut self.code);
        let [low, high] = vector.map(|half| {
            let (moved, word) = (self.lanes_reg(), self.general());
            let build = Build::new(Code::VEX_Vpermd_ymm_ymm_ymmm256).def(moved, View::Ymm);
            build.reads(index, View::Ymm).reads(half, View::Ymm).push(&mut self.code);
            self.lowest(word, moved);
            word
        });
        let word = self.general();
        let build = Build::new(Code::Test_rm32_imm32).reads(lane, View::Dword);
        build.imm(OpKind::Immediate32, 8).push(&mut self.code);
        self.modify_by(Code::Cmovne_r32_rm32, word, low, high);
        word
    }

    /// A select by lane, or for all lanes, between vectors or between masks.
    pub(super) fn vector_select(
        &mut self,
        condition: Value,
        mut then: Value,
        mut otherwise: Value,
    ) -> Result<RegisterPair> {
        let mask = if self.kernel.ty(condition) == Type::S1 {
            let truth = self.reg(condition)?;
            self.spread_truth(truth)
        } else {
            let mask = self.mask(condition)?;
            if mask.complement {
                (then, otherwise) = (otherwise, then);
            }
            mask.lanes
        };
        if self.kernel.ty(then) == Type::Mask {
            let (then, otherwise) = (self.pair(then)?, self.pair(otherwise)?);
            return Ok(self.blend(mask, then.into(), otherwise));
        }
        for (kept, zero, code) in
            [(then, otherwise, Code::VEX_Vpand_ymm_ymm_ymmm256), (otherwise, then, Code::VEX_Vpandn_ymm_ymm_ymmm256)]
        {
            if self.constant(zero) == Some(0) {
                let kept = self.source(kept)?;
                return Ok(self.op2(code, mask, kept));
            }
        }
        let otherwise = self.pair(otherwise)?;
        let then = self.source(then)?;
        Ok(self.blend(mask, then, otherwise))
    }

    /// Loads one word for all lanes.
    pub(super) fn load_broadcast(&mut self, inst: Inst, address: &Address) -> Result {
        let checked = self.address(address)?;
        let lanes = self.lanes_reg();
        let build = Build::new(Code::VEX_Vbroadcastss_ymm_m32).def(lanes, View::Ymm).at(&checked.place);
        self.push_checked(build, &checked);
        self.bind(inst, [lanes, lanes]);
        Ok(())
    }
}
