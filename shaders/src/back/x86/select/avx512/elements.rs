//! Interleave groups of two to four words without segments: whole rows and shuffles if all lanes are in bounds, masked
//! rows if not all lanes or words are stored, lane by lane if some are out of bounds.
//!
//! Row `r` of `n` holds words `16r` to `16r + 15` of the elements in memory, where lane `l` has words `nl` to `nl + n -
//! 1`.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, RegClass, VReg};
use smallvec::SmallVec;

use super::super::super::Isa;
use super::super::super::encode::{Assembler, Regs};
use super::super::super::pool::PooledConstant;
use super::super::super::vcode::{Expand, InstKind};
use super::super::elements::{GroupAddress, Origin, Origins, VectorSlots};
use super::super::registers::OperandSlots;
use super::super::{Result, Select};
use super::Avx512;
use crate::ir::Width;
use crate::simd::{Elements, Inst, LANES, Value};

const LOAD: Code = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
const STORE: Code = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
/// Shuffles words of two tables by the index in its first operand.
const PICK: Code = Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32;
/// As [`PICK`] with the first table in its first operand.
const PICK_INTO: Code = Code::EVEX_Vpermt2d_zmm_k1z_zmm_zmmm512b32;
/// Shuffles halves of two vectors.
const HALVES: Code = Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8;
const LOW_HALVES: i32 = 0x44;
const HIGH_HALVES: i32 = 0xee;

impl Select<'_, Avx512> {
    pub(super) fn load_elements(&mut self, inst: Inst, elements: &Elements) -> Result {
        let count = elements.limits.len();
        let results: SmallVec<[VReg; 4]> = (0..count).map(|number| self.define_lanes_nth(inst, number)).collect();
        if elements.width != Width::Word {
            return self.load_subword_elements(elements, &results);
        }
        if elements.segments.is_some() || !elements.are_dense() {
            return self.load_by_lanes128(elements, &results);
        }
        let mut operands: OperandSlots = results.iter().map(|&result| Operand::reg_def_at_start(result)).collect();
        let address = self.group_address(elements, &mut operands)?;
        let temps = self.vectors::<4>(&mut operands);
        let orders = load_orders(count).into_iter().map(|order| self.code.pool.vector(order)).collect();
        self.code.push(InstKind::Sequence(Box::new(LoadElements(ElementRows { address, temps, orders }))), &operands);
        Ok(())
    }

    pub(super) fn store_elements(&mut self, elements: &Elements, values: &[Value], mask: Value) -> Result {
        let words = elements.stride() as usize / 4;
        let mut stored: SmallVec<[VReg; 4]> = SmallVec::new();
        for &value in values {
            stored.push(self.lanes(value)?);
        }
        let all = self.is_all(mask);
        if elements.width != Width::Word || elements.segments.is_some() || words > 4 {
            let bits = if all { None } else { Some(self.mask_bits(mask)?) };
            return match elements.width {
                Width::Word => self.store_by_lanes128(elements, &stored, bits),
                _ => self.store_subword_elements(elements, &stored, bits),
            };
        }
        let mut operands: OperandSlots = stored.into_iter().map(Operand::reg_use).collect();
        let mask = if all { None } else { Some(self.lanes(mask)?) };
        let mask = mask.map(|mask| operands.add(Operand::reg_use(mask)));
        let address = self.group_address(elements, &mut operands)?;
        let temps = self.vectors::<4>(&mut operands);
        let lanes = operands.add(Operand::reg_temp(self.code.vreg(RegClass::Vector)));
        let bits = operands.add(Operand::reg_temp(self.code.vreg(RegClass::Int)));
        let orders = store_orders(words).into_iter().map(|order| self.code.pool.vector(order)).collect();
        let firsts = (0..LANES).map(|lane| 1u64 << (lane as usize * words)).sum::<u64>();
        let mut pair = [0; 16];
        (pair[0], pair[1]) = (firsts as u32, (firsts >> 32) as u32);
        let in_pool = self.code.pool.vector(pair);
        let rows = ElementRows { address, temps, orders };
        let store = StoreElements { rows, words: words as u8, mask, lanes, bits, firsts, in_pool };
        self.code.push(InstKind::Sequence(Box::new(store)), &operands);
        Ok(())
    }
}

/// A shuffle for [`PICK`]: for each lane the number of a word in two tables.
fn order(pick: impl Fn(u32) -> u32) -> [u32; 16] {
    std::array::from_fn(|lane| pick(lane as u32))
}

