//! A word for each lane, anywhere: gathers, and a loop over lanes where they store.

use iced_x86::{Code, Instruction, MemoryOperand};
use regalloc2::{Operand, VReg};

use super::super::super::CompileError;
use super::super::super::atomic::Atomic;
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Build, Expand, Kind, View};
use super::Halves;
use super::operand::Pair;
use crate::ir::AtomicOp;
use crate::simd::{Inst, LaneAddress, Value};

/// Registers of an address for each lane, in the form the machine takes: the index is signed there.
#[derive(Clone, Copy, Debug)]
pub(super) struct LanePlace {
    pub base: VReg,
    pub index: Pair,
    pub scale: u8,
    pub disp: i32,
}

impl Halves<'_, '_> {
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
            Build::new(Code::Lea_r64_m).def(to, View::Qword).at(&Self::place(from, disp)).push(&mut self.code);
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
        let atomic = Atomic { op: AtomicOp::Store, lock: false, sequential: false, result: false };
        self.lane_by_lane(atomic, lanes, [Some(value), None], bits)?;
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
