//! Stores of one word for all lanes.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::Operand;
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Expand, Kind, View};
use super::super::Select;
use super::super::memory::Side;
use crate::simd::{Address, Type, Value};

impl Select<'_> {
    /// Stores the word of the last lane that is on, if one is and the place is valid.
    pub(super) fn store_uniform(&mut self, address: &Address, value: Value, mask: Value) -> Result<(), CompileError> {
        let mask = if self.is_all(mask) { None } else { Some(self.reg(mask)?) };
        let scalar = self.kernel.ty(value) == Type::S32;
        let value = self.reg(value)?;
        let checked = self.address(address)?;
        let (word, moved) = (self.general(), self.lanes_reg());
        let mut operands: SmallVec<[Operand; 8]> = SmallVec::new();
        let mut slot = |operand| {
            operands.push(operand);
            operands.len() as u8 - 1
        };
        let store = Store {
            value: (slot(Operand::reg_use(value)), scalar),
            mask: mask.map(|mask| slot(Operand::reg_use(mask))),
            base: slot(Operand::reg_use(checked.place.base)),
            index: checked.place.index.map(|index| slot(Operand::reg_use(index))),
            scale: checked.place.scale,
            disp: checked.place.disp,
            bounds: checked.bounds.map(|(index, limit)| {
                [index, limit].map(|side| match side {
                    Side::Reg(reg) => Ok(slot(Operand::reg_use(reg))),
                    Side::Constant(value) => Err(value),
                })
            }),
            view: checked.view,
            word: slot(Operand::reg_temp(word)),
            moved: slot(Operand::reg_temp(moved)),
        };
        self.code.push(Kind::Sequence(Box::new(store)), &operands);
        Ok(())
    }
}

/// Slots of the operands.
#[derive(Debug)]
struct Store {
    /// And whether it is a scalar.
    value: (u8, bool),
    mask: Option<u8>,
    base: u8,
    index: Option<u8>,
    scale: u8,
    disp: i32,
    /// Index and limit: slots or constants.
    bounds: Option<[Result<u8, i32>; 2]>,
    view: View,
    word: u8,
    moved: u8,
}

impl Expand for Store {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let done = asm.label();
        let word = regs.gpr32(self.word);
        if let Some(mask) = self.mask {
            asm.put(Instruction::with2(Code::VEX_Kmovw_r32_kr, word, regs.mask(mask)));
            asm.put(Instruction::with2(Code::Test_rm32_r32, word, word));
            asm.jump_if(ConditionCode::e, done);
        }
        if let Some([index, limit]) = self.bounds {
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
                (Err(_), Err(_)) => {
                    asm.bind(done);
                    return;
                }
            };
            asm.jump_if(outside, done);
        }
        let value = self.word_to_store(regs, asm);
        let index = self.index.map_or(Register::None, |index| regs.gpr(index));
        let size = u32::from(self.disp != 0);
        let base = regs.gpr(self.base);
        let scale = u32::from(self.scale);
        let memory = MemoryOperand::with_base_index_scale_displ_size(base, index, scale, i64::from(self.disp), size);
        asm.put(Instruction::with2(Code::Mov_rm32_r32, memory, value));
        asm.bind(done);
    }
}

impl Store {
    /// The register with the word; `word` holds the mask if there is one.
    fn word_to_store(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) -> Register {
        let (value, scalar) = self.value;
        if scalar {
            return regs.gpr32(value);
        }
        let (word, moved) = (regs.gpr32(self.word), self.moved);
        if self.mask.is_some() {
            asm.put(Instruction::with2(Code::Bsr_r32_rm32, word, word));
            asm.put(Instruction::with2(Code::EVEX_Vmovd_xmm_rm32, regs.xmm(moved), word));
            let permute = Code::EVEX_Vpermd_zmm_k1z_zmm_zmmm512b32;
            asm.put(Instruction::with3(permute, regs.zmm(moved), regs.zmm(moved), regs.zmm(value)));
            asm.put(Instruction::with2(Code::EVEX_Vmovd_rm32_xmm, word, regs.xmm(moved)));
        } else {
            let quarter = Code::EVEX_Vextracti32x4_xmmm128_k1z_zmm_imm8;
            asm.put(Instruction::with3(quarter, regs.xmm(moved), regs.zmm(value), 3));
            asm.put(Instruction::with3(Code::EVEX_Vpextrd_rm32_xmm_imm8, word, regs.xmm(moved), 3));
        }
        word
    }
}
