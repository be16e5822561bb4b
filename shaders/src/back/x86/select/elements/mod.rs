//! Interleave groups on both instruction sets: their addresses, and the path that accesses one lane after the other,
//! for ends of buffers and partial masks.
//!
//! [`lanes128`] has the fast path for words, by 128-bit lanes of registers, [`subword`] the one for bytes and halves;
//! AVX-512 has whole rows for most groups of words.

mod lanes128;
mod subword;

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, RegClass, VReg};
use smallvec::SmallVec;

use super::super::Isa;
use super::super::encode::{Assembler, Label, Regs};
use super::registers::OperandSlots;
use super::subword::put;
use super::{Result, Select, VectorIsa};
use crate::back::x86::lane_groups::VectorRegisters;
use crate::ir::Width;
use crate::simd::{Elements, LANES, Spacing};

pub(super) use lanes128::transpose;

/// Bytes of one word of all lanes in the scratch area, and the offset of the remaining lanes' bits, after four of
/// those.
const WORD_BYTES: i32 = 4 * LANES as i32;
const LEFT_AT: i32 = 4 * WORD_BYTES;

/// Operands of a store of registers: their slots are the first.
struct StoreOperands {
    operands: OperandSlots,
    /// The slot of the bits of the lanes.
    bits: Option<u8>,
    address: GroupAddress,
}

/// The address of an interleave group, with slots for the registers.
#[derive(Debug)]
pub(super) struct GroupAddress {
    base: u8,
    disp: i32,
    index: u8,
    /// Lanes of a segment, and the slot of the step between segments.
    segments: Option<(u8, u8)>,
    spacing: Spacing,
    stride: u32,
    width: Width,
    limits: SmallVec<[Result<u8, u32>; 4]>,
    /// The first of four temporary general registers.
    generals: u8,
    /// Whether all elements are provably in bounds.
    inside: bool,
}

/// The index of a segment's addresses, to which the base and a displacement are added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    index: Register,
    scale: u32,
}

/// The origins that are in registers: that of the last even and that of the last odd segment, with the segments.
#[derive(Default)]
pub(super) struct Origins([Option<(u8, Origin)>; 2]);

impl<V: VectorIsa> Select<'_, V> {
    /// Operands of the store of registers, for all lanes or those whose bits are set.
    fn store_operands(&mut self, elements: &Elements, values: &[VReg], bits: Option<VReg>) -> Result<StoreOperands> {
        let mut operands: OperandSlots = values.iter().map(|&value| Operand::reg_use(value)).collect();
        let bits = bits.map(|bits| operands.add(Operand::reg_use(bits)));
        let address = self.group_address(elements, &mut operands)?;
        Ok(StoreOperands { operands, bits, address })
    }

    /// Adds the operands of an interleave group after those that there are.
    pub(super) fn group_address(&mut self, elements: &Elements, operands: &mut OperandSlots) -> Result<GroupAddress> {
        let (base, disp) = self.base(elements.base, 0)?;
        // The last limit is the least.
        let last = elements.limits.last().filter(|_| elements.segments.is_none());
        let inside = match (last, elements.spacing) {
            (Some(&limit), Spacing::Bytes(_)) => self.inside(elements.index, limit)?.is_some(),
            _ => false,
        };
        let index = self.reg(elements.index)?;
        let mut limits: SmallVec<[Result<VReg, u32>; 4]> = SmallVec::new();
        for &limit in &elements.limits {
            limits.push(match self.constant(limit) {
                Some(limit) => Err(limit as u32),
                None => Ok(self.reg(limit)?),
            });
        }
        let step = match elements.segments {
            Some(segments) => Some((segments.lanes, self.reg(segments.step)?)),
            None => None,
        };
        let mut slot = |operand| operands.add(operand);
        let (base, index) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(index)));
        let segments = step.map(|(lanes, step)| (lanes, slot(Operand::reg_use(step))));
        let limits = limits.into_iter().map(|limit| limit.map(|reg| slot(Operand::reg_use(reg)))).collect();
        let [generals, ..] = [(); 4].map(|()| slot(Operand::reg_temp(self.code.vreg(RegClass::Int))));
        self.code.scratch = true;
        let (spacing, stride, width) = (elements.spacing, elements.stride(), elements.width);
        Ok(GroupAddress { base, disp, index, segments, spacing, stride, width, limits, generals, inside })
    }
}

