//! A few words next to each other for each lane: one load of them all for each lane, and shuffles that bring word `k` of
//! every lane together. The machine's gather takes five times as long for each word.
//!
//! Quarter `q` of a temporary holds words of lanes `4q` to `4q + 3`: of four words those of one lane, of two those of two.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand};
use regalloc2::{Operand, RegClass};
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::atomic::INDEX_AT;
use super::super::super::encode::{Assembler, Label, Regs};
use super::super::super::pool::Constant;
use super::super::super::vcode::{Expand, Kind};
use super::super::Select;
use crate::simd::{Inst, Value};

const STORE: Code = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
const INSERT: Code = Code::EVEX_Vinserti32x4_zmm_k1z_zmm_xmmm128_imm8;
/// Two words of each quarter of two vectors: of pairs the first ones or the second ones, or one of the pairs.
const SHUFFLE: Code = Code::EVEX_Vshufps_zmm_k1z_zmm_zmmm512b32_imm8;
const FIRSTS: i32 = 0x88;
const SECONDS: i32 = 0xdd;
const LOW_PAIRS: i32 = 0x44;
const HIGH_PAIRS: i32 = 0xee;
/// Words of two vectors by turns, from the lower or the upper halves of each quarter.
const LOW_WORDS: Code = Code::EVEX_Vpunpckldq_zmm_k1z_zmm_zmmm512b32;
const HIGH_WORDS: Code = Code::EVEX_Vpunpckhdq_zmm_k1z_zmm_zmmm512b32;

impl Select<'_> {
    pub(super) fn gather_elements(
        &mut self,
        inst: Inst,
        base: Value,
        index: Value,
        masks: &[Value],
    ) -> Result<(), CompileError> {
        let count = masks.len() as u8;
        let (base, disp) = self.base(base, 0)?;
        let index = self.reg(index)?;
        let mut among: SmallVec<[_; 4]> = SmallVec::new();
        for &mask in masks {
            among.push(self.reg(mask)?);
        }
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        for number in 0..masks.len() {
            let result = self.define_nth(inst, number);
            operands.push(Operand::reg_def_at_start(result));
        }
        let mut slot = |operand| {
            operands.push(operand);
            operands.len() as u8 - 1
        };
        let [first_mask, ..] = among[..] else { unreachable!("elements of no words") };
        let mask = slot(Operand::reg_use(first_mask));
        among[1..].iter().for_each(|&mask| _ = slot(Operand::reg_use(mask)));
        let (base, index) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(index)));
        let temps = [RegClass::Float, RegClass::Int, RegClass::Vector].map(|class| {
            let [first, _] = [0, 1].map(|_| slot(Operand::reg_temp(self.code.vreg(class))));
            first
        });
        let [vectors, generals, bits] = temps;
        // Words behind the first, for the gathers of single words.
        let one = self.code.pool.word(1);
        self.code.scratch = true;
        let sequence = GatherElements { count, mask, base, disp, index, vectors, generals, bits, one };
        self.code.push(Kind::Sequence(Box::new(sequence)), &operands);
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
    bits: u8,
    one: Constant,
}

impl GatherElements {
    /// Leads to `cold` unless lanes are on, and for all words the same ones.
    fn check(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, cold: Label) {
        let first = regs.mask(self.mask);
        asm.put(Instruction::with2(Code::VEX_Kortestw_kr_kr, first, first));
        asm.jump_if(ConditionCode::e, cold);
        let [differ, more] = [regs.mask(self.bits), regs.mask(self.bits + 1)];
        let mut others = (1..self.count).map(|word| regs.mask(self.mask + word)).filter(|&mask| mask != first);
        let Some(other) = others.next() else { return };
        asm.put(Instruction::with3(Code::VEX_Kxorw_kr_kr_kr, differ, first, other));
        for other in others {
            asm.put(Instruction::with3(Code::VEX_Kxorw_kr_kr_kr, more, first, other));
            asm.put(Instruction::with3(Code::VEX_Korw_kr_kr_kr, differ, differ, more));
        }
        asm.put(Instruction::with2(Code::VEX_Kortestw_kr_kr, differ, differ));
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

    /// Fills result `number` with four words of lanes `number`, `number + 4`, ….
    fn load_quads(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) {
        let to = regs.zmm(number);
        for quarter in 0..4 {
            let memory = self.lane(regs, asm, 4 * quarter + number);
            asm.put(match quarter {
                0 => Instruction::with2(Code::EVEX_Vmovdqu32_xmm_k1z_xmmm128, regs.xmm(number), memory),
                _ => Instruction::with4(INSERT, to, to, memory, i32::from(quarter)),
            });
        }
    }

    /// Fills result `number` with two words each of lanes `2 * number` and the next, of those and the next four on, ….
    fn load_pairs(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) {
        let to = regs.zmm(number);
        for quarter in 0..4 {
            let part = if quarter == 0 { regs.xmm(number) } else { regs.xmm(self.vectors) };
            let lane = 4 * quarter + 2 * number;
            let first = self.lane(regs, asm, lane);
            asm.put(Instruction::with2(Code::EVEX_Vmovq_xmm_xmmm64, part, first));
            let second = self.lane(regs, asm, lane + 1);
            asm.put(Instruction::with3(Code::EVEX_Vmovhps_xmm_xmm_m64, part, part, second));
            if quarter != 0 {
                asm.put(Instruction::with4(INSERT, to, to, part, i32::from(quarter)));
            }
        }
    }
}

impl Expand for GatherElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        self.check(regs, asm, cold);
        // Lanes that are off have word 0, which is there, as some lane is on.
        let temps = [regs.zmm(self.vectors), regs.zmm(self.vectors + 1)];
        let kept = Instruction::with2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, temps[0], regs.zmm(self.index));
        asm.put_masked(regs.mask(self.mask), true, kept);
        let indices = asm.scratch(INDEX_AT, false);
        asm.put(Instruction::with2(STORE, indices, temps[0]));
        // In lanes that are off, what the last instructions would yield is nobody's.
        let on = regs.mask(self.mask);
        if self.count == 2 {
            (0..2).for_each(|number| self.load_pairs(regs, asm, number));
            let [even, odd] = [regs.zmm(0), regs.zmm(1)];
            asm.put(Instruction::with4(SHUFFLE, temps[0], even, odd, SECONDS));
            asm.put_masked(on, true, Instruction::with4(SHUFFLE, even, even, odd, FIRSTS));
            let kept = Instruction::with2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, odd, temps[0]);
            asm.put_masked(on, true, kept);
        } else {
            (0..4).for_each(|number| self.load_quads(regs, asm, number));
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
                asm.put_masked(on, true, Instruction::with4(SHUFFLE, to, from, other, pairs));
            }
        }
    }

    /// A gather for each word.
    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let index = regs.zmm(self.vectors);
        asm.put(Instruction::with2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, index, regs.zmm(self.index)));
        for number in 0..self.count {
            let (word, used) = (regs.zmm(number), regs.mask(self.bits));
            asm.put(Instruction::with3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, word, word, word));
            asm.put(Instruction::with2(Code::VEX_Kmovw_kr_km16, used, regs.mask(self.mask + number)));
            let (base, disp) = (regs.gpr(self.base), i64::from(self.disp));
            let memory = MemoryOperand::with_base_index_scale_displ_size(base, index, 4, disp, 1);
            asm.put_masked(used, false, Instruction::with2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, word, memory));
            let one = asm.constant(self.one, true);
            asm.put(Instruction::with3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, index, index, one));
        }
    }
}
