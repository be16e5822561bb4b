//! Elements of two to four words by neighbouring lanes: whole rows and shuffles where all are in bounds, masked ones where
//! not all lanes store, a gather or scatter for each word where some are not in bounds.
//!
//! Row `r` of `n` holds words `16r` to `16r + 15` of the elements in memory, where lane `l` has words `nl` to `nl + n - 1`.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::Operand;
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::encode::{Assembler, Label, Regs};
use super::super::super::pool::Constant;
use super::super::super::vcode::{Expand, Kind};
use super::super::Select;
use super::row::{IOTA, LIMIT_AT};
use crate::simd::{Inst, LANES, Value};

const LOAD: Code = Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512;
const STORE: Code = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;
/// Picks words of two tables by the index in its first operand.
const PICK: Code = Code::EVEX_Vpermi2d_zmm_k1z_zmm_zmmm512b32;
/// As [`PICK`] with the first table in its first operand.
const PICK_INTO: Code = Code::EVEX_Vpermt2d_zmm_k1z_zmm_zmmm512b32;
/// Halves of two vectors.
const HALVES: Code = Code::EVEX_Vshufi64x2_zmm_k1z_zmm_zmmm512b64_imm8;
const LOW_HALVES: i32 = 0x44;
const HIGH_HALVES: i32 = 0xee;

/// Slots and constants that loads and stores share.
#[derive(Debug)]
struct Elements {
    base: u8,
    disp: i32,
    index: u8,
    limits: SmallVec<[Result<u8, u32>; 4]>,
    /// First of `n` vectors: results or operands.
    words: u8,
    /// First of the temporary vectors.
    temps: u8,
    general: u8,
    bounds: u8,
    orders: SmallVec<[Constant; 6]>,
    iota: Constant,
    /// Whether all elements are in bounds for certain.
    inside: bool,
}

impl Select<'_> {
    /// Operands of an access to `limits.len()` words, behind the vectors and the mask.
    fn elements(
        &mut self,
        base: Value,
        index: Value,
        limits: &[Value],
        operands: &mut SmallVec<[Operand; 16]>,
        orders: SmallVec<[Constant; 6]>,
    ) -> Result<Elements, CompileError> {
        let (base, disp) = self.base(base, 0)?;
        // The last limit is the least.
        let inside = limits.last().map_or(Ok(None), |&limit| self.inside(index, limit))?.is_some();
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
        let temps: [_; 4] = std::array::from_fn(|_| self.lanes_reg());
        let [first, ..] = temps.map(|temp| slot(Operand::reg_temp(temp)));
        let general = slot(Operand::reg_temp(self.code.vreg(regalloc2::RegClass::Int)));
        let bounds = slot(Operand::reg_temp(self.code.vreg(regalloc2::RegClass::Vector)));
        self.code.scratch = true;
        Ok(Elements {
            base,
            disp,
            index,
            limits,
            words: 0,
            temps: first,
            general,
            bounds,
            orders,
            iota: self.code.pool.vector(IOTA),
            inside,
        })
    }

    pub(super) fn load_elements(
        &mut self,
        inst: Inst,
        base: Value,
        index: Value,
        limits: &[Value],
    ) -> Result<(), CompileError> {
        let mut operands = SmallVec::new();
        for number in 0..limits.len() {
            let result = self.define_nth(inst, number);
            operands.push(Operand::reg_def_at_start(result));
        }
        let orders = load_orders(limits.len()).into_iter().map(|order| self.code.pool.vector(order)).collect();
        let elements = self.elements(base, index, limits, &mut operands, orders)?;
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
            operands.push(Operand::reg_use(self.reg(value)?));
        }
        let mask = if self.is_all(mask) { None } else { Some(self.reg(mask)?) };
        let mask = mask.map(|mask| {
            operands.push(Operand::reg_use(mask));
            operands.len() as u8 - 1
        });
        let orders = store_orders(limits.len()).into_iter().map(|order| self.code.pool.vector(order)).collect();
        let elements = self.elements(base, index, limits, &mut operands, orders)?;
        operands.push(Operand::reg_temp(self.code.vreg(regalloc2::RegClass::Int)));
        let bits = operands.len() as u8 - 1;
        let firsts = (0..LANES).map(|lane| 1u64 << (lane as usize * limits.len())).sum::<u64>();
        let mut words = [0; 16];
        (words[0], words[1]) = (firsts as u32, (firsts >> 32) as u32);
        let firsts = self.code.pool.vector(words);
        self.code.push(Kind::Sequence(Box::new(StoreElements { elements, mask, bits, firsts })), &operands);
        Ok(())
    }
}

/// An order for [`PICK`]: for each lane the number of a word in two tables.
fn order(pick: impl Fn(u32) -> u32) -> [u32; 16] {
    std::array::from_fn(|lane| pick(lane as u32))
}

