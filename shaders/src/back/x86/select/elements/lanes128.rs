//! Strided word elements by 128-bit lanes, the words of four lanes: loads of whole elements, and stores of whole or
//! partial ones. Bytes between the words are not written.
//!
//! A group is four contiguous lanes, always within one segment. Contiguous elements are accessed by whole 128-bit
//! lanes; words of others are stored one, two or four at a time.

use iced_x86::{Code, Instruction, Register};
use regalloc2::{Operand, RegClass, VReg};

use super::{GroupAddress, OperandSlots, Origins, StoreOperands, VectorSlots};
use crate::back::x86::Isa;
use crate::back::x86::encode::{Assembler, Regs};
use crate::back::x86::select::{Result, Select, VectorIsa};
use crate::back::x86::vcode::{Expand, InstKind};
use crate::simd::Elements;

/// Lanes of a 256-bit register.
const HALF_LANES: u8 = 8;

/// Bytes of a 128-bit lane.
const LANE128_BYTES: i32 = 16;

/// Lanes of a group.
const GROUP: u8 = 4;

/// Shuffle immediates: the even or the odd words of each 128-bit lane of two vectors.
const FIRSTS: i32 = 0x88;
const SECONDS: i32 = 0xdd;

/// Opcodes of the same operations at either register width.
pub(super) struct WidthOpcodes {
    pub load: Code,
    pub insert: Code,
    pub store: Code,
    /// Extracts a 128-bit lane to memory or to a register.
    pub upper: Code,
    pub store_low: Code,
    store_high: Code,
    store_first: Code,
    pub store_word: Code,
    shuffle: Code,
    low_words: Code,
    high_words: Code,
    low_pairs: Code,
    high_pairs: Code,
    copy: Code,
}

const NARROW: WidthOpcodes = WidthOpcodes {
    load: Code::VEX_Vmovups_xmm_xmmm128,
    insert: Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8,
    store: Code::VEX_Vmovups_xmmm128_xmm,
    upper: Code::VEX_Vextractf128_xmmm128_ymm_imm8,
    store_low: Code::VEX_Vmovlps_m64_xmm,
    store_high: Code::VEX_Vmovhps_m64_xmm,
    store_first: Code::VEX_Vmovd_rm32_xmm,
    store_word: Code::VEX_Vpextrd_rm32_xmm_imm8,
    shuffle: Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8,
    low_words: Code::VEX_Vunpcklps_ymm_ymm_ymmm256,
    high_words: Code::VEX_Vunpckhps_ymm_ymm_ymmm256,
    low_pairs: Code::VEX_Vunpcklpd_ymm_ymm_ymmm256,
    high_pairs: Code::VEX_Vunpckhpd_ymm_ymm_ymmm256,
    copy: Code::VEX_Vmovaps_ymm_ymmm256,
};

const WIDE: WidthOpcodes = WidthOpcodes {
    load: Code::EVEX_Vmovups_xmm_k1z_xmmm128,
    insert: Code::EVEX_Vinsertf32x4_zmm_k1z_zmm_xmmm128_imm8,
    store: Code::EVEX_Vmovups_xmmm128_k1z_xmm,
    upper: Code::EVEX_Vextractf32x4_xmmm128_k1z_zmm_imm8,
    store_low: Code::EVEX_Vmovlps_m64_xmm,
    store_high: Code::EVEX_Vmovhps_m64_xmm,
    store_first: Code::EVEX_Vmovd_rm32_xmm,
    store_word: Code::EVEX_Vpextrd_rm32_xmm_imm8,
    shuffle: Code::EVEX_Vshufps_zmm_k1z_zmm_zmmm512b32_imm8,
    low_words: Code::EVEX_Vunpcklps_zmm_k1z_zmm_zmmm512b32,
    high_words: Code::EVEX_Vunpckhps_zmm_k1z_zmm_zmmm512b32,
    low_pairs: Code::EVEX_Vunpcklpd_zmm_k1z_zmm_zmmm512b64,
    high_pairs: Code::EVEX_Vunpckhpd_zmm_k1z_zmm_zmmm512b64,
    copy: Code::EVEX_Vmovaps_zmm_k1z_zmmm512,
};

impl Isa {
    pub(super) fn codes(self) -> &'static WidthOpcodes {
        match self {
            Self::Avx512 => &WIDE,
            Self::Avx2 => &NARROW,
        }
    }
}

