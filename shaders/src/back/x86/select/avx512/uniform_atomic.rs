//! One atomic operation for all lanes, with their combined value.

use iced_x86::{Code, ConditionCode, Instruction};
use regalloc2::{Operand, VReg};

use super::super::atomic::neutral;
use super::super::registers::OperandSlots;
use super::super::{Result, Select};
use super::Avx512;
use super::operand::Source;
use crate::back::x86::atomic::{AtomicCode, AtomicRegisters, LaneMemory};
use crate::back::x86::encode::{Assembler, Regs};
use crate::back::x86::vcode::{Build, Expand, InstKind, View};
use crate::ir::AtomicOp;
use crate::simd::{LaneAddress, Value};

/// Combines two vectors of values of an operation.
pub(super) fn reduction(op: AtomicOp) -> Option<Code> {
    Some(match op {
        AtomicOp::Add | AtomicOp::Sub => Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32,
        AtomicOp::SMin => Code::EVEX_Vpminsd_zmm_k1z_zmm_zmmm512b32,
        AtomicOp::UMin => Code::EVEX_Vpminud_zmm_k1z_zmm_zmmm512b32,
        AtomicOp::SMax => Code::EVEX_Vpmaxsd_zmm_k1z_zmm_zmmm512b32,
        AtomicOp::UMax => Code::EVEX_Vpmaxud_zmm_k1z_zmm_zmmm512b32,
        AtomicOp::And => Code::EVEX_Vpandd_zmm_k1z_zmm_zmmm512b32,
        AtomicOp::Or => Code::EVEX_Vpord_zmm_k1z_zmm_zmmm512b32,
        AtomicOp::Xor => Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32,
        _ => return None,
    })
}

impl Select<'_, Avx512> {
    /// One operation for all lanes, if any is active; returns the register of the old value, if it is used.
    pub(super) fn emit_uniform_atomic(
        &mut self,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        index: Value,
        bits: VReg,
        word: VReg,
    ) -> Result<Option<VReg>> {
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.reg_as_scalar(index)?;
        let mut slots = OperandSlots::default();
        let written = self.general();
        let old = atomic.result.then(|| self.general());
        let sequence = UniformAtomic {
            atomic,
            base: slots.add(Operand::reg_use(base)),
            index: slots.add(Operand::reg_use(index)),
            scale: lanes.scale,
            disp,
            lanes: slots.add(Operand::reg_use(bits)),
            word: (slots.add(Operand::reg_use(word)), slots.add(Operand::reg_temp(written))),
            accumulator: {
                let reg = self.general();
                slots.accumulator(reg)
            },
            temp: {
                let reg = self.general();
                slots.add(Operand::reg_temp(reg))
            },
            old: old.map(|old| slots.add(Operand::reg_def_at_start(old))),
        };
        self.code.push(InstKind::Sequence(Box::new(sequence)), &slots);
        Ok(old)
    }

    /// An index in a general register, whether it is a scalar or a constant vector.
    fn reg_as_scalar(&mut self, index: Value) -> Result<VReg> {
        match self.constant(index) {
            Some(bits) => {
                let reg = self.general();
                self.set(reg, u64::from(bits as u32));
                Ok(reg)
            }
            None => self.reg(index),
        }
    }

    /// Combines the values of the active lanes in a tree.
    pub(super) fn reduce(&mut self, op: AtomicOp, value: Value, mask: Value) -> Result<VReg> {
        let code = reduction(op).unwrap_or_else(|| unreachable!("no reduction of {op:?}"));
        let mut whole = self.lanes(value)?;
        if !self.is_all(mask) {
            let mask = self.lanes(mask)?;
            let zeros = self.lanes_reg();
            self.set_lanes(zeros, neutral(op));
            let kept = self.lanes_reg();
            let build = Build::new(Code::EVEX_Vpblendmd_zmm_k1z_zmm_zmmm512b32).def(kept, View::Zmm);
            self.push_with(build.reads(zeros, View::Zmm).mask(mask), Source::Reg(whole), None);
            whole = kept;
        }
        let half = Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8;
        let within = Code::EVEX_Vpshufd_zmm_k1z_zmmm512b32_imm8;
        for (shuffle, order) in [(half, 0x4e), (half, 0xb1), (within, 0x4e), (within, 0xb1)] {
            let (moved, folded) = (self.lanes_reg(), self.lanes_reg());
            let mut build = Build::new(shuffle).def(moved, View::Zmm).reads(whole, View::Zmm);
            if shuffle == half {
                build = build.reads(whole, View::Zmm);
            }
            build.imm8(order).push(&mut self.code);
            self.lanes3(code, folded, whole, moved);
            whole = folded;
        }
        let word = self.general();
        Build::new(Code::EVEX_Vmovd_rm32_xmm).def(word, View::Dword).reads(whole, View::Xmm).push(&mut self.code);
        Ok(word)
    }
}

/// One operation on one word, if a lane is active.
#[derive(Debug)]
struct UniformAtomic {
    atomic: AtomicCode,
    base: u8,
    index: u8,
    scale: u8,
    disp: i32,
    lanes: u8,
    /// The value, and a register for a copy.
    word: (u8, u8),
    accumulator: u8,
    temp: u8,
    /// The register of the old value.
    old: Option<u8>,
}

impl Expand for UniformAtomic {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let done = asm.label();
        let lanes = regs.gpr32(self.lanes);
        asm.put(Instruction::with2(Code::Test_rm32_r32, lanes, lanes));
        asm.jump_if(ConditionCode::e, done);
        let (word, value) = (regs.gpr32(self.word.0), regs.gpr32(self.word.1));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, value, word));
        let memory = LaneMemory { base: regs.gpr(self.base), scale: self.scale, disp: self.disp };
        let registers = AtomicRegisters { old: regs.gpr32(self.accumulator), value, comparator: regs.gpr32(self.temp) };
        let found = self.atomic.operate(asm, memory.at(regs.gpr(self.index)), registers);
        if let Some(old) = self.old {
            asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(old), found));
        }
        asm.bind(done);
    }
}