impl GroupAddress {
    /// Words or sub-words of an element.
    pub(super) fn count(&self) -> u8 {
        self.limits.len() as u8
    }

    /// The stride in words.
    pub(super) fn words_apart(&self) -> u32 {
        self.stride / 4
    }

    /// Whether the elements are one word each, in two segments of contiguous words.
    pub(super) fn are_halves(&self) -> bool {
        self.count() == 1 && self.stride == 4 && self.segment_lanes() == LANES as u8 / 2
    }

    fn general(&self, regs: Regs<'_>, number: u8) -> Register {
        regs.gpr(self.generals + number)
    }

    fn segment_lanes(&self) -> u8 {
        self.segments.map_or(LANES as u8, |segments| segments.0)
    }

    /// The segment of a lane, and the offset in bytes of its element from the segment's first.
    fn element_offset(&self, lane: u8) -> (u8, i32) {
        let lanes = self.segment_lanes();
        (lane / lanes, i32::from(lane % lanes) * self.stride.cast_signed())
    }

    /// The index of a segment's first lane: in that general register, unless it is the first segment.
    fn segment_index(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, segment: u8, to: u8) -> Register {
        let index = regs.gpr(self.index);
        let Some((_, step)) = self.segments.filter(|_| segment > 0) else { return index };
        let (wide, narrow) = (self.general(regs, to), regs.gpr32(self.generals + to));
        let times = u32::from(segment.min(2));
        let sum = MemoryOperand::with_base_index_scale(index, regs.gpr(step), times);
        asm.put(Instruction::with2(Code::Lea_r32_m, narrow, sum));
        if segment == 3 {
            asm.put(Instruction::with2(Code::Add_r32_rm32, narrow, regs.gpr32(step)));
        }
        wide
    }

    /// Jumps to the label that `away` returns unless all words of all lanes are in bounds: the last limit is the least.
    pub(super) fn check<'a>(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'a>,
        away: impl FnOnce(&mut Assembler<'a>) -> Label,
    ) {
        if self.inside {
            return;
        }
        let away = away(asm);
        let lanes = self.segment_lanes();
        let lane = i64::from(lanes - 1);
        let last = match self.spacing {
            Spacing::Bytes(_) => lane,
            Spacing::Words(words) => lane * i64::from(words) + i64::from(self.count() - 1),
        };
        for segment in 0..LANES as u8 / lanes {
            let number = self.segment_index(regs, asm, segment, 1);
            let temp = self.general(regs, 0);
            let last = MemoryOperand::with_base_displ_size(number, last, 1);
            asm.put(Instruction::with2(Code::Lea_r64_m, temp, last));
            asm.put(match self.limits[self.limits.len() - 1] {
                Ok(limit) => Instruction::with2(Code::Cmp_r64_rm64, temp, regs.gpr(limit)),
                // A lower limit than the actual one only selects the cold path.
                Err(limit) => Instruction::with2(Code::Cmp_rm64_imm32, temp, limit.min(1 << 30).cast_signed()),
            });
            asm.jump_if(ConditionCode::ae, away);
        }
    }

