//! A few words next to each other for each lane: one load of them all for each lane, and shuffles that bring word `k` of
//! every lane together. The machine's gather takes five times as long for each word.
//!
//! Each half is done for itself, as one of them is often off. Quarter `q` of a register holds words of lanes `4q` to
//! `4q + 3`: of four words those of one lane, of two those of two.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand};
use regalloc2::{Operand, RegClass};
use smallvec::SmallVec;

use super::super::super::atomic::INDEX_AT;
use super::super::super::encode::{Assembler, Label, Regs};
use super::super::super::pool::Constant;
use super::super::super::vcode::{Expand, Kind};
use super::super::super::{CompileError, Isa};
use super::super::elements::transpose;
use super::Halves;
use super::operand::Pair;
use crate::simd::{Inst, Value};

const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
const XOR: Code = Code::VEX_Vpxor_ymm_ymm_ymmm256;
const OR: Code = Code::VEX_Vpor_ymm_ymm_ymmm256;
const COPY: Code = Code::VEX_Vmovdqa_ymm_ymmm256;
const TEST: Code = Code::VEX_Vptest_ymm_ymmm256;
const INSERT: Code = Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8;
/// Of two words of each lane the first, or the second.
const SHUFFLE: Code = Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8;

impl Halves<'_, '_> {
    pub(super) fn gather_elements(
        &mut self,
        inst: Inst,
        base: Value,
        index: Value,
        masks: &[Value],
    ) -> Result<(), CompileError> {
        let count = masks.len() as u8;
        let (base, disp) = self.base(base, 0)?;
        let index = self.pair(index)?;
        let mut among: SmallVec<[Pair; 4]> = SmallVec::new();
        for &mask in masks {
            among.push(self.pair(mask)?);
        }
        let results: SmallVec<[Pair; 4]> = masks.iter().map(|_| [self.lanes_reg(), self.lanes_reg()]).collect();
        let one = self.code.pool.vector([1; 16]);
        self.code.scratch = true;
        for half in 0..2 {
            let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
            operands.extend(results.iter().map(|result| Operand::reg_def_at_start(result[half])));
            let mut slot = |operand| {
                operands.push(operand);
                operands.len() as u8 - 1
            };
            let mask = count;
            among.iter().for_each(|mask| _ = slot(Operand::reg_use(mask[half])));
            let (base, index) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(index[half])));
            let temps = [RegClass::Float, RegClass::Int].map(|class| {
                let [first, _] = [0, 1].map(|_| slot(Operand::reg_temp(self.code.vreg(class))));
                first
            });
            let [vectors, generals] = temps;
            let sequence = GatherElements { count, mask, base, disp, index, vectors, generals, one };
            self.code.push(Kind::Sequence(Box::new(sequence)), &operands);
        }
        for (number, &result) in results.iter().enumerate() {
            self.bind_nth(inst, number, result);
        }
        Ok(())
    }
}

/// The first operands become the words. Fields are slots, those of temporaries the first of two.
#[derive(Debug)]
struct GatherElements {
    count: u8,
    /// The first word's; the others' follow.
    mask: u8,
    base: u8,
    disp: i32,
    index: u8,
    vectors: u8,
    generals: u8,
    one: Constant,
}

impl GatherElements {
    /// Leads to `cold` unless lanes are on, and for all words the same ones.
    fn check(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, cold: Label) {
        let first = regs.ymm(self.mask);
        asm.put(Instruction::with2(TEST, first, first));
        asm.jump_if(ConditionCode::e, cold);
        let [differ, more] = [regs.ymm(self.vectors), regs.ymm(self.vectors + 1)];
        let mut others = (1..self.count).map(|word| regs.ymm(self.mask + word)).filter(|&mask| mask != first);
        let Some(other) = others.next() else { return };
        asm.put(Instruction::with3(XOR, differ, first, other));
        for other in others {
            asm.put(Instruction::with3(XOR, more, first, other));
            asm.put(Instruction::with3(OR, differ, differ, more));
        }
        asm.put(Instruction::with2(TEST, differ, differ));
        asm.jump_if(ConditionCode::ne, cold);
    }

