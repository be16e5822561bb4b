//! Contiguous words for each lane: the shuffles after the loads of [`gather_elements`](super::super::gather_elements).

use iced_x86::{Code, Instruction, MemoryOperand};

use super::super::super::atomic::INDEX_AT;
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::Expand;
use super::super::gather_elements::LaneWordSlots;

const STORE: Code = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
/// Shuffles two words of each 128-bit lane of two vectors: of pairs the first or the second words, or one of the pairs.
const SHUFFLE: Code = Code::EVEX_Vshufps_zmm_k1z_zmm_zmmm512b32_imm8;
const FIRSTS: i32 = 0x88;
const SECONDS: i32 = 0xdd;
const LOW_PAIRS: i32 = 0x44;
const HIGH_PAIRS: i32 = 0xee;
/// Interleaves words of two vectors, from the low or the high halves of each 128-bit lane.
const LOW_WORDS: Code = Code::EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32;
const HIGH_WORDS: Code = Code::EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32;

#[derive(Debug)]
pub(super) struct GatherElements(pub LaneWordSlots);

impl GatherElements {
    /// The slot of the first of two temporary mask registers.
    fn bits(&self) -> u8 {
        self.0.vectors + 4
    }
}

impl Expand for GatherElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        let words = &self.0;
        let active = regs.mask(words.mask);
        words.check(regs, asm, self.bits(), cold);
        // Inactive lanes load word 0, which exists, as some lane is active.
        let temps = [regs.zmm(words.vectors), regs.zmm(words.vectors + 1)];
        let kept = Instruction::with2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, temps[0], regs.zmm(words.index));
        asm.put_masked(active, true, kept);
        let indices = asm.scratch(INDEX_AT, false);
        asm.put(Instruction::with2(STORE, indices, temps[0]));
        // Inactive lanes are zeroed by the last instructions.
        if words.count == 2 {
            (0..2).for_each(|number| words.load_pairs(regs, asm, number));
            let [even, odd] = [regs.zmm(0), regs.zmm(1)];
            asm.put(Instruction::with4(SHUFFLE, temps[0], even, odd, SECONDS));
            asm.put_masked(active, true, Instruction::with4(SHUFFLE, even, even, odd, FIRSTS));
            let kept = Instruction::with2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, odd, temps[0]);
            asm.put_masked(active, true, kept);
        } else {
            (0..4).for_each(|number| words.load_quads(regs, asm, number));
            let [a, b, c, d] = [0, 1, 2, 3].map(|number| regs.zmm(number));
            let [low, high] = temps;
            for (code, to, [from, other]) in
                [(LOW_WORDS, low, [a, b]), (HIGH_WORDS, high, [a, b]), (LOW_WORDS, a, [c, d]), (HIGH_WORDS, b, [c, d])]
            {
                asm.put(Instruction::with3(code, to, from, other));
            }
            for (pairs, to, [from, other]) in [
                (HIGH_PAIRS, d, [high, b]),
                (LOW_PAIRS, c, [high, b]),
                (HIGH_PAIRS, b, [low, a]),
                (LOW_PAIRS, a, [low, a]),
            ] {
                asm.put_masked(active, true, Instruction::with4(SHUFFLE, to, from, other, pairs));
            }
        }
    }

    /// A gather for each word.
    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let words = &self.0;
        let index = regs.zmm(words.vectors);
        asm.put(Instruction::with2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, index, regs.zmm(words.index)));
        for number in 0..words.count {
            let (word, used) = (regs.zmm(number), regs.mask(self.bits()));
            asm.put(Instruction::with3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, word, word, word));
            asm.put(Instruction::with2(Code::VEX_Kmovw_kr_km16, used, regs.mask(words.mask + number)));
            let (base, disp) = (regs.gpr(words.base), i64::from(words.disp));
            let memory = MemoryOperand::with_base_index_scale_displ_size(base, index, 4, disp, 1);
            asm.put_masked(used, false, Instruction::with2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, word, memory));
            let one = asm.constant(words.one, true);
            asm.put(Instruction::with3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, index, index, one));
        }
    }
}
