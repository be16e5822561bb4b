//! Masks: 16 bits in a mask register.

use iced_x86::{Code, ConditionCode};
use regalloc2::{RegClass, VReg};

use super::super::super::CompileError;
use super::super::super::encode::conditional;
use super::super::super::vcode::{AddressingMode, Build, View};
use super::super::{Result, Select};
use super::Avx512;
use crate::ir::Op;
use crate::simd::{Inst, InstData, Value, WideOp};

/// All lanes.
pub(super) const ALL: u16 = u16::MAX;

impl Select<'_, Avx512> {
    pub(super) fn mask_reg(&mut self) -> VReg {
        self.code.vreg(RegClass::Vector)
    }

    /// An operation on masks.
    pub(super) fn mask_op(&mut self, inst: Inst, op: Op, args: &[Value]) -> Result {
        match op {
            Op::LAnd => self.mask_and(inst, args[0], args[1]),
            Op::LOr => self.mask_binary(inst, Code::VEX_Korw_kr_kr_kr, args),
            Op::LXor => self.mask_binary(inst, Code::VEX_Kxorw_kr_kr_kr, args),
            Op::LNot => {
                if let Some(comparison) = self.deferred_comparison(args[0]) {
                    return self.compare_lanes(inst, comparison.negated(), None);
                }
                let arg = self.lanes(args[0])?;
                let result = self.define_lanes(inst);
                let build = Build::new(Code::VEX_Knotw_kr_kr).def(result, View::Mask).reads(arg, View::Mask);
                build.push(&mut self.code);
                Ok(())
            }
            Op::BoolToInt => {
                let mask = self.lanes(args[0])?;
                let memory = AddressingMode { broadcast: false, ..self.pool_word(1) };
                let result = self.define_lanes(inst);
                let build = Build::new(Code::EVEX_Vpbroadcastd_zmm_k1z_xmmm32).def(result, View::Zmm);
                build.memory(memory).mask(mask).zeroing().push(&mut self.code);
                Ok(())
            }
            _ => Err(CompileError::Unsupported(op)),
        }
    }

    fn mask_binary(&mut self, inst: Inst, code: Code, args: &[Value]) -> Result {
        let [a, b] = self.both(args)?;
        let result = self.define_lanes(inst);
        self.masks3(code, result, a, b);
        Ok(())
    }

    pub(super) fn masks3(&mut self, code: Code, result: VReg, a: VReg, b: VReg) {
        Build::new(code).def(result, View::Mask).reads(a, View::Mask).reads(b, View::Mask).push(&mut self.code);
    }

    /// The "and not" instruction complements its first operand.
    fn mask_and(&mut self, inst: Inst, a: Value, b: Value) -> Result {
        // The second operand is deferred more often, so it is tried first.
        for (compared, other) in [(b, a), (a, b)] {
            if let Some(comparison) = self.deferred_comparison(compared) {
                let among = self.lanes(other)?;
                return self.compare_lanes(inst, comparison, Some(among));
            }
        }
        for (not, other) in [(a, b), (b, a)] {
            if let Some((deferred, InstData::Pure { op: Op::LNot, args })) = self.deferred_def(not) {
                self.deferred[deferred] = 0;
                let [arg, other] = [self.lanes(args[0])?, self.lanes(other)?];
                let result = self.define_lanes(inst);
                self.masks3(Code::VEX_Kandnw_kr_kr_kr, result, arg, other);
                return Ok(());
            }
        }
        self.mask_binary(inst, Code::VEX_Kandw_kr_kr_kr, &[a, b])
    }

    /// Sets the flags by whether a lane is active; an `or` of masks is merged.
    pub(in super::super) fn any(&mut self, mask: Value) -> Result<ConditionCode> {
        let mut masks = [mask, mask];
        if let Some((deferred, InstData::Pure { op: Op::LOr, args })) = self.deferred_def(mask) {
            self.deferred[deferred] = 0;
            masks = [args[0], args[1]];
        }
        let [a, b] = self.both(&masks)?;
        let build = Build::new(Code::VEX_Kortestw_kr_kr).reads(a, View::Mask).reads(b, View::Mask);
        build.push(&mut self.code);
        Ok(ConditionCode::ne)
    }

    /// A constant mask in a register.
    pub(in super::super) fn set_mask(&mut self, reg: VReg, bits: u16) {
        match bits {
            0 => Build::new(Code::VEX_Kxorw_kr_kr_kr).def(reg, View::Mask).again(0).again(0).push(&mut self.code),
            ALL => Build::new(Code::VEX_Kxnorw_kr_kr_kr).def(reg, View::Mask).again(0).again(0).push(&mut self.code),
            _ => {
                let word = self.general();
                self.set(word, u64::from(bits));
                self.mask_from_general(reg, word);
            }
        }
    }

    pub(super) fn mask_from_general(&mut self, result: VReg, word: VReg) {
        let build = Build::new(Code::VEX_Kmovw_kr_r32).def(result, View::Mask).reads(word, View::Dword);
        build.push(&mut self.code);
    }

    /// All ones or all zeros in a general register, by a truth value.
    pub(super) fn spread(&mut self, truth: Value) -> Result<VReg> {
        let result = self.general();
        if let Some((deferred, data)) = self.deferred_def(truth)
            && matches!(data, InstData::Pure { op: Op::ULt, .. } | InstData::Wide { op: WideOp::Lt, .. })
        {
            self.deferred[deferred] = 0;
            let condition = self.compare(deferred)?;
            if condition == ConditionCode::b {
                // A register minus itself minus the carry.
                Build::new(Code::Sbb_r32_rm32).def(result, View::Dword).again(0).push(&mut self.code);
                return Ok(result);
            }
            let (byte, word) = (self.general(), self.general());
            Build::new(conditional(condition).0).def(byte, View::Byte).push(&mut self.code);
            Build::new(Code::Movzx_r32_rm8).def(word, View::Dword).reads(byte, View::Byte).push(&mut self.code);
            Build::new(Code::Neg_rm32).modify(result, word, View::Dword).push(&mut self.code);
            return Ok(result);
        }
        let truth = self.reg(truth)?;
        Build::new(Code::Neg_rm32).modify(result, truth, View::Dword).push(&mut self.code);
        Ok(result)
    }

    /// The bits of a mask in a general register.
    pub(super) fn mask_bits(&mut self, mask: Value) -> Result<VReg> {
        let bits = self.general();
        if let Some(constant) = self.constant(mask) {
            self.set(bits, constant & 0xffff);
        } else {
            let mask = self.lanes(mask)?;
            Build::new(Code::VEX_Kmovw_r32_kr).def(bits, View::Dword).reads(mask, View::Mask).push(&mut self.code);
        }
        Ok(bits)
    }
}