    /// Jumps to the cold path unless all lanes are active, by their bits, and in bounds.
    pub(super) fn check_store(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, bits: Option<u8>) {
        if let Some(bits) = bits {
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(bits), (1 << LANES) - 1));
            let cold = asm.cold();
            asm.jump_if(ConditionCode::ne, cold);
        }
        self.check(regs, asm, Assembler::cold);
    }

    /// The origin of a segment, which is computed if it is not in registers.
    pub(super) fn origin(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, origins: &mut Origins, segment: u8) -> Origin {
        let Origins(kept) = origins;
        let pair = segment % 2;
        if let Some((_, origin)) = kept[usize::from(pair)].filter(|kept| kept.0 == segment) {
            return origin;
        }
        let number = self.segment_index(regs, asm, segment, 2 * pair + 1);
        let (factor, scale) = match self.spacing {
            Spacing::Words(_) => (1, self.width.bytes()),
            Spacing::Bytes(bytes) => {
                let scale = 1 << bytes.trailing_zeros().min(3);
                (bytes / scale, scale)
            }
        };
        let to = self.general(regs, 2 * pair);
        match factor {
            1 => {}
            2 | 3 | 5 | 9 => {
                let multiple = MemoryOperand::with_base_index_scale(number, number, factor - 1);
                asm.put(Instruction::with2(Code::Lea_r64_m, to, multiple));
            }
            _ => asm.put(Instruction::with3(Code::Imul_r64_rm64_imm32, to, number, factor.cast_signed())),
        }
        let origin = Origin { index: if factor == 1 { number } else { to }, scale };
        kept[usize::from(pair)] = Some((segment, origin));
        origin
    }

    /// The address at an offset in bytes from an origin.
    pub(super) fn at(&self, regs: Regs<'_>, origin: Origin, bytes: i32) -> MemoryOperand {
        let disp = i64::from(self.disp) + i64::from(bytes);
        MemoryOperand::with_base_index_scale_displ_size(regs.gpr(self.base), origin.index, origin.scale, disp, 1)
    }

    /// The address at an offset in bytes from the beginning of a lane's element.
    fn lane_at(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        origins: &mut Origins,
        lane: u8,
        bytes: i32,
    ) -> MemoryOperand {
        let (segment, before) = self.element_offset(lane);
        let origin = self.origin(regs, asm, origins, segment);
        self.at(regs, origin, before + bytes)
    }

    /// Accesses the words of one lane after the other, of all lanes or of those whose bits are set: `each` gets the
    /// address of a word in memory, its address in the scratch area, a register, and a function that jumps to a label
    /// if the word is out of bounds.
    fn lane_by_lane(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        bits: Option<u8>,
        each: impl Fn(&mut Assembler<'_>, MemoryOperand, MemoryOperand, Register, &dyn Fn(&mut Assembler<'_>, Label)),
    ) {
        let [lane, number, place, word] = [0, 1, 2, 3].map(|number| self.general(regs, number));
        let narrow = |reg: Register| reg.full_register32();
        let (again, done) = (asm.label(), asm.label());
        let left = asm.scratch(LEFT_AT, false);
        asm.put(match bits {
            Some(bits) => Instruction::with2(Code::Mov_rm32_r32, left, regs.gpr32(bits)),
            None => Instruction::with2(Code::Mov_rm32_imm32, left, 0xffff),
        });
        asm.bind(again);
        asm.put(Instruction::with2(Code::Tzcnt_r32_rm32, narrow(lane), left));
        asm.jump_if(ConditionCode::b, done);
        asm.put(Instruction::with2(Code::VEX_Blsr_r32_rm32, narrow(word), left));
        asm.put(Instruction::with2(Code::Mov_rm32_r32, left, narrow(word)));
        self.lane_index(regs, asm);
        let base = regs.gpr(self.base);
        if let Spacing::Bytes(bytes) = self.spacing {
            asm.put(Instruction::with3(Code::Imul_r64_rm64_imm32, place, number, bytes.cast_signed()));
        }
        for (count, &limit) in (0..).zip(&self.limits) {
            let (disp, bytes) = (i64::from(self.disp), count * self.width.bytes().cast_signed());
            let (checked, memory) = match self.spacing {
                Spacing::Bytes(_) => (
                    number,
                    MemoryOperand::with_base_index_scale_displ_size(base, place, 1, disp + i64::from(bytes), 1),
                ),
                Spacing::Words(_) => {
                    let next = MemoryOperand::with_base_displ_size(number, i64::from(count), 1);
                    asm.put(Instruction::with2(Code::Lea_r32_m, narrow(place), next));
                    let scale = self.width.bytes();
                    (place, MemoryOperand::with_base_index_scale_displ_size(base, place, scale, disp, 1))
                }
            };
            let at = i64::from(WORD_BYTES * count);
            let kept = MemoryOperand::with_base_index_scale_displ_size(Register::RSP, lane, 4, at, 1);
            each(asm, memory, kept, narrow(word), &|asm, beyond| {
                asm.put(match limit {
                    Ok(limit) => Instruction::with2(Code::Cmp_r32_rm32, narrow(checked), regs.gpr32(limit)),
                    Err(limit) => Instruction::with2(Code::Cmp_rm32_imm32, narrow(checked), limit.cast_signed()),
                });
                asm.jump_if(ConditionCode::ae, beyond);
            });
        }
        asm.jump(again);
        asm.bind(done);
    }

    /// Computes the index of the lane in the first general register into the second; clobbers the third.
    fn lane_index(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [lane, number, segment] = [0, 1, 2].map(|number| regs.gpr32(self.generals + number));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, number, lane));
        if let Some((lanes, step)) = self.segments {
            asm.put(Instruction::with2(Code::Mov_r32_rm32, segment, lane));
            asm.put(Instruction::with2(Code::Shr_rm32_imm8, segment, lanes.trailing_zeros()));
            asm.put(Instruction::with2(Code::Imul_r32_rm32, segment, regs.gpr32(step)));
            asm.put(Instruction::with2(Code::And_rm32_imm8, number, i32::from(lanes) - 1));
        }
        if let Spacing::Words(words) = self.spacing {
            asm.put(Instruction::with3(Code::Imul_r32_rm32_imm32, number, number, words.cast_signed()));
        }
        if self.segments.is_some() {
            asm.put(Instruction::with2(Code::Add_r32_rm32, number, segment));
        }
        asm.put(Instruction::with2(Code::Add_r32_rm32, number, regs.gpr32(self.index)));
    }

    /// Loads one lane after the other: each word if it is in bounds, else 0.
    pub(super) fn load_lanes(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, words: VectorSlots) {
        let load = match self.width {
            Width::Byte => Code::Movzx_r32_rm8,
            Width::Half => Code::Movzx_r32_rm16,
            Width::Word => Code::Mov_r32_rm32,
        };
        self.lane_by_lane(regs, asm, None, |asm, memory, kept, word, check| {
            let beyond = asm.label();
            asm.put(Instruction::with2(Code::Mov_r32_imm32, word, 0));
            check(asm, beyond);
            asm.put(Instruction::with2(load, word, memory));
            asm.bind(beyond);
            asm.put(Instruction::with2(Code::Mov_rm32_r32, kept, word));
        });
        (0..self.count()).for_each(|number| words.fetch(regs, asm, number));
    }

    /// Stores one lane after the other, of all lanes or of those whose bits are set.
    pub(super) fn store_lanes(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, words: VectorSlots, bits: Option<u8>) {
        (0..self.count()).for_each(|number| words.keep(regs, asm, number));
        self.lane_by_lane(regs, asm, bits, |asm, memory, kept, word, check| {
            let beyond = asm.label();
            check(asm, beyond);
            asm.put(Instruction::with2(Code::Mov_r32_rm32, word, kept));
            put(asm, self.width, memory, word);
            asm.bind(beyond);
        });
    }
}

