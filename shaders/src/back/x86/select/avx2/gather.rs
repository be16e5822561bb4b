//! Gathers, and scatters as a store for each lane.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand};
use regalloc2::Operand;

use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Expand, InstKind};
use super::super::lane_address::LaneAddressRegisters;
use super::super::subword::LaneStores;
use super::super::{Result, Select};
use super::Avx2;
use super::operand::RegisterPair;
use crate::ir::Width;
use crate::simd::{Inst, LaneAddress, Value};

impl Select<'_, Avx2> {
    pub(super) fn gather(&mut self, inst: Inst, lanes: &LaneAddress, mask: Value) -> Result {
        let place = self.lane_address(lanes)?;
        let mask = self.pair(mask)?;
        let result = self.gathered(place, mask);
        self.bind(inst, result);
        Ok(())
    }

    /// A word for each active lane, 0 for the others.
    pub(super) fn gathered(&mut self, place: LaneAddressRegisters<Avx2>, mask: RegisterPair) -> RegisterPair {
        let LaneAddressRegisters { base, index, scale, disp } = place;
        std::array::from_fn(|half| {
            let (result, used) = (self.lanes_reg(), self.lanes_reg());
            // The instruction clears the mask; the allocator copies one that is used later. All its registers must
            // differ.
            let operands = [
                Operand::reg_def_at_start(result),
                Operand::reg_reuse_def(used, 2),
                Operand::reg_use(mask[half]),
                Operand::reg_use_at_end(base),
                Operand::reg_use_at_end(index[half]),
            ];
            self.code.push(InstKind::Sequence(Box::new(Gather { scale, disp })), &operands);
            result
        })
    }

    pub(super) fn scatter(&mut self, lanes: &LaneAddress, value: Value, mask: Value) -> Result {
        let bits = self.mask_bits(mask)?;
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let halves = [self.pair(lanes.index)?, self.pair(value)?];
        let (scatter, operands) = self.lane_stores(Width::Word, (base, disp, lanes.scale), halves, bits);
        self.code.push(InstKind::Sequence(Box::new(Scatter(scatter))), &operands);
        Ok(())
    }
}

/// Loads into operand 0 under the mask 1, which it clears; base 3, index 4.
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

/// A store for each lane, in order: without a loop if all lanes are active. Indices and words are extracted to general
/// registers.
#[derive(Debug)]
struct Scatter(LaneStores);

impl Expand for Scatter {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(self.0.bits), 0xffff));
        asm.jump_if(ConditionCode::ne, cold);
        let [indices, words] = self.0.parts;
        let [first, second, index] = self.0.temps;
        for lane128 in 0..4 {
            let places = indices.lane128(regs, asm, lane128);
            let word = words.lane128(regs, asm, lane128);
            indices.split(asm, places, [regs.gpr(first), regs.gpr(second)]);
            for (pair, number) in [(first, 0), (second, 2)] {
                asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(index), regs.gpr32(pair)));
                asm.put(Instruction::with2(Code::Shr_rm64_imm8, regs.gpr(pair), 32));
                for (index, number) in [(index, number), (pair, number + 1)] {
                    let place = self.0.at(regs, regs.gpr(index));
                    asm.put(match number {
                        0 => Instruction::with2(Code::VEX_Vmovd_rm32_xmm, place, word),
                        _ => Instruction::with3(Code::VEX_Vpextrd_rm32_xmm_imm8, place, word, number),
                    });
                }
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.0.hot(regs, asm);
    }
}