/// The shuffles that loads apply to rows.
fn load_orders(words: usize) -> Vec<[u32; 16]> {
    match words {
        2 => (0..2).map(|word| order(|lane| 2 * lane + word)).collect(),
        // Word `w` is in rows 0 and 1, or in row 2: first all words of the former, then those, or word `w - 32` of row
        // 2.
        3 => {
            let two_steps = |word: u32| {
                let first = order(|lane| (3 * lane + word).min(31));
                let second = order(|lane| if 3 * lane + word < 32 { lane } else { 16 + (3 * lane + word - 32) });
                [first, second]
            };
            (0..3).flat_map(two_steps).collect()
        }
        // Of two rows with 8 elements: one word of each, then the next word of each.
        _ => [0, 2].map(|word| order(|lane| 4 * (lane % 8) + word + lane / 8)).to_vec(),
    }
}

/// The shuffles that stores apply to values.
fn store_orders(words: usize) -> Vec<[u32; 16]> {
    match words {
        // Word `w` is value `w % 2` of lane `w / 2`.
        2 => [0, 16].map(|first| order(|at| (first + at) % 2 * 16 + (first + at) / 2)).to_vec(),
        3 => {
            let two_steps = |row: u32| {
                let place = move |at: u32| ((row * 16 + at) % 3, (row * 16 + at) / 3);
                let first = order(|at| match place(at) {
                    (2, _) => 0,
                    (word, lane) => word * 16 + lane,
                });
                let second = order(|at| match place(at) {
                    (2, lane) => 16 + lane,
                    _ => at,
                });
                [first, second]
            };
            (0..3).flat_map(two_steps).collect()
        }
        // Of two tables, each with 8 lanes of one value and 8 of the next: elements 0 to 3, then 4 to 7.
        _ => [0, 4].map(|first| order(|at| at % 4 * 8 + first + at / 4)).to_vec(),
    }
}

/// Elements as whole rows of memory.
#[derive(Debug)]
struct ElementRows {
    address: GroupAddress,
    /// The first temporary vector register.
    temps: u8,
    orders: SmallVec<[PooledConstant; 6]>,
}

impl ElementRows {
    fn temp(&self, regs: Regs<'_>, number: u8) -> Register {
        regs.zmm(self.temps + number)
    }

    fn row(&self, regs: Regs<'_>, origin: Origin, number: u8) -> MemoryOperand {
        self.address.at(regs, origin, 64 * i32::from(number))
    }

    fn load_order(&self, asm: &mut Assembler<'_>, reg: Register, number: usize) {
        let order = asm.constant(self.orders[number], false);
        asm.put(Instruction::with2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, reg, order));
    }
}

/// The first operands become the words.
#[derive(Debug)]
struct LoadElements(ElementRows);

impl Expand for LoadElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let Self(rows) = self;
        rows.address.check(regs, asm, Assembler::cold);
        let origin = rows.address.origin(regs, asm, &mut Origins::default(), 0);
        let count = rows.address.count();
        let word = |number| regs.zmm(number);
        let temp = |number| rows.temp(regs, number);
        if count == 4 {
            for number in 0..4 {
                asm.put(Instruction::with2(LOAD, word(number), rows.row(regs, origin, number)));
                rows.load_order(asm, temp(number), usize::from(number / 2));
                // Temporaries 0 and 1: words 0 and 1 of the two pairs of rows. 2 and 3: words 2 and 3.
            }
            for number in 0..4 {
                let pair = number % 2 * 2;
                asm.put(Instruction::with3(PICK, temp(number), word(pair), word(pair + 1)));
            }
            for number in 0..4 {
                let (pair, halves) = (number / 2 * 2, [LOW_HALVES, HIGH_HALVES][usize::from(number % 2)]);
                asm.put(Instruction::with4(HALVES, word(number), temp(pair), temp(pair + 1), halves));
            }
            return;
        }
        for number in 0..count {
            asm.put(Instruction::with2(LOAD, temp(number), rows.row(regs, origin, number)));
        }
        for number in 0..count {
            let steps = usize::from(count - 1);
            let first = usize::from(number) * steps;
            rows.load_order(asm, word(number), first);
            asm.put(Instruction::with3(PICK, word(number), temp(0), temp(1)));
            if steps == 2 {
                rows.load_order(asm, temp(3), first + 1);
                asm.put(Instruction::with3(PICK_INTO, word(number), temp(3), temp(2)));
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.0.address.load_lanes(regs, asm, VectorSlots { isa: Isa::Avx512, first: 0 });
    }
}

