//! Stores of one word for all lanes.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::Operand;
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::encode::{Assembler, Label, Regs};
use super::super::super::vcode::{Build, Expand, Kind, View};
use super::super::memory::Side;
use super::Halves;
use crate::simd::{Address, Type, Value};

impl Halves<'_, '_> {
    /// Stores the word of the last lane that is on, if one is and the place is valid.
    pub(super) fn store_uniform(&mut self, address: &Address, value: Value, mask: Value) -> Result<(), CompileError> {
        let bits = if self.is_all(mask) { None } else { Some(self.mask_bits(mask)?) };
        let word = if self.kernel.ty(value) == Type::S32 {
            self.reg(value)?
        } else {
            let vector = self.pair(value)?;
            let lane = self.general();
            match bits {
                // Any lane if none is on.
                Some(bits) => {
                    let build = Build::new(Code::Bsr_r32_rm32).modify(lane, bits, View::Dword);
                    build.again(0).push(&mut self.code);
                }
                None => self.set(lane, 15),
            }
            self.lane_of(vector, lane)
        };
        let checked = self.address(address)?;
        let mut operands: SmallVec<[Operand; 8]> = SmallVec::new();
        let mut slot = |reg| {
            operands.push(Operand::reg_use(reg));
            operands.len() as u8 - 1
        };
        let store = Store {
            word: slot(word),
            mask: bits.map(&mut slot),
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
        };
        self.code.push(Kind::Sequence(Box::new(store)), &operands);
        Ok(())
    }
}

/// Slots of the operands.
#[derive(Debug)]
struct Store {
    word: u8,
    /// Bits of the mask.
    mask: Option<u8>,
    base: u8,
    index: Option<u8>,
    scale: u8,
    disp: i32,
    /// Index and limit: slots or constants.
    bounds: Option<[Result<u8, i32>; 2]>,
    view: View,
}

impl Expand for Store {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let done = asm.label();
        if let Some(mask) = self.mask {
            asm.put(Instruction::with2(Code::Test_rm32_r32, regs.gpr32(mask), regs.gpr32(mask)));
            asm.jump_if(ConditionCode::e, done);
        }
        if let Some(bounds) = self.bounds {
            self.check(bounds, regs, asm, done);
        }
        let index = self.index.map_or(Register::None, |index| regs.gpr(index));
        let size = u32::from(self.disp != 0);
        let base = regs.gpr(self.base);
        let scale = u32::from(self.scale);
        let memory = MemoryOperand::with_base_index_scale_displ_size(base, index, scale, i64::from(self.disp), size);
        asm.put(Instruction::with2(Code::Mov_rm32_r32, memory, regs.gpr32(self.word)));
        asm.bind(done);
    }
}

impl Store {
    /// Leads to `done` unless the index is below the limit.
    fn check(&self, [index, limit]: [Result<u8, i32>; 2], regs: Regs<'_>, asm: &mut Assembler<'_>, done: Label) {
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
            // Constants that are in bounds have no check.
            (Err(_), Err(_)) => return asm.jump(done),
        };
        asm.jump_if(outside, done);
    }
}
