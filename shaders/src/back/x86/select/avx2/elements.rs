//! Elements of two to four words by neighbouring lanes: whole rows and shuffles where all are in bounds, a loop over lanes
//! where some are not, or not all lanes store.
//!
//! Each half of 8 lanes has `8n` words in memory. Quarters of registers hold words of four lanes.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, RegClass};
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::atomic::LaneMemory;
use super::super::super::encode::{Assembler, Label, Regs};
use super::super::super::vcode::{Expand, Kind};
use super::Halves;
use crate::simd::{Inst, LANES, Value};

const LOAD: Code = Code::VEX_Vmovups_ymm_ymmm256;
const STORE: Code = Code::VEX_Vmovups_ymmm256_ymm;
/// Loads a lower quarter, and an upper one beside it.
const LOAD_LOW: Code = Code::VEX_Vmovups_xmm_xmmm128;
const LOAD_HIGH: Code = Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8;
const STORE_LOW: Code = Code::VEX_Vmovups_xmmm128_xmm;
const STORE_HIGH: Code = Code::VEX_Vextractf128_xmmm128_ymm_imm8;
/// Two words of each quarter of two vectors.
const SHUFFLE: Code = Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8;
const FIRSTS: i32 = 0x88;
const SECONDS: i32 = 0xdd;
/// Words or pairs of words of two vectors by turns, from the lower or the upper halves of each quarter.
const LOW_WORDS: Code = Code::VEX_Vunpcklps_ymm_ymm_ymmm256;
const HIGH_WORDS: Code = Code::VEX_Vunpckhps_ymm_ymm_ymmm256;
const LOW_PAIRS: Code = Code::VEX_Vunpcklpd_ymm_ymm_ymmm256;
const HIGH_PAIRS: Code = Code::VEX_Vunpckhpd_ymm_ymm_ymmm256;

/// Bytes that lanes have for a word in the scratch area.
const WORD_BYTES: i32 = 4 * LANES as i32;

/// Slots that loads and stores share. The first are those of the words, lower half and upper half of each in turn.
#[derive(Debug)]
struct Elements {
    base: u8,
    disp: i32,
    index: u8,
    limits: SmallVec<[Result<u8, u32>; 4]>,
    /// The first of four vectors of no account.
    vectors: u8,
    /// The first of four general registers of no account.
    generals: u8,
}

impl Halves<'_, '_> {
    /// Operands of an access to `limits.len()` words, behind those that there are.
    fn elements(
        &mut self,
        base: Value,
        index: Value,
        limits: &[Value],
        operands: &mut SmallVec<[Operand; 16]>,
    ) -> Result<Elements, CompileError> {
        let (base, disp) = self.base(base, 0)?;
        let index = self.reg(index)?;
        let mut bounds: SmallVec<[Result<regalloc2::VReg, u32>; 4]> = SmallVec::new();
        for &limit in limits {
            bounds.push(match self.constant(limit) {
                Some(limit) => Err(limit as u32),
                None => Ok(self.reg(limit)?),
            });
        }
        let mut slot = |operand| {
            operands.push(operand);
            operands.len() as u8 - 1
        };
        let (base, index) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(index)));
        let limits = bounds.into_iter().map(|limit| limit.map(|reg| slot(Operand::reg_use(reg)))).collect();
        let [vectors, generals] = [RegClass::Float, RegClass::Int].map(|class| {
            let [first, ..] = [(); 4].map(|()| slot(Operand::reg_temp(self.code.vreg(class))));
            first
        });
        self.code.scratch = true;
        Ok(Elements { base, disp, index, limits, vectors, generals })
    }

    pub(super) fn load_elements(
        &mut self,
        inst: Inst,
        base: Value,
        index: Value,
        limits: &[Value],
    ) -> Result<(), CompileError> {
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        for number in 0..limits.len() {
            let result = [self.lanes_reg(), self.lanes_reg()];
            operands.extend(result.map(Operand::reg_def_at_start));
            self.bind_nth(inst, number, result);
        }
        let elements = self.elements(base, index, limits, &mut operands)?;
        self.code.push(Kind::Sequence(Box::new(LoadElements(elements))), &operands);
        Ok(())
    }

    pub(super) fn store_elements(
        &mut self,
        base: Value,
        index: Value,
        limits: &[Value],
        values: &[Value],
        mask: Value,
    ) -> Result<(), CompileError> {
        let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
        for &value in values {
            operands.extend(self.pair(value)?.map(Operand::reg_use));
        }
        let bits = if self.is_all(mask) { None } else { Some(self.mask_bits(mask)?) };
        let bits = bits.map(|bits| {
            operands.push(Operand::reg_use(bits));
            operands.len() as u8 - 1
        });
        let elements = self.elements(base, index, limits, &mut operands)?;
        self.code.push(Kind::Sequence(Box::new(StoreElements { elements, bits })), &operands);
        Ok(())
    }
}