/// Stores the first operands, for all lanes or under a mask; words that are not stored are masked, too.
#[derive(Debug)]
struct StoreElements {
    rows: ElementRows,
    /// Words of an element in memory.
    words: u8,
    mask: Option<u8>,
    /// Temporary registers: a mask and a general one.
    lanes: u8,
    bits: u8,
    /// A bit for each element's first word, of the words of all rows.
    firsts: u64,
    in_pool: PooledConstant,
}

impl StoreElements {
    fn is_whole(&self) -> bool {
        self.rows.address.count() == self.words
    }

    /// Calls `each` with every row, in temporary 0, and its place in memory.
    fn each_row(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        mut each: impl FnMut(&mut Assembler<'_>, MemoryOperand, Register),
    ) {
        let Self { rows, words, .. } = self;
        let origin = rows.address.origin(regs, asm, &mut Origins::default(), 0);
        // The contents of words that are not stored are unspecified.
        let word = |number: u8| regs.zmm(number.min(rows.address.count() - 1));
        let temp = |number| rows.temp(regs, number);
        for row in 0..*words {
            let number = usize::from(row);
            match words {
                2 => {
                    rows.load_order(asm, temp(0), number);
                    asm.put(Instruction::with3(PICK, temp(0), word(0), word(1)));
                }
                3 => {
                    rows.load_order(asm, temp(0), 2 * number);
                    asm.put(Instruction::with3(PICK, temp(0), word(0), word(1)));
                    if rows.address.count() == 3 {
                        rows.load_order(asm, temp(1), 2 * number + 1);
                        asm.put(Instruction::with3(PICK_INTO, temp(0), temp(1), word(2)));
                    }
                }
                _ => {
                    if row % 2 == 0 {
                        let halves = [LOW_HALVES, HIGH_HALVES][number / 2];
                        asm.put(Instruction::with4(HALVES, temp(1), word(0), word(1), halves));
                        asm.put(Instruction::with4(HALVES, temp(2), word(2), word(3), halves));
                    }
                    rows.load_order(asm, temp(0), number % 2);
                    asm.put(Instruction::with3(PICK, temp(0), temp(1), temp(2)));
                }
            }
            each(asm, rows.row(regs, origin, row), temp(0));
        }
    }

    /// Stores some of the lanes or words: each bit of the mask becomes one for each word that is stored.
    fn masked_rows(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (bits, narrow) = (regs.gpr(self.bits), regs.gpr32(self.bits));
        let stored = (1 << self.rows.address.count()) - 1;
        if let Some(mask) = self.mask {
            asm.put(Instruction::with2(Code::VEX_Kmovw_r32_kr, narrow, regs.mask(mask)));
            let firsts = asm.constant(self.in_pool, false);
            asm.put(Instruction::with3(Code::VEX_Pdep_r64_r64_rm64, bits, bits, firsts));
            asm.put(Instruction::with3(Code::Imul_r64_rm64_imm8, bits, bits, stored));
        } else {
            asm.put(Instruction::with2(Code::Mov_r64_imm64, bits, self.firsts * stored as u64));
        }
        let lanes = regs.mask(self.lanes);
        self.each_row(regs, asm, |asm, place, row| {
            asm.put(Instruction::with2(Code::VEX_Kmovw_kr_r32, lanes, narrow));
            asm.put_masked(lanes, false, Instruction::with2(STORE, place, row));
            asm.put(Instruction::with2(Code::Shr_rm64_imm8, bits, LANES.cast_signed()));
        });
    }
}

impl Expand for StoreElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        if !self.is_whole() {
            self.rows.address.check(regs, asm, Assembler::cold);
            return self.masked_rows(regs, asm);
        }
        if let Some(mask) = self.mask {
            let mask = regs.mask(mask);
            asm.put(Instruction::with2(Code::VEX_Kortestw_kr_kr, mask, mask));
            let cold = asm.cold();
            asm.jump_if(ConditionCode::ae, cold);
        }
        self.rows.address.check(regs, asm, Assembler::cold);
        self.each_row(regs, asm, |asm, place, row| asm.put(Instruction::with2(STORE, place, row)));
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (apart, done) = (asm.label(), asm.label());
        if self.mask.is_some() && self.is_whole() {
            self.rows.address.check(regs, asm, |_| apart);
            self.masked_rows(regs, asm);
            asm.jump(done);
        }
        asm.bind(apart);
        if let Some(mask) = self.mask {
            asm.put(Instruction::with2(Code::VEX_Kmovw_r32_kr, regs.gpr32(self.bits), regs.mask(mask)));
        }
        let bits = self.mask.map(|_| self.bits);
        self.rows.address.store_lanes(regs, asm, VectorSlots { isa: Isa::Avx512, first: 0 }, bits);
        asm.bind(done);
    }
}