impl<V: VectorIsa> Select<'_, V> {
    /// Loads elements into the registers of their words.
    pub(in crate::back::x86::select) fn load_by_lanes128(&mut self, elements: &Elements, results: &[VReg]) -> Result {
        let mut operands: OperandSlots = results.iter().map(|&result| Operand::reg_def_at_start(result)).collect();
        let address = self.group_address(elements, &mut operands)?;
        let vectors = self.vectors::<2>(&mut operands);
        self.code.push(InstKind::Sequence(Box::new(LoadLanes { isa: V::ISA, address, vectors })), &operands);
        Ok(())
    }

    /// Stores the registers of words, for all lanes or those whose bits are set.
    pub(in crate::back::x86::select) fn store_by_lanes128(
        &mut self,
        elements: &Elements,
        values: &[VReg],
        bits: Option<VReg>,
    ) -> Result {
        let StoreOperands { mut operands, bits, address } = self.store_operands(elements, values, bits)?;
        let vectors = self.vectors::<4>(&mut operands);
        self.code.push(InstKind::Sequence(Box::new(StoreLanes { isa: V::ISA, address, vectors, bits })), &operands);
        Ok(())
    }

    /// Adds temporary vector registers; returns the slot of the first.
    pub(in crate::back::x86::select) fn vectors<const COUNT: usize>(&mut self, operands: &mut OperandSlots) -> u8 {
        let first = operands.len() as u8;
        for _ in 0..COUNT {
            operands.add(Operand::reg_temp(self.code.vreg(RegClass::Float)));
        }
        first
    }
}

/// Transposes four vectors within each 128-bit lane, with two temporaries.
pub(in crate::back::x86::select) fn transpose(
    isa: Isa,
    asm: &mut Assembler<'_>,
    [a, b, c, d]: [Register; 4],
    [low, high]: [Register; 2],
) {
    let codes = isa.codes();
    for (code, to, [from, other]) in [
        (codes.low_words, low, [a, b]),
        (codes.high_words, high, [a, b]),
        (codes.low_words, a, [c, d]),
        (codes.high_words, b, [c, d]),
        (codes.high_pairs, d, [high, b]),
        (codes.low_pairs, c, [high, b]),
        (codes.high_pairs, b, [low, a]),
        (codes.low_pairs, a, [low, a]),
    ] {
        asm.put(Instruction::with3(code, to, from, other));
    }
}

/// Defines the first operands, one vector per word.
#[derive(Debug)]
struct LoadLanes {
    isa: Isa,
    address: GroupAddress,
    /// The first of two temporary vector registers.
    vectors: u8,
}

impl LoadLanes {
    fn words(&self) -> VectorSlots {
        VectorSlots { isa: self.isa, first: 0 }
    }

    fn temp(&self, regs: Regs<'_>, number: u8) -> Register {
        regs.view(self.vectors + number, self.isa.view())
    }
}

impl Expand for LoadLanes {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (codes, words, count) = (self.isa.codes(), self.words(), self.address.count());
        self.address.check(regs, asm, Assembler::cold);
        let mut origins = Origins::default();
        if self.address.are_halves() {
            for half in 0..2 {
                let memory = self.address.lane_at(regs, asm, &mut origins, half * HALF_LANES, 0);
                let to = words.reg(regs, 0, half % words.halves());
                asm.put(match (self.isa, half) {
                    (Isa::Avx512, 0) => {
                        Instruction::with2(Code::EVEX_Vmovups_ymm_k1z_ymmm256, regs.ymm(words.first), memory)
                    }
                    (Isa::Avx512, _) => {
                        Instruction::with4(Code::EVEX_Vinsertf64x4_zmm_k1z_zmm_ymmm256_imm8, to, to, memory, 1)
                    }
                    (Isa::Avx2, _) => Instruction::with2(Code::VEX_Vmovups_ymm_ymmm256, to, memory),
                });
            }
            return;
        }
        for half in 0..words.halves() {
            // Lane `q` (128 bits) of register `n` gets the n-th 16 bytes of group `q`; with four words, those of its
            // n-th lane.
            for lane128 in 0..words.lanes128() {
                let lane = (half * words.lanes128() + lane128) * GROUP;
                for number in 0..count {
                    let memory = match count {
                        4 => self.address.lane_at(regs, asm, &mut origins, lane + number, 0),
                        _ => self.address.lane_at(regs, asm, &mut origins, lane, LANE128_BYTES * i32::from(number)),
                    };
                    let to = words.reg(regs, number, half);
                    asm.put(match lane128 {
                        0 => Instruction::with2(codes.load, regs.xmm(words.slot(number, half)), memory),
                        _ => Instruction::with4(codes.insert, to, to, memory, i32::from(lane128)),
                    });
                }
            }
            let word = |number| words.reg(regs, number, half);
            let [low, high] = [0, 1].map(|number| self.temp(regs, number));
            let shuffle = |asm: &mut Assembler<'_>, to, a, b, order| {
                asm.put(Instruction::with4(codes.shuffle, to, a, b, order));
            };
            match count {
                1 => {}
                2 => {
                    shuffle(asm, low, word(0), word(1), SECONDS);
                    shuffle(asm, word(0), word(0), word(1), FIRSTS);
                    asm.put(Instruction::with2(codes.copy, word(1), low));
                }
                3 => {
                    shuffle(asm, low, word(1), word(2), 0x9e);
                    shuffle(asm, high, word(0), word(1), 0x49);
                    shuffle(asm, word(0), word(0), low, 0x8c);
                    shuffle(asm, word(1), high, low, 0xd8);
                    shuffle(asm, word(2), high, word(2), 0xcd);
                }
                _ => transpose(self.isa, asm, [0, 1, 2, 3].map(word), [low, high]),
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.address.load_lanes(regs, asm, self.words());
    }
}

