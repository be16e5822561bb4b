//! Contiguous words for each lane: the shuffles after the loads of [`gather_elements`](super::super::gather_elements).

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand};

use super::super::super::Isa;
use super::super::super::atomic::INDEX_AT;
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::Expand;
use super::super::elements::transpose;
use super::super::gather_elements::LaneWordSlots;

const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
const XOR: Code = Code::VEX_Vpxor_ymm_ymm_ymmm256;
const OR: Code = Code::VEX_Vpor_ymm_ymm_ymmm256;
const COPY: Code = Code::VEX_Vmovdqa_ymm_ymmm256;
const TEST: Code = Code::VEX_Vptest_ymm_ymmm256;
/// Shuffles the first or the second of each lane's two words.
const SHUFFLE: Code = Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8;

#[derive(Debug)]
pub(super) struct GatherElements(pub LaneWordSlots);

impl Expand for GatherElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        let words = &self.0;
        words.check(regs, asm, words.vectors, cold);
        // Inactive lanes load word 0, which exists, as some lane is active.
        let temps = [regs.ymm(words.vectors), regs.ymm(words.vectors + 1)];
        let active = regs.ymm(words.mask);
        asm.put(Instruction::with3(AND, temps[0], active, regs.ymm(words.index)));
        let indices = asm.scratch(INDEX_AT, false);
        asm.put(Instruction::with2(Code::VEX_Vmovdqu_ymmm256_ymm, indices, temps[0]));
        if words.count == 2 {
            (0..2).for_each(|number| words.load_pairs(regs, asm, number));
            let [even, odd] = [regs.ymm(0), regs.ymm(1)];
            asm.put(Instruction::with4(SHUFFLE, temps[0], even, odd, 0x88));
            asm.put(Instruction::with4(SHUFFLE, odd, even, odd, 0xdd));
            asm.put(Instruction::with3(AND, even, temps[0], active));
            asm.put(Instruction::with3(AND, odd, odd, active));
            return;
        }
        (0..4).for_each(|number| words.load_quads(regs, asm, number));
        let [a, b, c, d] = [0, 1, 2, 3].map(|number| regs.ymm(number));
        transpose(Isa::Avx2, asm, [a, b, c, d], temps);
        // Zeroes inactive lanes.
        for word in [a, b, c, d] {
            asm.put(Instruction::with3(AND, word, word, active));
        }
    }

    /// A gather for each word, or nothing if all lanes are inactive.
    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let words = &self.0;
        let [index, used] = [regs.ymm(words.vectors), regs.ymm(words.vectors + 1)];
        let none = asm.label();
        let masks = (0..words.count).map(|number| regs.ymm(words.mask + number));
        for word in 0..words.count {
            let word = regs.ymm(word);
            asm.put(Instruction::with3(XOR, word, word, word));
        }
        asm.put(Instruction::with3(XOR, used, used, used));
        masks.for_each(|mask| asm.put(Instruction::with3(OR, used, used, mask)));
        asm.put(Instruction::with2(TEST, used, used));
        asm.jump_if(ConditionCode::e, none);
        asm.put(Instruction::with2(COPY, index, regs.ymm(words.index)));
        for number in 0..words.count {
            asm.put(Instruction::with2(COPY, used, regs.ymm(words.mask + number)));
            let (base, disp) = (regs.gpr(words.base), i64::from(words.disp));
            let memory = MemoryOperand::with_base_index_scale_displ_size(base, index, 4, disp, 1);
            let gather = Code::VEX_Vpgatherdd_ymm_vm32y_ymm;
            asm.put(Instruction::with3(gather, regs.ymm(number), memory, used));
            let one = asm.constant(words.one, false);
            asm.put(Instruction::with3(Code::VEX_Vpaddd_ymm_ymm_ymmm256, index, index, one));
        }
        asm.bind(none);
    }
}