impl Elements {
    fn count(&self) -> u8 {
        self.limits.len() as u8
    }

    /// A half of word `number`.
    fn word(&self, regs: Regs<'_>, number: u8, half: u8) -> Register {
        regs.ymm(2 * number + half)
    }

    fn vector(&self, regs: Regs<'_>, number: u8) -> Register {
        regs.ymm(self.vectors + number)
    }

    fn general(&self, regs: Regs<'_>, number: u8) -> Register {
        regs.gpr(self.generals + number)
    }

    /// Leads to `cold` unless all lanes have all words in bounds: the last limit is the least.
    fn check(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, cold: Label) {
        let temp = self.general(regs, 0);
        let last = MemoryOperand::with_base_displ_size(regs.gpr(self.index), i64::from(LANES - 1), 1);
        asm.put(Instruction::with2(Code::Lea_r64_m, temp, last));
        asm.put(match self.limits[self.limits.len() - 1] {
            Ok(limit) => Instruction::with2(Code::Cmp_r64_rm64, temp, regs.gpr(limit)),
            Err(limit) => Instruction::with2(Code::Cmp_rm64_imm32, temp, limit.min(1 << 30).cast_signed()),
        });
        asm.jump_if(ConditionCode::ae, cold);
    }

    /// Puts an element's number into general register `to` as one that a scale makes bytes of. Gives the scale.
    fn scaled(&self, asm: &mut Assembler<'_>, number: Register, to: Register) -> u8 {
        let (factor, scale) = match self.count() {
            2 => (0, 8),
            3 => (2, 4),
            _ => (1, 8),
        };
        asm.put(match factor {
            0 => Instruction::with2(Code::Mov_r64_rm64, to, number),
            _ => {
                let multiple = MemoryOperand::with_base_index_scale(number, number, factor);
                Instruction::with2(Code::Lea_r64_m, to, multiple)
            }
        });
        scale
    }

    /// Hands the place of word 0 of lane 0 to `each`, moved by so many words.
    fn place(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) -> impl Fn(u8) -> MemoryOperand + use<> {
        let index = self.general(regs, 0);
        let scale = self.scaled(asm, regs.gpr(self.index), index);
        let memory = LaneMemory { base: regs.gpr(self.base), scale, disp: self.disp };
        move |words| LaneMemory { disp: memory.disp + 4 * i32::from(words), ..memory }.at(index)
    }

    /// Word after word of lane after lane: `each` gets the number of a word, where it is in memory, where lanes have theirs in
    /// the scratch area, a register, and where to go on if it is out of bounds. `skip` may leave a lane out.
    fn lane_by_lane(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        skip: impl Fn(&mut Assembler<'_>, Register, Label),
        each: impl Fn(&mut Assembler<'_>, MemoryOperand, MemoryOperand, Register, &dyn Fn(&mut Assembler<'_>, Label)),
    ) {
        let [lane, element, scaled, word] = [0, 1, 2, 3].map(|number| self.general(regs, number));
        let (again, next) = (asm.label(), asm.label());
        asm.put(Instruction::with2(Code::Xor_r32_rm32, lane.full_register32(), lane.full_register32()));
        asm.bind(again);
        skip(asm, lane.full_register32(), next);
        let number = MemoryOperand::with_base_index(regs.gpr(self.index), lane);
        asm.put(Instruction::with2(Code::Lea_r32_m, element.full_register32(), number));
        let scale = self.scaled(asm, element, scaled);
        for (number, &limit) in (0..).zip(&self.limits) {
            let disp = self.disp + 4 * number;
            let memory = LaneMemory { base: regs.gpr(self.base), scale, disp }.at(scaled);
            let kept = LaneMemory { base: Register::RSP, scale: 4, disp: WORD_BYTES * number }.at(lane);
            each(asm, memory, kept, word.full_register32(), &|asm, beyond| {
                let element = element.full_register32();
                asm.put(match limit {
                    Ok(limit) => Instruction::with2(Code::Cmp_r32_rm32, element, regs.gpr32(limit)),
                    Err(limit) => Instruction::with2(Code::Cmp_rm32_imm32, element, limit.cast_signed()),
                });
                asm.jump_if(ConditionCode::ae, beyond);
            });
        }
        asm.bind(next);
        asm.put(Instruction::with2(Code::Add_rm32_imm8, lane.full_register32(), 1));
        asm.put(Instruction::with2(Code::Cmp_rm32_imm8, lane.full_register32(), LANES.cast_signed()));
        asm.jump_if(ConditionCode::b, again);
    }