/// Stores the first operands, for all lanes or those whose bit is set.
#[derive(Debug)]
struct StoreLanes {
    isa: Isa,
    address: GroupAddress,
    /// The first of four temporary vector registers.
    vectors: u8,
    bits: Option<u8>,
}

/// The state of a store during emission.
struct StoreEmitter<'a, 'r> {
    store: &'a StoreLanes,
    regs: Regs<'r>,
    half: u8,
    origins: Origins,
}

impl StoreEmitter<'_, '_> {
    fn temp(&self, number: u8) -> Register {
        self.regs.view(self.store.vectors + number, self.store.isa.view())
    }

    fn word(&self, number: u8) -> Register {
        self.store.words().reg(self.regs, number, self.half)
    }

    fn put(&self, asm: &mut Assembler<'_>, code: Code, to: u8, from: Register, other: Register) {
        asm.put(Instruction::with3(code, self.temp(to), from, other));
    }

    fn shuffle(&self, asm: &mut Assembler<'_>, to: u8, from: Register, other: Register, order: i32) {
        asm.put(Instruction::with4(self.store.isa.codes().shuffle, self.temp(to), from, other, order));
    }

    /// The 128-bit lanes of this half, each with the first lane of its group.
    fn groups(&self) -> impl Iterator<Item = (u8, u8)> + use<> {
        let (lanes128, half) = (self.store.words().lanes128(), self.half);
        (0..lanes128).map(move |lane128| (lane128, (half * lanes128 + lane128) * GROUP))
    }

    /// Stores the 128-bit lanes of temporary 2, each at offset `bytes` from the element of lane `lane` of its group.
    fn lanes128(&mut self, asm: &mut Assembler<'_>, lane: u8, bytes: i32) {
        self.lanes128_of(asm, self.store.vectors + 2, lane, bytes);
    }

    /// As [`StoreEmitter::lanes128`], for the register in a slot.
    fn lanes128_of(&mut self, asm: &mut Assembler<'_>, slot: u8, lane: u8, bytes: i32) {
        let codes = self.store.isa.codes();
        let from = self.regs.view(slot, self.store.isa.view());
        for (lane128, first) in self.groups() {
            let memory = self.store.address.lane_at(self.regs, asm, &mut self.origins, first + lane, bytes);
            asm.put(match lane128 {
                0 => Instruction::with2(codes.store, memory, self.regs.xmm(slot)),
                _ => Instruction::with3(codes.upper, memory, from, i32::from(lane128)),
            });
        }
    }

    /// A 128-bit lane of a vector: in place if it is the lowest, else extracted into temporary 3.
    fn lane128(&self, asm: &mut Assembler<'_>, slot: u8, lane128: u8) -> Register {
        self.store.words().lane128(self.regs, asm, slot, lane128, self.store.vectors + 3)
    }

