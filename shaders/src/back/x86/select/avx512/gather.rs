//! A word for each lane, anywhere.

use iced_x86::{Code, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, VReg};

use super::super::super::CompileError;
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Build, Expand, Kind, View};
use super::super::Select;
use super::Avx512;
use super::operand::Source;
use crate::simd::{Inst, LaneAddress, Value};

/// Registers of an address for each lane, in the form the machine takes: the index is signed there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePlace {
    pub base: VReg,
    pub index: VReg,
    pub scale: u8,
    pub disp: i32,
}

impl Select<'_, Avx512> {
    /// In lanes that are on a scaled index is below 2³², so an index scaled by 2 or more has no sign. Another one is moved by
    /// 2³¹, and the base against it.
    pub(super) fn lane_place(&mut self, lanes: &LaneAddress) -> Result<LanePlace, CompileError> {
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.lanes(lanes.index)?;
        if lanes.scale > 1 {
            return Ok(LanePlace { base, index, scale: lanes.scale, disp });
        }
        let moved = self.lanes_reg();
        let build = Build::new(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32).def(moved, View::Zmm).reads(index, View::Zmm);
        self.push_with(build, Source::Word(1 << 31), None);
        // Two displacements, as none of 2³¹ can be encoded.
        let [exact, half, whole] = std::array::from_fn(|_| self.general());
        for (from, to, disp) in [(base, exact, disp), (exact, half, 1 << 30), (half, whole, 1 << 30)] {
            Build::new(Code::Lea_r64_m).def(to, View::Qword).at(&Self::at(from, disp)).push(&mut self.code);
        }
        Ok(LanePlace { base: whole, index: moved, scale: 1, disp: 0 })
    }

    pub(super) fn gather(&mut self, inst: Inst, lanes: &LaneAddress, mask: Value) -> Result<(), CompileError> {
        let place = self.lane_place(lanes)?;
        // The machine uses the mask up; the allocator copies one that is needed later.
        let mask = self.lanes(mask)?;
        let (zeros, used) = (self.lanes_reg(), self.mask_reg());
        self.set_lanes(zeros, 0);
        let result = self.define(inst);
        // The index lives on behind the gather, so that the result cannot take its register.
        let operands = [
            Operand::reg_reuse_def(result, 1),
            Operand::reg_use(zeros),
            Operand::reg_reuse_def(used, 3),
            Operand::reg_use(mask),
            Operand::reg_use_at_end(place.base),
            Operand::reg_use_at_end(place.index),
        ];
        let gather = Gather { scale: place.scale, disp: place.disp };
        self.code.push(Kind::Sequence(Box::new(gather)), &operands);
        Ok(())
    }

    pub(super) fn scatter(&mut self, lanes: &LaneAddress, value: Value, mask: Value) -> Result<(), CompileError> {
        let value = self.lanes(value)?;
        let place = self.lane_place(lanes)?;
        // The machine uses the mask up; the allocator copies one that is needed later.
        let mask = self.lanes(mask)?;
        let used = self.mask_reg();
        let operands = [
            Operand::reg_reuse_def(used, 1),
            Operand::reg_use(mask),
            Operand::reg_use(value),
            Operand::reg_use(place.base),
            Operand::reg_use(place.index),
        ];
        let scatter = Scatter { scale: place.scale, disp: place.disp };
        self.code.push(Kind::Sequence(Box::new(scatter)), &operands);
        Ok(())
    }
}

fn memory(base: Register, index: Register, scale: u8, disp: i32) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(
        base,
        index,
        u32::from(scale),
        i64::from(disp),
        u32::from(disp != 0),
    )
}

/// Loads into operand 0, which holds zeros, under the mask 2, which is used up; base 4, index 5.
#[derive(Debug)]
struct Gather {
    scale: u8,
    disp: i32,
}

impl Expand for Gather {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let memory = memory(regs.gpr(4), regs.zmm(5), self.scale, self.disp);
        let gather = Instruction::with2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, regs.zmm(0), memory);
        asm.put_masked(regs.mask(2), false, gather);
    }
}

/// Stores operand 2 under the mask 0, which is used up; base 3, index 4.
#[derive(Debug)]
struct Scatter {
    scale: u8,
    disp: i32,
}

impl Expand for Scatter {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let memory = memory(regs.gpr(3), regs.zmm(4), self.scale, self.disp);
        let scatter = Instruction::with2(Code::EVEX_Vpscatterdd_vm32z_k1_zmm, memory, regs.zmm(2));
        asm.put_masked(regs.mask(0), false, scatter);
    }
}
