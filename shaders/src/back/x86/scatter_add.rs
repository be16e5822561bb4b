//! Unlocked scatter-add of a constant to one word per lane, old values unused: unrolled in lane order if all lanes are
//! active, otherwise a loop. Indices are extracted from the vector into general registers.

use iced_x86::{Code, ConditionCode, Instruction, Register};
use regalloc2::{Operand, RegClass, VReg};
use smallvec::SmallVec;

use super::Isa;
use super::atomic::{INDEX_AT, LaneMemory};
use super::encode::{Assembler, Regs};
use super::lane_groups::Parts;
use super::vcode::{Expand, Kind, VCode};

/// Operands of the operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScatterAdd {
    pub isa: Isa,
    pub by: u32,
    pub base: VReg,
    pub scale: u8,
    pub disp: i32,
    /// The lower and the upper half of the indices; the same register twice if it holds all 16 lanes.
    pub index: [VReg; 2],
    /// The bits of the mask.
    pub bits: VReg,
}

impl ScatterAdd {
    pub(super) fn push(self, code: &mut VCode) {
        let mut operands: SmallVec<[Operand; 8]> = SmallVec::new();
        let mut slot = |operand| {
            operands.push(operand);
            operands.len() as u8 - 1
        };
        let index = self.index.map(|half| slot(Operand::reg_use(half)));
        let (base, bits) = (slot(Operand::reg_use(self.base)), slot(Operand::reg_use(self.bits)));
        let temps = [(); 3].map(|()| slot(Operand::reg_temp(code.vreg(RegClass::Int))));
        let temp = slot(Operand::reg_temp(code.vreg(RegClass::Float)));
        let parts = Parts { isa: self.isa, vector: index, temp };
        let Self { by, scale, disp, .. } = self;
        code.scratch = true;
        code.push(Kind::Sequence(Box::new(Sequence { by, parts, base, scale, disp, bits, temps })), &operands);
    }
}

#[derive(Debug)]
struct Sequence {
    by: u32,
    parts: Parts,
    base: u8,
    scale: u8,
    disp: i32,
    bits: u8,
    temps: [u8; 3],
}

impl Sequence {
    fn add(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, index: Register) {
        let memory = LaneMemory { base: regs.gpr(self.base), scale: self.scale, disp: self.disp }.at(index);
        asm.put(match i8::try_from(self.by.cast_signed()) {
            Ok(by) => Instruction::with2(Code::Add_rm32_imm8, memory, i32::from(by)),
            Err(_) => Instruction::with2(Code::Add_rm32_imm32, memory, self.by.cast_signed()),
        });
    }
}

impl Expand for Sequence {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(self.bits), 0xffff));
        asm.jump_if(ConditionCode::ne, cold);
        let [first, second, word] = self.temps;
        for lane128 in 0..4 {
            let part = self.parts.lane128(regs, asm, lane128);
            self.parts.split(asm, part, [regs.gpr(first), regs.gpr(second)]);
            for pair in [first, second] {
                asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(word), regs.gpr32(pair)));
                asm.put(Instruction::with2(Code::Shr_rm64_imm8, regs.gpr(pair), 32));
                self.add(regs, asm, regs.gpr(word));
                self.add(regs, asm, regs.gpr(pair));
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [index, lane, left] = self.temps;
        let (again, done) = (asm.label(), asm.label());
        self.parts.keep(regs, asm, INDEX_AT);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(left), regs.gpr32(self.bits)));
        asm.put(Instruction::with2(Code::Test_rm32_r32, regs.gpr32(left), regs.gpr32(left)));
        asm.jump_if(ConditionCode::e, done);
        asm.bind(again);
        asm.put(Instruction::with2(Code::Tzcnt_r32_rm32, regs.gpr32(lane), regs.gpr32(left)));
        let memory = LaneMemory { base: Register::RSP, scale: 4, disp: INDEX_AT }.at(regs.gpr(lane));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(index), memory));
        self.add(regs, asm, regs.gpr(index));
        asm.put(Instruction::with2(Code::VEX_Blsr_r32_rm32, regs.gpr32(left), regs.gpr32(left)));
        asm.jump_if(ConditionCode::ne, again);
        asm.bind(done);
    }
}