    /// The words of a lane, whose index is brought from the scratch area. Two registers by turns, as lanes do not wait for
    /// each other.
    fn lane(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, lane: u8) -> MemoryOperand {
        let index = self.generals + lane % 2;
        let kept = asm.scratch(INDEX_AT + 4 * i32::from(lane), false);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(index), kept));
        let (base, index, disp) = (regs.gpr(self.base), regs.gpr(index), i64::from(self.disp));
        MemoryOperand::with_base_index_scale_displ_size(base, index, 4, disp, 1)
    }

    /// Fills result `number` with four words of lanes `number` and `number + 4`.
    fn load_quads(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) {
        let to = regs.ymm(number);
        let first = self.lane(regs, asm, number);
        asm.put(Instruction::with2(Code::VEX_Vmovdqu_xmm_xmmm128, regs.xmm(number), first));
        let second = self.lane(regs, asm, number + 4);
        asm.put(Instruction::with4(INSERT, to, to, second, 1));
    }

    /// Fills result `number` with two words each of lanes `2 * number` and the next, and of those four on.
    fn load_pairs(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) {
        let part = regs.xmm(self.vectors);
        for (to, lane) in [(regs.xmm(number), 2 * number), (part, 2 * number + 4)] {
            let first = self.lane(regs, asm, lane);
            asm.put(Instruction::with2(Code::VEX_Vmovq_xmm_xmmm64, to, first));
            let second = self.lane(regs, asm, lane + 1);
            asm.put(Instruction::with3(Code::VEX_Vmovhps_xmm_xmm_m64, to, to, second));
        }
        asm.put(Instruction::with4(INSERT, regs.ymm(number), regs.ymm(number), part, 1));
    }
}

impl Expand for GatherElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        self.check(regs, asm, cold);
        // Lanes that are off have word 0, which is there, as some lane is on.
        let temps = [regs.ymm(self.vectors), regs.ymm(self.vectors + 1)];
        let on = regs.ymm(self.mask);
        asm.put(Instruction::with3(AND, temps[0], on, regs.ymm(self.index)));
        let indices = asm.scratch(INDEX_AT, false);
        asm.put(Instruction::with2(Code::VEX_Vmovdqu_ymmm256_ymm, indices, temps[0]));
        if self.count == 2 {
            (0..2).for_each(|number| self.load_pairs(regs, asm, number));
            let [even, odd] = [regs.ymm(0), regs.ymm(1)];
            asm.put(Instruction::with4(SHUFFLE, temps[0], even, odd, 0x88));
            asm.put(Instruction::with4(SHUFFLE, odd, even, odd, 0xdd));
            asm.put(Instruction::with3(AND, even, temps[0], on));
            asm.put(Instruction::with3(AND, odd, odd, on));
            return;
        }
        (0..4).for_each(|number| self.load_quads(regs, asm, number));
        let [a, b, c, d] = [0, 1, 2, 3].map(|number| regs.ymm(number));
        transpose(Isa::Avx2, asm, [a, b, c, d], temps);
        // In lanes that are off, that is nobody's.
        for word in [a, b, c, d] {
            asm.put(Instruction::with3(AND, word, word, on));
        }
    }

    /// A gather for each word, or nothing where all lanes are off.
    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [index, used] = [regs.ymm(self.vectors), regs.ymm(self.vectors + 1)];
        let none = asm.label();
        let masks = (0..self.count).map(|number| regs.ymm(self.mask + number));
        for word in 0..self.count {
            let word = regs.ymm(word);
            asm.put(Instruction::with3(XOR, word, word, word));
        }
        asm.put(Instruction::with3(XOR, used, used, used));
        masks.for_each(|mask| asm.put(Instruction::with3(OR, used, used, mask)));
        asm.put(Instruction::with2(TEST, used, used));
        asm.jump_if(ConditionCode::e, none);
        asm.put(Instruction::with2(COPY, index, regs.ymm(self.index)));
        for number in 0..self.count {
            asm.put(Instruction::with2(COPY, used, regs.ymm(self.mask + number)));
            let (base, disp) = (regs.gpr(self.base), i64::from(self.disp));
            let memory = MemoryOperand::with_base_index_scale_displ_size(base, index, 4, disp, 1);
            let gather = Code::VEX_Vpgatherdd_ymm_vm32y_ymm;
            asm.put(Instruction::with3(gather, regs.ymm(number), memory, used));
            let one = asm.constant(self.one, false);
            asm.put(Instruction::with3(Code::VEX_Vpaddd_ymm_ymm_ymmm256, index, index, one));
        }
        asm.bind(none);
    }
}