/// In which order loads pick words of rows.
fn load_orders(words: usize) -> Vec<[u32; 16]> {
    match words {
        2 => (0..2).map(|word| order(|lane| 2 * lane + word)).collect(),
        // Word `w` is in rows 0 and 1, or in row 2: first all of the former, then those, or word `w - 32` of the latter.
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

/// In which order stores pick words of values.
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

impl Elements {
    fn count(&self) -> u8 {
        self.limits.len() as u8
    }

    fn word(&self, regs: Regs<'_>, number: u8) -> Register {
        regs.zmm(self.words + number)
    }

    fn temp(&self, regs: Regs<'_>, number: u8) -> Register {
        regs.zmm(self.temps + number)
    }

    /// Leads to what `away` gives unless all lanes have all words in bounds: the last limit is the least.
    fn check<'a>(&self, regs: Regs<'_>, asm: &mut Assembler<'a>, away: impl FnOnce(&mut Assembler<'a>) -> Label) {
        if self.inside {
            return;
        }
        let cold = away(asm);
        let temp = regs.gpr(self.general);
        let last = MemoryOperand::with_base_displ_size(regs.gpr(self.index), i64::from(LANES - 1), 1);
        asm.put(Instruction::with2(Code::Lea_r64_m, temp, last));
        asm.put(match self.limits[self.limits.len() - 1] {
            Ok(limit) => Instruction::with2(Code::Cmp_r64_rm64, temp, regs.gpr(limit)),
            Err(limit) => Instruction::with2(Code::Cmp_rm64_imm32, temp, limit.min(1 << 30).cast_signed()),
        });
        asm.jump_if(ConditionCode::ae, cold);
    }

    /// Prepares [`Elements::row`].
    fn scale_index(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (index, temp) = (regs.gpr(self.index), regs.gpr(self.general));
        let scale = match self.count() {
            3 => 2,
            4 => 1,
            _ => return,
        };
        let multiple = MemoryOperand::with_base_index_scale(index, index, scale);
        asm.put(Instruction::with2(Code::Lea_r64_m, temp, multiple));
    }

    /// A row in memory, as elements are 8 bytes, or the scaled index counts 4 or 8.
    fn row(&self, regs: Regs<'_>, number: u8) -> MemoryOperand {
        let (index, scale) = match self.count() {
            2 => (self.index, 8),
            3 => (self.general, 4),
            _ => (self.general, 8),
        };
        let disp = i64::from(self.disp) + 64 * i64::from(number);
        MemoryOperand::with_base_index_scale_displ_size(regs.gpr(self.base), regs.gpr(index), scale, disp, 1)
    }

    fn load_order(&self, asm: &mut Assembler<'_>, reg: Register, number: usize) {
        let order = asm.constant(self.orders[number], false);
        asm.put(Instruction::with2(Code::EVEX_Vmovdqa32_zmm_k1z_zmmm512, reg, order));
    }

    /// Puts element numbers into temporary 0 and word numbers into temporary 1.
    fn numbers(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (elements, words) = (self.temp(regs, 0), self.temp(regs, 1));
        let add = Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32;
        asm.put(Instruction::with2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, elements, regs.gpr32(self.index)));
        let iota = asm.constant(self.iota, false);
        asm.put(Instruction::with3(add, elements, elements, iota));
        asm.put(Instruction::with3(add, words, elements, elements));
        match self.count() {
            3 => asm.put(Instruction::with3(add, words, words, elements)),
            4 => asm.put(Instruction::with3(add, words, words, words)),
            _ => {}
        }
    }

    /// Sets the mask of lanes that have word `number` in bounds, of those in `among` if that is a register.
    fn in_bounds(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8, among: Register) {
        let limit = asm.scratch(LIMIT_AT, false);
        asm.put(match self.limits[usize::from(number)] {
            Ok(slot) => Instruction::with2(Code::Mov_rm32_r32, limit, regs.gpr32(slot)),
            Err(constant) => Instruction::with2(Code::Mov_rm32_imm32, limit, constant.cast_signed()),
        });
        const LESS: i32 = 1;
        let limit = asm.scratch(LIMIT_AT, true);
        let code = Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8;
        let compare = Instruction::with4(code, regs.mask(self.bounds), self.temp(regs, 0), limit, LESS);
        asm.put_masked(among, false, compare);
    }

    /// Word `number` of each lane's element.
    fn scattered(&self, regs: Regs<'_>, number: u8) -> MemoryOperand {
        let disp = i64::from(self.disp) + 4 * i64::from(number);
        MemoryOperand::with_base_index_scale_displ_size(regs.gpr(self.base), self.temp(regs, 1), 4, disp, 1)
    }
}

/// The first operands become the words.
#[derive(Debug)]
struct LoadElements(Elements);