    /// Hands all halves of words with their places in the scratch area to `each`.
    fn kept(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        each: impl Fn(&mut Assembler<'_>, Register, MemoryOperand),
    ) {
        for (number, half) in (0..self.count()).flat_map(|number| [(number, 0), (number, 1)]) {
            let place = asm.scratch(WORD_BYTES * i32::from(number) + 32 * i32::from(half), false);
            each(asm, self.word(regs, number, half), place);
        }
    }
}

/// The first operands become the words.
#[derive(Debug)]
struct LoadElements(Elements);

impl LoadElements {
    /// A half of all words.
    fn load_half(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, half: u8, place: &impl Fn(u8) -> MemoryOperand) {
        let count = self.0.count();
        let first = 8 * count * half;
        let word = |number| self.0.word(regs, number, half);
        let [low, high] = [0, 1].map(|number| self.0.vector(regs, number));
        let shuffle = |asm: &mut Assembler<'_>, to, a, b, order| asm.put(Instruction::with4(SHUFFLE, to, a, b, order));
        if count == 2 {
            asm.put(Instruction::with2(LOAD, low, place(first)));
            asm.put(Instruction::with2(LOAD, high, place(first + 8)));
            for (to, order) in [(word(0), FIRSTS), (word(1), SECONDS)] {
                shuffle(asm, to, low, high, order);
                asm.put(Instruction::with3(Code::VEX_Vpermpd_ymm_ymmm256_imm8, to, to, 0xd8));
            }
            return;
        }
        // Quarters: elements 0 and 4, 1 and 5, and so on; of three words parts of four elements.
        for number in 0..count {
            let narrow = regs.xmm(2 * number + half);
            asm.put(Instruction::with2(LOAD_LOW, narrow, place(first + 4 * number)));
            let upper = place(first + 4 * (number + count));
            asm.put(Instruction::with4(LOAD_HIGH, word(number), word(number), upper, 1));
        }
        if count == 3 {
            shuffle(asm, low, word(1), word(2), 0x9e);
            shuffle(asm, high, word(0), word(1), 0x49);
            shuffle(asm, word(0), word(0), low, 0x8c);
            shuffle(asm, word(1), high, low, 0xd8);
            shuffle(asm, word(2), high, word(2), 0xcd);
            return;
        }
        transpose(asm, [0, 1, 2, 3].map(word), [low, high]);
    }
}

/// Transposes four vectors in each of their halves, by way of two temporary ones.
pub(super) fn transpose(asm: &mut Assembler<'_>, [a, b, c, d]: [Register; 4], [low, high]: [Register; 2]) {
    for (code, to, [from, other]) in [
        (LOW_WORDS, low, [a, b]),
        (HIGH_WORDS, high, [a, b]),
        (LOW_WORDS, a, [c, d]),
        (HIGH_WORDS, b, [c, d]),
        (HIGH_PAIRS, d, [high, b]),
        (LOW_PAIRS, c, [high, b]),
        (HIGH_PAIRS, b, [low, a]),
        (LOW_PAIRS, a, [low, a]),
    ] {
        asm.put(Instruction::with3(code, to, from, other));
    }
}

impl Expand for LoadElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        self.0.check(regs, asm, cold);
        let place = self.0.place(regs, asm);
        (0..2).for_each(|half| self.load_half(regs, asm, half, &place));
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.0.lane_by_lane(
            regs,
            asm,
            |_, _, _| {},
            |asm, memory, kept, word, check| {
                let beyond = asm.label();
                asm.put(Instruction::with2(Code::Xor_r32_rm32, word, word));
                check(asm, beyond);
                asm.put(Instruction::with2(Code::Mov_r32_rm32, word, memory));
                asm.bind(beyond);
                asm.put(Instruction::with2(Code::Mov_rm32_r32, kept, word));
            },
        );
        self.0.kept(regs, asm, |asm, half, place| asm.put(Instruction::with2(LOAD, half, place)));
    }
}

