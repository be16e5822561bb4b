//! Stores of one word for all lanes.

use iced_x86::{Code, ConditionCode, Instruction};
use regalloc2::Operand;

use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Build, Expand, InstKind, View};
use super::super::registers::OperandSlots;
use super::super::subword::put;
use super::super::uniform::UniformPlace;
use super::super::{Result, Select};
use super::Avx2;
use crate::ir::Width;
use crate::simd::{Address, Type, Value};

impl Select<'_, Avx2> {
    /// Stores the word of the last active lane, if there is one and the address is in bounds.
    pub(super) fn store_uniform(&mut self, width: Width, address: &Address, value: Value, mask: Value) -> Result {
        let bits = if self.is_all(mask) { None } else { Some(self.mask_bits(mask)?) };
        let word = if self.kernel.ty(value) == Type::S32 {
            self.reg(value)?
        } else {
            let vector = self.pair(value)?;
            let lane = self.general();
            match bits {
                // Unspecified if no lane is active.
                Some(bits) => {
                    let build = Build::new(Code::Bsr_r32_rm32).modify(lane, bits, View::Dword);
                    build.again(0).push(&mut self.code);
                }
                None => self.set(lane, 15),
            }
            self.lane_of(vector, lane)
        };
        let checked = self.address(address)?;
        let mut slots = OperandSlots::default();
        let store = UniformStore {
            width,
            word: slots.add(Operand::reg_use(word)),
            mask: bits.map(|bits| slots.add(Operand::reg_use(bits))),
            place: UniformPlace::new(&checked, &mut slots),
        };
        self.code.push(InstKind::Sequence(Box::new(store)), &slots);
        Ok(())
    }
}

/// Slots of the operands.
#[derive(Debug)]
struct UniformStore {
    width: Width,
    word: u8,
    /// Bits of the mask.
    mask: Option<u8>,
    place: UniformPlace,
}

impl Expand for UniformStore {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let done = asm.label();
        if let Some(mask) = self.mask {
            asm.put(Instruction::with2(Code::Test_rm32_r32, regs.gpr32(mask), regs.gpr32(mask)));
            asm.jump_if(ConditionCode::e, done);
        }
        if self.place.check(regs, asm, done) {
            put(asm, self.width, self.place.memory(regs), regs.gpr(self.word));
        }
        asm.bind(done);
    }
}
