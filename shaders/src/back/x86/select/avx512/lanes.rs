//! Splats, extracts, broadcasts and selects.

use iced_x86::Code;

use super::super::super::vcode::{Build, View};
use super::super::{Result, Select};
use super::Avx512;
use crate::ir::Op;
use crate::simd::{Inst, InstData, Type, Value};

impl Select<'_, Avx512> {
    pub(super) fn splat(&mut self, inst: Inst, value: Value) -> Result {
        if self.kernel.ty(value) == Type::S1 {
            let spread = self.spread(value)?;
            let result = self.define_lanes(inst);
            self.mask_from_general(result, spread);
            return Ok(());
        }
        let constant = self.constant(value);
        let scalar = if constant.is_none() { Some(self.reg(value)?) } else { None };
        let result = self.define_lanes(inst);
        match (constant, scalar) {
            (Some(bits), _) => self.set_lanes(result, bits as u32),
            (None, Some(scalar)) => {
                let build = Build::new(Code::EVEX_Vpbroadcastd_zmm_k1z_r32).def(result, View::Zmm);
                build.reads(scalar, View::Dword).push(&mut self.code);
            }
            (None, None) => {}
        }
        Ok(())
    }

    pub(super) fn extract(&mut self, inst: Inst, vector: Value, lane: Value) -> Result {
        let vector = self.lanes(vector)?;
        let Some(lane) = self.constant(lane).map(|lane| lane as u8 & 15) else {
            let lane = self.reg(lane)?;
            let [index, moved] = [self.lanes_reg(), self.lanes_reg()];
            let build = Build::new(Code::EVEX_Vmovd_xmm_rm32).def(index, View::Xmm).reads(lane, View::Dword);
            build.push(&mut self.code);
            self.lanes3(Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32, moved, index, vector);
            self.lowest(inst, moved);
            return Ok(());
        };
        if lane == 0 {
            self.lowest(inst, vector);
            return Ok(());
        }
        let mut lane128 = vector;
        if lane >= 4 {
            lane128 = self.lanes_reg();
            let build = Build::new(Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8).def(lane128, View::Xmm);
            build.reads(vector, View::Zmm).imm8(lane / 4).push(&mut self.code);
        }
        let result = self.define(inst);
        let build = Build::new(Code::EVEX_Vpextrd_rm32_xmm_imm8).def(result, View::Dword).reads(lane128, View::Xmm);
        build.imm8(lane % 4).push(&mut self.code);
        Ok(())
    }

    fn lowest(&mut self, inst: Inst, vector: regalloc2::VReg) {
        let result = self.define(inst);
        let build = Build::new(Code::EVEX_Vmovd_rm32_xmm).def(result, View::Dword).reads(vector, View::Xmm);
        build.push(&mut self.code);
    }

    /// A select by lane, or for all lanes, between vectors or between masks.
    pub(super) fn vector_select(&mut self, inst: Inst, condition: Value, then: Value, otherwise: Value) -> Result {
        let vector = self.kernel.ty(then) == Type::V32;
        if vector && self.strict_min(inst, condition, then, otherwise)? {
            return Ok(());
        }
        let mask = if self.kernel.ty(condition) == Type::S1 {
            let spread = self.spread(condition)?;
            let mask = self.mask_reg();
            self.mask_from_general(mask, spread);
            mask
        } else {
            self.lanes(condition)?
        };
        if !vector {
            return self.mask_select(inst, mask, then, otherwise);
        }
        if let Some((deferred, &InstData::Splat { value })) = self.deferred_def(then) {
            self.deferred[deferred] = 0;
            let scalar = self.reg(value)?;
            let build = Build::new(Code::EVEX_Vpbroadcastd_zmm_k1z_r32);
            let zeroing = self.constant(otherwise) == Some(0);
            let build = if zeroing {
                let result = self.define_lanes(inst);
                build.def(result, View::Zmm).zeroing()
            } else {
                let otherwise = self.lanes(otherwise)?;
                let result = self.define_lanes(inst);
                build.modify(result, otherwise, View::Zmm)
            };
            build.reads(scalar, View::Dword).mask(mask).push(&mut self.code);
            return Ok(());
        }
        if self.constant(otherwise) == Some(0) {
            let then = self.lanes(then)?;
            let result = self.define_lanes(inst);
            let build = Build::new(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512).def(result, View::Zmm);
            build.reads(then, View::Zmm).mask(mask).zeroing().push(&mut self.code);
            return Ok(());
        }
        let otherwise = self.lanes(otherwise)?;
        let then = self.source(then)?;
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32).def(result, View::Zmm);
        self.push_with(build.reads(otherwise, View::Zmm).mask(mask), then, None);
        Ok(())
    }

    /// `a < b ? a : b` of floats is the minimum instruction, `a < b ? b : a` the maximum.
    fn strict_min(&mut self, inst: Inst, condition: Value, then: Value, otherwise: Value) -> Result<bool> {
        let Some((deferred, InstData::Pure { op: Op::FOrdLt, args })) = self.deferred_def(condition) else {
            return Ok(false);
        };
        let same = |a: Value, b: Value| {
            self.uses.canonical(a) == self.uses.canonical(b)
                || self.constant(a).is_some() && self.constant(a) == self.constant(b)
        };
        let code = if same(args[0], then) && same(args[1], otherwise) {
            Code::EVEX_Vminps_zmm_k1z_zmm_zmmm512b32_sae
        } else if same(args[1], then) && same(args[0], otherwise) {
            Code::EVEX_Vmaxps_zmm_k1z_zmm_zmmm512b32_sae
        } else {
            return Ok(false);
        };
        self.deferred[deferred] = 0;
        self.code.floats = true;
        let then = self.lanes(then)?;
        let otherwise = self.source(otherwise)?;
        let result = self.define_lanes(inst);
        self.push_with(Build::new(code).def(result, View::Zmm).reads(then, View::Zmm), otherwise, None);
        Ok(true)
    }

    fn mask_select(&mut self, inst: Inst, mask: regalloc2::VReg, then: Value, otherwise: Value) -> Result {
        let [then, otherwise] = self.both(&[then, otherwise])?;
        let [from_then, from_otherwise] = [self.mask_reg(), self.mask_reg()];
        self.masks3(Code::VEX_Kandw_kr_kr_kr, from_then, mask, then);
        self.masks3(Code::VEX_Kandnw_kr_kr_kr, from_otherwise, mask, otherwise);
        let result = self.define_lanes(inst);
        self.masks3(Code::VEX_Korw_kr_kr_kr, result, from_then, from_otherwise);
        Ok(())
    }

    /// Loads one word for all lanes.
    pub(super) fn load_broadcast(&mut self, inst: Inst, address: &crate::simd::Address) -> Result {
        let checked = self.address(address)?;
        let result = self.define_lanes(inst);
        let build = Build::new(Code::EVEX_Vbroadcastss_zmm_k1z_xmmm32).def(result, View::Zmm).at(&checked.place);
        self.push_checked(build, &checked);
        Ok(())
    }
}