/// Stores the first operands, for all lanes or those whose bit is set.
#[derive(Debug)]
struct StoreElements {
    elements: Elements,
    bits: Option<u8>,
}

impl StoreElements {
    /// A half of all words.
    fn store_half(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, half: u8, place: &impl Fn(u8) -> MemoryOperand) {
        let elements = &self.elements;
        let count = elements.count();
        let word = |number| elements.word(regs, number, half);
        let [a, b, c, row] = [0, 1, 2, 3].map(|number| elements.vector(regs, number));
        let row_low = regs.xmm(elements.vectors + 3);
        let first = 8 * count * half;
        // Quarters of the row, which go to two places.
        let store = |asm: &mut Assembler<'_>, [low, high]: [u8; 2]| {
            asm.put(Instruction::with2(STORE_LOW, place(first + low), row_low));
            asm.put(Instruction::with3(STORE_HIGH, place(first + high), row, 1));
        };
        let put = |asm: &mut Assembler<'_>, code, to, x, y| asm.put(Instruction::with3(code, to, x, y));
        let shuffle = |asm: &mut Assembler<'_>, to, x, y, order| asm.put(Instruction::with4(SHUFFLE, to, x, y, order));
        match count {
            2 => {
                for (code, at) in [(LOW_WORDS, 0), (HIGH_WORDS, 4)] {
                    put(asm, code, row, word(0), word(1));
                    store(asm, [at, at + 8]);
                }
            }
            3 => {
                shuffle(asm, a, word(0), word(1), FIRSTS);
                shuffle(asm, b, word(1), word(2), SECONDS);
                shuffle(asm, c, word(2), word(0), 0xd8);
                for ([x, y], order, at) in [([a, c], FIRSTS, 0), ([b, a], 0xd8, 4), ([c, b], SECONDS, 8)] {
                    shuffle(asm, row, x, y, order);
                    store(asm, [at, at + 12]);
                }
            }
            _ => {
                for (words, at) in [(LOW_WORDS, 0), (HIGH_WORDS, 8)] {
                    put(asm, words, a, word(0), word(1));
                    put(asm, words, b, word(2), word(3));
                    for (pairs, at) in [(LOW_PAIRS, at), (HIGH_PAIRS, at + 4)] {
                        put(asm, pairs, row, a, b);
                        store(asm, [at, at + 16]);
                    }
                }
            }
        }
    }
}

impl Expand for StoreElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        if let Some(bits) = self.bits {
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(bits), 0xffff));
            asm.jump_if(ConditionCode::ne, cold);
        }
        self.elements.check(regs, asm, cold);
        let place = self.elements.place(regs, asm);
        (0..2).for_each(|half| self.store_half(regs, asm, half, &place));
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let Self { elements, bits } = self;
        elements.kept(regs, asm, |asm, half, place| asm.put(Instruction::with2(STORE, place, half)));
        elements.lane_by_lane(
            regs,
            asm,
            |asm, lane, next| {
                if let Some(bits) = *bits {
                    asm.put(Instruction::with2(Code::Bt_rm32_r32, regs.gpr32(bits), lane));
                    asm.jump_if(ConditionCode::ae, next);
                }
            },
            |asm, memory, kept, word, check| {
                let beyond = asm.label();
                check(asm, beyond);
                asm.put(Instruction::with2(Code::Mov_r32_rm32, word, kept));
                asm.put(Instruction::with2(Code::Mov_rm32_r32, memory, word));
                asm.bind(beyond);
            },
        );
    }
}
