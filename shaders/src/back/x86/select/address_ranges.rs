//! Address-range lookup (`buffer_at`): binary search for an address in the sorted slices that follow the descriptors.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand};
use regalloc2::Operand;

use super::memory::{LEN_AT, SLICE_BYTES};
use super::{Result, Select, VectorIsa};
use crate::back::x86::CompileError;
use crate::back::x86::call::offset;
use crate::back::x86::encode::{Assembler, Regs};
use crate::back::x86::vcode::{Expand, InstKind};
use crate::simd::{Inst, Value};

const SLICE: i32 = SLICE_BYTES as i32;
const SHIFT: u32 = SLICE_BYTES.trailing_zeros();

impl<V: VectorIsa> Select<'_, V> {
    /// `buffer_at`, with the semantics of `abi::address_range_at`.
    pub(super) fn buffer_at(&mut self, inst: Inst, low: Value, high: Value) -> Result {
        let [low, high] = [self.reg(low)?, self.reg(high)?];
        let temps: [_; 4] = std::array::from_fn(|_| self.general());
        let result = self.define(inst);
        let mut operands = vec![Operand::reg_def(result)];
        operands.extend([self.context, low, high].map(Operand::reg_use));
        operands.extend(temps.map(Operand::reg_temp));
        let Ok(start) = i32::try_from(u64::from(self.kernel.descriptors) << SHIFT) else {
            return Err(CompileError::TooLarge);
        };
        let search = RangeSearch { start };
        self.code.push(InstKind::Sequence(Box::new(search)), &operands);
        Ok(())
    }
}

/// Operand 0 becomes the number of the buffer that contains the address in operands 2 and 3, or -1; operand 1 is the
/// context.
#[derive(Debug)]
struct RangeSearch {
    /// Size of the descriptors' slices in bytes.
    start: i32,
}

impl Expand for RangeSearch {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [first, context] = [regs.gpr(0), regs.gpr(1)];
        let [address, list, last, middle] = [4, 5, 6, 7].map(|slot| regs.gpr(slot));
        let field = |at| MemoryOperand::with_base_displ(context, i64::from(at));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(4), regs.gpr32(3)));
        asm.put(Instruction::with2(Code::Shl_rm64_imm8, address, 32));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(7), regs.gpr32(2)));
        asm.put(Instruction::with2(Code::Or_r64_rm64, address, middle));
        asm.put(Instruction::with2(Code::Mov_r64_rm64, list, field(offset::BUFFERS)));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(6), field(offset::BUFFER_COUNT)));
        asm.put(Instruction::with2(Code::Shl_rm64_imm8, last, SHIFT));
        // The result may share a register with the operands, which are dead from here on.
        asm.put(Instruction::with2(Code::Mov_r32_imm32, regs.gpr32(0), self.start));
        let [next, before, found, none, done] = std::array::from_fn(|_| asm.label());
        // In byte offsets from the list's beginning: slices below `first` begin at or below the address, those from
        // `last` on above it.
        asm.bind(next);
        asm.put(Instruction::with2(Code::Cmp_r64_rm64, first, last));
        asm.jump_if(ConditionCode::ae, found);
        asm.put(Instruction::with2(Code::Lea_r64_m, middle, MemoryOperand::with_base_index(first, last)));
        asm.put(Instruction::with2(Code::Shr_rm64_1, middle, 1));
        asm.put(Instruction::with2(Code::And_rm64_imm8, middle, -SLICE));
        let slice = |number, at: i32| MemoryOperand::with_base_index_scale_displ_size(list, number, 1, at.into(), 1);
        asm.put(Instruction::with2(Code::Cmp_r64_rm64, address, slice(middle, 0)));
        asm.jump_if(ConditionCode::b, before);
        asm.put(Instruction::with2(Code::Lea_r64_m, first, MemoryOperand::with_base_displ(middle, SLICE.into())));
        asm.jump(next);
        asm.bind(before);
        asm.put(Instruction::with2(Code::Mov_r64_rm64, last, middle));
        asm.jump(next);
        asm.bind(found);
        asm.put(Instruction::with2(Code::Sub_rm64_imm8, first, SLICE));
        asm.put(Instruction::with2(Code::Cmp_rm64_imm32, first, self.start));
        asm.jump_if(ConditionCode::l, none);
        asm.put(Instruction::with2(Code::Sub_r64_rm64, address, slice(first, 0)));
        asm.put(Instruction::with2(Code::Cmp_r64_rm64, address, slice(first, LEN_AT)));
        asm.jump_if(ConditionCode::b, done);
        asm.bind(none);
        asm.put(Instruction::with2(Code::Mov_rm64_imm32, first, -SLICE));
        asm.bind(done);
        asm.put(Instruction::with2(Code::Sar_rm32_imm8, regs.gpr32(0), SHIFT));
    }
}