/// Vectors in consecutive slots from the first one on; of two registers, the lower half comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorSlots {
    pub isa: Isa,
    pub first: u8,
}

impl VectorSlots {
    /// Registers per vector.
    fn halves(self) -> u8 {
        self.isa.registers_per_vector()
    }

    /// 128-bit lanes per register.
    fn lanes128(self) -> u8 {
        4 / self.halves()
    }

    fn slot(self, number: u8, half: u8) -> u8 {
        self.first + number * self.halves() + half
    }

    /// A register of vector `number`.
    fn reg(self, regs: Regs<'_>, number: u8, half: u8) -> Register {
        regs.view(self.slot(number, half), self.isa.view())
    }

    fn keep(self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) {
        let vector = [self.slot(number, 0), self.slot(number, self.halves() - 1)];
        VectorRegisters { isa: self.isa, vector, temp: 0 }.keep(regs, asm, WORD_BYTES * i32::from(number));
    }

    /// A 128-bit lane of the register in a slot: in place if it is the lowest, else extracted into the temporary.
    fn lane128(self, regs: Regs<'_>, asm: &mut Assembler<'_>, slot: u8, number: u8, temp: u8) -> Register {
        if number == 0 {
            return regs.xmm(slot);
        }
        let (to, from) = (regs.xmm(temp), regs.view(slot, self.isa.view()));
        asm.put(Instruction::with3(self.isa.codes().upper, to, from, i32::from(number)));
        to
    }

    fn fetch(self, regs: Regs<'_>, asm: &mut Assembler<'_>, number: u8) {
        let load = match self.isa {
            Isa::Avx512 => Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512,
            Isa::Avx2 => Code::VEX_Vmovdqu_ymm_ymmm256,
        };
        for half in 0..self.halves() {
            let kept = asm.scratch(WORD_BYTES * i32::from(number) + 32 * i32::from(half), false);
            asm.put(Instruction::with2(load, self.reg(regs, number, half), kept));
        }
    }
}
