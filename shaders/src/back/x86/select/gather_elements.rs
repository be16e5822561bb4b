//! A few contiguous words for each lane: one load of them all for each lane, and shuffles that move word `k` of every
//! lane to one register. The machine's gather takes five times as long for each word.
//!
//! Each register of a vector has its own sequence. 128-bit lane `q` of a temporary holds words of lanes `4q` to
//! `4q + 3`: of four words those of one lane, of two those of two.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::Operand;
use smallvec::SmallVec;

use super::super::Isa;
use super::super::atomic::INDEX_AT;
use super::super::encode::{Assembler, Label, Regs};
use super::super::pool::PooledConstant;
use super::super::vcode::{InstKind, View};
use super::{Result, Select, VectorIsa};
use crate::simd::{Inst, Value};

impl<V: VectorIsa> Select<'_, V> {
    pub(super) fn gather_elements(&mut self, inst: Inst, base: Value, index: Value, masks: &[Value]) -> Result {
        let count = masks.len() as u8;
        let (base, disp) = self.base(base, 0)?;
        let index = V::registers(self, index)?;
        let mut active: SmallVec<[V::Registers; 4]> = SmallVec::new();
        for &mask in masks {
            active.push(V::registers(self, mask)?);
        }
        let mut results: SmallVec<[V::Registers; 4]> = SmallVec::new();
        for &result in &self.kernel.results[inst] {
            results.push(V::define(self, result));
        }
        let one = V::constant_one(&mut self.code.pool);
        self.code.scratch = true;
        for number in 0..index.as_ref().len() {
            let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
            operands.extend(results.iter().map(|result| Operand::reg_def_at_start(result.as_ref()[number])));
            let mut slot = |operand| {
                operands.push(operand);
                operands.len() as u8 - 1
            };
            active.iter().for_each(|mask| _ = slot(Operand::reg_use(mask.as_ref()[number])));
            let (base, index) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(index.as_ref()[number])));
            for class in V::LANE_WORDS_TEMPS {
                (0..2).for_each(|_| _ = slot(Operand::reg_temp(self.code.vreg(*class))));
            }
            let [mask, vectors, generals] = [count, index + 1, index + 3];
            let words = LaneWordSlots { isa: V::ISA, count, mask, base, disp, index, vectors, generals, one };
            self.code.push(InstKind::Sequence(V::gather_lane_words(words)), &operands);
        }
        Ok(())
    }
}

/// The words of a register's lanes: the first operands become them. Fields are slots, those of temporaries the first
/// of two.
#[derive(Debug)]
pub(super) struct LaneWordSlots {
    isa: Isa,
    pub count: u8,
    /// The first word's; the others' follow.
    pub mask: u8,
    pub base: u8,
    pub disp: i32,
    pub index: u8,
    pub vectors: u8,
    generals: u8,
    pub one: PooledConstant,
}

struct MaskOpcodes {
    /// Sets the zero flag if no lane of a mask is active.
    test: Code,
    xor: Code,
    or: Code,
    load: Code,
    load_low: Code,
    load_high: Code,
    insert: Code,
    mask: View,
}

const EVEX: MaskOpcodes = MaskOpcodes {
    test: Code::VEX_Kortestw_kr_kr,
    xor: Code::VEX_Kxorw_kr_kr_kr,
    or: Code::VEX_Korw_kr_kr_kr,
    load: Code::EVEX_Vmovdqu32_xmm_k1z_xmmm128,
    load_low: Code::EVEX_Vmovq_xmm_xmmm64,
    load_high: Code::EVEX_Vmovhps_xmm_xmm_m64,
    insert: Code::EVEX_Vinserti32x4_zmm_k1z_zmm_xmmm128_imm8,
    mask: View::Mask,
};

const VEX: MaskOpcodes = MaskOpcodes {
    test: Code::VEX_Vptest_ymm_ymmm256,
    xor: Code::VEX_Vpxor_ymm_ymm_ymmm256,
    or: Code::VEX_Vpor_ymm_ymm_ymmm256,
    load: Code::VEX_Vmovdqu_xmm_xmmm128,
    load_low: Code::VEX_Vmovq_xmm_xmmm64,
    load_high: Code::VEX_Vmovhps_xmm_xmm_m64,
    insert: Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8,
    mask: View::Ymm,
};

impl LaneWordSlots {
    fn codes(&self) -> &'static MaskOpcodes {
        match self.isa {
            Isa::Avx512 => &EVEX,
            Isa::Avx2 => &VEX,
        }
    }

    /// 128-bit lanes of a register.
    fn lanes128(&self) -> u8 {
        (self.isa.vector_bytes() / 16) as u8
    }

    /// The mask of a word.
    pub(super) fn mask(&self, regs: Regs<'_>, word: u8) -> Register {
        regs.view(self.mask + word, self.codes().mask)
    }

    /// Jumps to `cold` unless lanes are active, and the same ones for all words. `temps` are two registers for masks.
    pub(super) fn check(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, temps: u8, cold: Label) {
        let codes = self.codes();
        let first = self.mask(regs, 0);
        asm.put(Instruction::with2(codes.test, first, first));
        asm.jump_if(ConditionCode::e, cold);
        let [differ, more] = [0, 1].map(|temp| regs.view(temps + temp, codes.mask));
        let mut others = (1..self.count).map(|word| self.mask(regs, word)).filter(|&mask| mask != first);
        let Some(other) = others.next() else { return };
        asm.put(Instruction::with3(codes.xor, differ, first, other));
        for other in others {
            asm.put(Instruction::with3(codes.xor, more, first, other));
            asm.put(Instruction::with3(codes.or, differ, differ, more));
        }
        asm.put(Instruction::with2(codes.test, differ, differ));
        asm.jump_if(ConditionCode::ne, cold);
    }

    /// The words of a lane, whose index is loaded from the scratch area. Two registers alternate, as lanes do not wait
    /// for each other.
    fn lane(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, lane: u8) -> MemoryOperand {
        let index = self.generals + lane % 2;
        let kept = asm.scratch(INDEX_AT + 4 * i32::from(lane), false);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(index), kept));
        let (base, index, disp) = (regs.gpr(self.base), regs.gpr(index), i64::from(self.disp));
        MemoryOperand::with_base_index_scale_displ_size(base, index, 4, disp, 1)
    }

    /// Fills result `number` with four words of lanes `number`, `number + 4`, and so on.
    pub(super) fn load_quads(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) {
        let (codes, to) = (self.codes(), regs.view(number, self.isa.view()));
        for lane128 in 0..self.lanes128() {
            let memory = self.lane(regs, asm, 4 * lane128 + number);
            asm.put(match lane128 {
                0 => Instruction::with2(codes.load, regs.xmm(number), memory),
                _ => Instruction::with4(codes.insert, to, to, memory, i32::from(lane128)),
            });
        }
    }

    /// Fills result `number` with two words each of lanes `2 * number` and the next, of those four further, and so on.
    pub(super) fn load_pairs(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) {
        let (codes, to) = (self.codes(), regs.view(number, self.isa.view()));
        for lane128 in 0..self.lanes128() {
            let part = if lane128 == 0 { regs.xmm(number) } else { regs.xmm(self.vectors) };
            let lane = 4 * lane128 + 2 * number;
            let first = self.lane(regs, asm, lane);
            asm.put(Instruction::with2(codes.load_low, part, first));
            let second = self.lane(regs, asm, lane + 1);
            asm.put(Instruction::with3(codes.load_high, part, part, second));
            if lane128 != 0 {
                asm.put(Instruction::with4(codes.insert, to, to, part, i32::from(lane128)));
            }
        }
    }
}