impl Expand for LoadElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let Self(elements) = self;
        elements.check(regs, asm, Assembler::cold);
        elements.scale_index(regs, asm);
        let word = |number| elements.word(regs, number);
        let temp = |number| elements.temp(regs, number);
        if elements.count() == 4 {
            for number in 0..4 {
                asm.put(Instruction::with2(LOAD, word(number), elements.row(regs, number)));
                elements.load_order(asm, temp(number), usize::from(number / 2));
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
        for number in 0..elements.count() {
            asm.put(Instruction::with2(LOAD, temp(number), elements.row(regs, number)));
        }
        for number in 0..elements.count() {
            let steps = usize::from(elements.count() - 1);
            let first = usize::from(number) * steps;
            elements.load_order(asm, word(number), first);
            asm.put(Instruction::with3(PICK, word(number), temp(0), temp(1)));
            if steps == 2 {
                elements.load_order(asm, temp(3), first + 1);
                asm.put(Instruction::with3(PICK_INTO, word(number), temp(3), temp(2)));
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let Self(elements) = self;
        elements.numbers(regs, asm);
        for number in 0..elements.count() {
            let word = elements.word(regs, number);
            elements.in_bounds(regs, asm, number, Register::None);
            asm.put(Instruction::with3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, word, word, word));
            let gather = Instruction::with2(Code::EVEX_Vpgatherdd_zmm_k1_vm32z, word, elements.scattered(regs, number));
            asm.put_masked(regs.mask(elements.bounds), false, gather);
        }
    }
}

/// Stores the first operands, for all lanes or under a mask.
#[derive(Debug)]
struct StoreElements {
    elements: Elements,
    mask: Option<u8>,
    /// A general register of no account.
    bits: u8,
    /// A bit for each element's first word, of the words of all rows.
    firsts: Constant,
}

impl StoreElements {
    /// Hands the rows to `each`, in temporary 0, with their places.
    fn rows(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        mut each: impl FnMut(&mut Assembler<'_>, MemoryOperand, Register),
    ) {
        let Self { elements, .. } = self;
        elements.scale_index(regs, asm);
        let word = |number| elements.word(regs, number);
        let temp = |number| elements.temp(regs, number);
        for row in 0..elements.count() {
            let number = usize::from(row);
            match elements.count() {
                2 => {
                    elements.load_order(asm, temp(0), number);
                    asm.put(Instruction::with3(PICK, temp(0), word(0), word(1)));
                }
                3 => {
                    elements.load_order(asm, temp(0), 2 * number);
                    asm.put(Instruction::with3(PICK, temp(0), word(0), word(1)));
                    elements.load_order(asm, temp(1), 2 * number + 1);
                    asm.put(Instruction::with3(PICK_INTO, temp(0), temp(1), word(2)));
                }
                _ => {
                    if row % 2 == 0 {
                        let halves = [LOW_HALVES, HIGH_HALVES][number / 2];
                        asm.put(Instruction::with4(HALVES, temp(1), word(0), word(1), halves));
                        asm.put(Instruction::with4(HALVES, temp(2), word(2), word(3), halves));
                    }
                    elements.load_order(asm, temp(0), number % 2);
                    asm.put(Instruction::with3(PICK, temp(0), temp(1), temp(2)));
                }
            }
            each(asm, elements.row(regs, row), temp(0));
        }
    }

    /// Rows for some of the lanes: a bit of the mask becomes one for each word.
    fn masked_rows(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, mask: Register) {
        let bits = regs.gpr(self.bits);
        asm.put(Instruction::with2(Code::VEX_Kmovw_r32_kr, regs.gpr32(self.bits), mask));
        let firsts = asm.constant(self.firsts, false);
        asm.put(Instruction::with3(Code::VEX_Pdep_r64_r64_rm64, bits, bits, firsts));
        let all = (1 << self.elements.count()) - 1;
        asm.put(Instruction::with3(Code::Imul_r64_rm64_imm8, bits, bits, all));
        let lanes = regs.mask(self.elements.bounds);
        self.rows(regs, asm, |asm, place, row| {
            asm.put(Instruction::with2(Code::VEX_Kmovw_kr_r32, lanes, regs.gpr32(self.bits)));
            asm.put_masked(lanes, false, Instruction::with2(STORE, place, row));
            asm.put(Instruction::with2(Code::Shr_rm64_imm8, bits, LANES.cast_signed()));
        });
    }
}

impl Expand for StoreElements {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        if let Some(mask) = self.mask {
            let mask = regs.mask(mask);
            asm.put(Instruction::with2(Code::VEX_Kortestw_kr_kr, mask, mask));
            let cold = asm.cold();
            asm.jump_if(ConditionCode::ae, cold);
        }
        self.elements.check(regs, asm, Assembler::cold);
        self.rows(regs, asm, |asm, place, row| asm.put(Instruction::with2(STORE, place, row)));
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let Self { elements, mask, .. } = self;
        let (apart, done) = (asm.label(), asm.label());
        if let Some(mask) = *mask {
            elements.check(regs, asm, |_| apart);
            self.masked_rows(regs, asm, regs.mask(mask));
            asm.jump(done);
        }
        asm.bind(apart);
        let among = mask.map_or(Register::None, |mask| regs.mask(mask));
        elements.numbers(regs, asm);
        for number in 0..elements.count() {
            elements.in_bounds(regs, asm, number, among);
            let (place, word) = (elements.scattered(regs, number), elements.word(regs, number));
            let scatter = Instruction::with2(Code::EVEX_Vpscatterdd_vm32z_k1_zmm, place, word);
            asm.put_masked(regs.mask(elements.bounds), false, scatter);
        }
        asm.bind(done);
    }
}
