//! A word for each lane, anywhere: gathers, and one store after another.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, RegClass, VReg};
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::atomic::{INDEX_AT, LaneMemory, VALUE_AT};
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Build, Expand, Kind, View};
use super::super::{Select, VectorIsa};
use super::Avx2;
use super::operand::Pair;
use crate::back::x86::lane_groups::Parts;
use crate::simd::{Inst, LaneAddress, Value};

/// Registers of an address for each lane, in the form the machine takes: the index is signed there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePlace {
    pub base: VReg,
    pub index: Pair,
    pub scale: u8,
    pub disp: i32,
}

impl Select<'_, Avx2> {
    /// In lanes that are on a scaled index is below 2³², so an index scaled by 2 or more has no sign. Another one is moved by
    /// 2³¹, and the base against it.
    fn lane_place(&mut self, lanes: &LaneAddress) -> Result<LanePlace, CompileError> {
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        if lanes.scale > 1 {
            let index = self.pair(lanes.index)?;
            return Ok(LanePlace { base, index, scale: lanes.scale, disp });
        }
        let index = self.with_word(Code::VEX_Vpxor_ymm_ymm_ymmm256, lanes.index, 1 << 31)?;
        // Two displacements, as none of 2³¹ can be encoded.
        let [exact, half, whole] = std::array::from_fn(|_| self.general());
        for (from, to, disp) in [(base, exact, disp), (exact, half, 1 << 30), (half, whole, 1 << 30)] {
            Build::new(Code::Lea_r64_m).def(to, View::Qword).at(&Self::at(from, disp)).push(&mut self.code);
        }
        Ok(LanePlace { base: whole, index, scale: 1, disp: 0 })
    }

    pub(super) fn gather(&mut self, inst: Inst, lanes: &LaneAddress, mask: Value) -> Result<(), CompileError> {
        let place = self.lane_place(lanes)?;
        let mask = self.pair(mask)?;
        let result = self.gathered(place, mask);
        self.bind(inst, result);
        Ok(())
    }

    /// A word for each lane that is on, 0 for the others.
    pub(super) fn gathered(&mut self, place: LanePlace, mask: Pair) -> Pair {
        let LanePlace { base, index, scale, disp } = place;
        std::array::from_fn(|half| {
            let (result, used) = (self.lanes_reg(), self.lanes_reg());
            // The machine uses the mask up; the allocator copies one that is needed later. No two registers may be the same.
            let operands = [
                Operand::reg_def_at_start(result),
                Operand::reg_reuse_def(used, 2),
                Operand::reg_use(mask[half]),
                Operand::reg_use_at_end(base),
                Operand::reg_use_at_end(index[half]),
            ];
            self.code.push(Kind::Sequence(Box::new(Gather { scale, disp })), &operands);
            result
        })
    }

    pub(super) fn scatter(&mut self, lanes: &LaneAddress, value: Value, mask: Value) -> Result<(), CompileError> {
        let bits = self.mask_bits(mask)?;
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        let mut slot = |operand| {
            operands.push(operand);
            operands.len() as u8 - 1
        };
        let [index, value] = [lanes.index, value].map(|value| self.pair(value));
        let [index, value] = [index?, value?].map(|pair| pair.map(|half| slot(Operand::reg_use(half))));
        let (base, bits) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(bits)));
        let temps = [(); 3].map(|()| slot(Operand::reg_temp(self.code.vreg(RegClass::Int))));
        let parts = [index, value].map(|vector| {
            let temp = slot(Operand::reg_temp(self.code.vreg(RegClass::Float)));
            Parts { isa: Avx2::ISA, vector, temp }
        });
        self.code.scratch = true;
        let scatter = Scatter { parts, base, scale: lanes.scale, disp, bits, temps };
        self.code.push(Kind::Sequence(Box::new(scatter)), &operands);
        Ok(())
    }
}

/// Loads into operand 0 under the mask 1, which is used up; base 3, index 4.
#[derive(Debug)]
struct Gather {
    scale: u8,
    disp: i32,
}

impl Expand for Gather {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let result = regs.ymm(0);
        let memory = MemoryOperand::with_base_index_scale_displ_size(
            regs.gpr(3),
            regs.ymm(4),
            u32::from(self.scale),
            i64::from(self.disp),
            u32::from(self.disp != 0),
        );
        asm.put(Instruction::with3(Code::VEX_Vpxor_ymm_ymm_ymmm256, result, result, result));
        asm.put(Instruction::with3(Code::VEX_Vpgatherdd_ymm_vm32y_ymm, result, memory, regs.ymm(1)));
    }
}

/// A store for each lane, in order: without a loop if all lanes are on. Indices and words come by way of registers.
#[derive(Debug)]
struct Scatter {
    /// Indices and words.
    parts: [Parts; 2],
    base: u8,
    scale: u8,
    disp: i32,
    bits: u8,
    temps: [u8; 3],
}

impl Scatter {
    fn at(&self, regs: Regs<'_>, index: Register) -> MemoryOperand {
        LaneMemory { base: regs.gpr(self.base), scale: self.scale, disp: self.disp }.at(index)
    }
}

impl Expand for Scatter {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(self.bits), 0xffff));
        asm.jump_if(ConditionCode::ne, cold);
        let [indices, words] = self.parts;
        let [first, second, index] = self.temps;
        for quarter in 0..4 {
            let places = indices.quarter(regs, asm, quarter);
            let word = words.quarter(regs, asm, quarter);
            indices.split(asm, places, [regs.gpr(first), regs.gpr(second)]);
            for (pair, number) in [(first, 0), (second, 2)] {
                asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(index), regs.gpr32(pair)));
                asm.put(Instruction::with2(Code::Shr_rm64_imm8, regs.gpr(pair), 32));
                for (index, number) in [(index, number), (pair, number + 1)] {
                    let place = self.at(regs, regs.gpr(index));
                    asm.put(match number {
                        0 => Instruction::with2(Code::VEX_Vmovd_rm32_xmm, place, word),
                        _ => Instruction::with3(Code::VEX_Vpextrd_rm32_xmm_imm8, place, word, number),
                    });
                }
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [indices, words] = self.parts;
        let [index, lane, left] = self.temps;
        let (again, done) = (asm.label(), asm.label());
        indices.keep(regs, asm, INDEX_AT);
        words.keep(regs, asm, VALUE_AT);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(left), regs.gpr32(self.bits)));
        asm.put(Instruction::with2(Code::Test_rm32_r32, regs.gpr32(left), regs.gpr32(left)));
        asm.jump_if(ConditionCode::e, done);
        asm.bind(again);
        asm.put(Instruction::with2(Code::Tzcnt_r32_rm32, regs.gpr32(lane), regs.gpr32(left)));
        let kept = |at| LaneMemory { base: Register::RSP, scale: 4, disp: at }.at(regs.gpr(lane));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(index), kept(INDEX_AT)));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(lane), kept(VALUE_AT)));
        asm.put(Instruction::with2(Code::Mov_rm32_r32, self.at(regs, regs.gpr(index)), regs.gpr32(lane)));
        asm.put(Instruction::with2(Code::VEX_Blsr_r32_rm32, regs.gpr32(left), regs.gpr32(left)));
        asm.jump_if(ConditionCode::ne, again);
        asm.bind(done);
    }
}
