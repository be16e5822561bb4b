//! Gathers and scatters of words.

use iced_x86::{Code, Instruction, MemoryOperand, Register};
use regalloc2::Operand;

use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Expand, InstKind};
use super::super::{Result, Select};
use super::Avx512;
use crate::simd::{Inst, LaneAddress, Value};

impl Select<'_, Avx512> {
    pub(super) fn gather(&mut self, inst: Inst, lanes: &LaneAddress, mask: Value) -> Result {
        let place = self.lane_address(lanes)?;
        // The instruction clears the mask; the allocator copies one that is used later.
        let mask = self.lanes(mask)?;
        let (zeros, used) = (self.lanes_reg(), self.mask_reg());
        self.set_lanes(zeros, 0);
        let result = self.define_lanes(inst);
        // The index lives until the end of the gather, so that the result cannot reuse its register.
        let operands = [
            Operand::reg_reuse_def(result, 1),
            Operand::reg_use(zeros),
            Operand::reg_reuse_def(used, 3),
            Operand::reg_use(mask),
            Operand::reg_use_at_end(place.base),
            Operand::reg_use_at_end(place.index[0]),
        ];
        let gather = Gather { scale: place.scale, disp: place.disp };
        self.code.push(InstKind::Sequence(Box::new(gather)), &operands);
        Ok(())
    }

    pub(super) fn scatter(&mut self, lanes: &LaneAddress, value: Value, mask: Value) -> Result {
        let value = self.lanes(value)?;
        let place = self.lane_address(lanes)?;
        // The instruction clears the mask; the allocator copies one that is used later.
        let mask = self.lanes(mask)?;
        let used = self.mask_reg();
        let operands = [
            Operand::reg_reuse_def(used, 1),
            Operand::reg_use(mask),
            Operand::reg_use(value),
            Operand::reg_use(place.base),
            Operand::reg_use(place.index[0]),
        ];
        let scatter = Scatter { scale: place.scale, disp: place.disp };
        self.code.push(InstKind::Sequence(Box::new(scatter)), &operands);
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

/// Loads into operand 0, which holds zeros, under the mask 2, which it clears; base 4, index 5.
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

/// Stores operand 2 under the mask 0, which it clears; base 3, index 4.
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