    /// Contiguous elements.
    fn dense(&mut self, asm: &mut Assembler<'_>) {
        let codes = self.store.isa.codes();
        match self.store.address.count() {
            1 => self.lanes128_of(asm, self.store.words().slot(0, self.half), 0, 0),
            2 => {
                for (number, code) in (0..).zip([codes.low_words, codes.high_words]) {
                    self.put(asm, code, 2, self.word(0), self.word(1));
                    self.lanes128(asm, 0, LANE128_BYTES * number);
                }
            }
            3 => {
                let [a, b, c] = [0, 1, 3].map(|number| self.temp(number));
                self.shuffle(asm, 0, self.word(0), self.word(1), FIRSTS);
                self.shuffle(asm, 1, self.word(1), self.word(2), SECONDS);
                self.shuffle(asm, 3, self.word(2), self.word(0), 0xd8);
                let rows = [([a, c], FIRSTS), ([b, a], 0xd8), ([c, b], SECONDS)];
                for (number, ([x, y], order)) in (0..).zip(rows) {
                    self.shuffle(asm, 2, x, y, order);
                    self.lanes128(asm, 0, LANE128_BYTES * number);
                }
            }
            _ => self.fours(asm),
        }
    }

    /// Four words of each lane.
    fn fours(&mut self, asm: &mut Assembler<'_>) {
        let codes = self.store.isa.codes();
        for (words, lane) in [(codes.low_words, 0), (codes.high_words, 2)] {
            self.put(asm, words, 0, self.word(0), self.word(1));
            self.put(asm, words, 1, self.word(2), self.word(3));
            for (pairs, lane) in [(codes.low_pairs, lane), (codes.high_pairs, lane + 1)] {
                self.put(asm, pairs, 2, self.temp(0), self.temp(1));
                self.lanes128(asm, lane, 0);
            }
        }
    }

    /// Words 0 and 1 of each lane.
    fn twos(&mut self, asm: &mut Assembler<'_>) {
        let codes = self.store.isa.codes();
        for (words, lane) in [(codes.low_words, 0), (codes.high_words, 2)] {
            self.put(asm, words, 2, self.word(0), self.word(1));
            for (lane128, first) in self.groups() {
                let pairs = self.lane128(asm, self.store.vectors + 2, lane128);
                for (code, lane) in [(codes.store_low, lane), (codes.store_high, lane + 1)] {
                    let memory = self.store.address.lane_at(self.regs, asm, &mut self.origins, first + lane, 0);
                    asm.put(Instruction::with2(code, memory, pairs));
                }
            }
        }
    }

    /// One word of each lane.
    fn ones(&mut self, asm: &mut Assembler<'_>, number: u8) {
        let codes = self.store.isa.codes();
        for (lane128, first) in self.groups() {
            let words = self.lane128(asm, self.store.words().slot(number, self.half), lane128);
            for lane in 0..GROUP {
                let bytes = 4 * i32::from(number);
                let memory = self.store.address.lane_at(self.regs, asm, &mut self.origins, first + lane, bytes);
                asm.put(match lane {
                    0 => Instruction::with2(codes.store_first, memory, words),
                    _ => Instruction::with3(codes.store_word, memory, words, i32::from(lane)),
                });
            }
        }
    }
}

impl StoreLanes {
    fn words(&self) -> VectorSlots {
        VectorSlots { isa: self.isa, first: 0 }
    }

    fn is_dense(&self) -> bool {
        self.address.words_apart() == u32::from(self.address.count())
    }
}

impl Expand for StoreLanes {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.address.check_store(regs, asm, self.bits);
        if self.address.are_halves() {
            let (words, mut origins) = (self.words(), Origins::default());
            for half in 0..2 {
                let memory = self.address.lane_at(regs, asm, &mut origins, half * HALF_LANES, 0);
                let from = words.reg(regs, 0, half % words.halves());
                asm.put(match (self.isa, half) {
                    (Isa::Avx512, 0) => {
                        Instruction::with2(Code::EVEX_Vmovups_ymmm256_k1z_ymm, memory, regs.ymm(words.first))
                    }
                    (Isa::Avx512, _) => {
                        Instruction::with3(Code::EVEX_Vextractf64x4_ymmm256_k1z_zmm_imm8, memory, from, 1)
                    }
                    (Isa::Avx2, _) => Instruction::with2(Code::VEX_Vmovups_ymmm256_ymm, memory, from),
                });
            }
            return;
        }
        let mut writer = StoreEmitter { store: self, regs, half: 0, origins: Origins::default() };
        for half in 0..self.words().halves() {
            writer.half = half;
            match self.address.count() {
                _ if self.is_dense() => writer.dense(asm),
                1 => writer.ones(asm, 0),
                2 => writer.twos(asm),
                3 => {
                    writer.twos(asm);
                    writer.ones(asm, 2);
                }
                _ => writer.fours(asm),
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        self.address.store_lanes(regs, asm, self.words(), self.bits);
    }
}
