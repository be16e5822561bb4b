//! The address of a store of one word for all lanes.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::Operand;

use super::super::encode::{Assembler, Label, Regs};
use super::super::vcode::View;
use super::memory::{CheckedAddress, Side};
use super::registers::OperandSlots;

/// A checked address with slots for its registers.
#[derive(Debug)]
pub(super) struct UniformPlace {
    base: u8,
    index: Option<u8>,
    scale: u8,
    disp: i32,
    /// Index and limit: slots or constants.
    bounds: Option<[Result<u8, i32>; 2]>,
    view: View,
}

impl UniformPlace {
    /// Adds operands for the address.
    pub(super) fn new(checked: &CheckedAddress, slots: &mut OperandSlots) -> Self {
        let mut slot = |reg| slots.add(Operand::reg_use(reg));
        Self {
            base: slot(checked.place.base),
            index: checked.place.index.map(&mut slot),
            scale: checked.place.scale,
            disp: checked.place.disp,
            bounds: checked.bounds.map(|sides| {
                <[Side; 2]>::from(sides).map(|side| match side {
                    Side::Reg(reg) => Ok(slot(reg)),
                    Side::Constant(value) => Err(value),
                })
            }),
            view: checked.view,
        }
    }

    /// Jumps to `done` unless the index is below the limit; returns whether it can be.
    pub(super) fn check(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, done: Label) -> bool {
        let Some([index, limit]) = self.bounds else { return true };
        let (by_reg, by_imm) = match self.view {
            View::Dword => (Code::Cmp_r32_rm32, Code::Cmp_rm32_imm32),
            _ => (Code::Cmp_r64_rm64, Code::Cmp_rm64_imm32),
        };
        let reg = |slot| regs.view(slot, self.view);
        let outside = match (index, limit) {
            (Ok(index), Ok(limit)) => {
                asm.put(Instruction::with2(by_reg, reg(index), reg(limit)));
                ConditionCode::ae
            }
            (Ok(index), Err(limit)) => {
                asm.put(Instruction::with2(by_imm, reg(index), limit));
                ConditionCode::ae
            }
            (Err(index), Ok(limit)) => {
                asm.put(Instruction::with2(by_imm, reg(limit), index));
                ConditionCode::be
            }
            // Constants that are in bounds have no check; these are out of bounds, so that nothing is to be done.
            (Err(_), Err(_)) => return false,
        };
        asm.jump_if(outside, done);
        true
    }

    pub(super) fn memory(&self, regs: Regs<'_>) -> MemoryOperand {
        let index = self.index.map_or(Register::None, |index| regs.gpr(index));
        let size = u32::from(self.disp != 0);
        let (base, scale) = (regs.gpr(self.base), u32::from(self.scale));
        MemoryOperand::with_base_index_scale_displ_size(base, index, scale, i64::from(self.disp), size)
    }
}
