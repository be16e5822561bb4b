//! Contiguous bytes and halves, and scatters of them, on both instruction sets. Only the addressed bytes are written.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, RegClass, VReg};

use super::registers::OperandSlots;
use super::row::jump_unless_inside;
use super::{Result, Select, VectorIsa};
use crate::back::x86::Isa;
use crate::back::x86::atomic::{INDEX_AT, LaneMemory, VALUE_AT};
use crate::back::x86::encode::{Assembler, Label, Regs};
use crate::back::x86::lane_groups::VectorRegisters;
use crate::back::x86::pool::PooledConstant;
use crate::back::x86::vcode::{Expand, InstKind};
use crate::ir::{Op, Width};
use crate::simd::{Inst, InstData, LANES, LaneAddress, Row, Value};

/// A row's address with slots for its registers.
#[derive(Clone, Copy, Debug)]
struct RowAddress {
    isa: Isa,
    width: Width,
    base: u8,
    disp: i32,
    index: u8,
    limit: Result<u8, u32>,
    /// Temporary general registers.
    temps: [u8; 4],
}

impl<V: VectorIsa> Select<'_, V> {
    fn row_address(&mut self, row: &Row, operands: &mut OperandSlots) -> Result<RowAddress> {
        let (base, disp) = self.base(row.base, 0)?;
        let index = self.reg(row.index)?;
        let limit = match self.constant(row.limit) {
            Some(limit) => Err(limit as u32),
            None => Ok(self.reg(row.limit)?),
        };
        let temps = [(); 4].map(|()| Operand::reg_temp(self.general()));
        let (base, index) = (operands.add(Operand::reg_use(base)), operands.add(Operand::reg_use(index)));
        let limit = limit.map_or_else(Err, |reg| Ok(operands.add(Operand::reg_use(reg))));
        let temps = temps.map(|temp| operands.add(temp));
        self.code.scratch = true;
        Ok(RowAddress { isa: V::ISA, width: row.width, base, disp, index, limit, temps })
    }

    /// Loads contiguous sub-words; of halves that only a conversion to floats uses, its floats.
    pub(super) fn load_subword_row(&mut self, inst: Inst, row: &Row) -> Result {
        let converted = self.floats_of(inst, row);
        let results = V::define(self, self.kernel.results[converted.unwrap_or(inst)][0]);
        let mut operands: OperandSlots =
            results.as_ref().iter().map(|&result| Operand::reg_def_at_start(result)).collect();
        let place = self.row_address(row, &mut operands)?;
        let floats = converted.is_some();
        self.code.floats |= floats;
        self.code.push(InstKind::Sequence(Box::new(LoadSubwordRow { place, floats })), &operands);
        Ok(())
    }

    /// The conversion to floats that is the only use of a row of halves, if there is one.
    fn floats_of(&self, load: Inst, row: &Row) -> Option<Inst> {
        /// Limit of instructions to search: the two are usually adjacent.
        const NEAR: usize = 32;
        let result = self.kernel.results[load][0];
        if row.width != Width::Half || !self.uses.single_use(result, self.block) {
            return None;
        }
        let insts = &self.kernel.blocks[self.block].insts;
        let mut after = insts.iter().skip_while(|&&inst| inst != load).skip(1).take(NEAR).copied();
        after.find(|&inst| match &self.kernel.insts[inst] {
            InstData::Pure { op: Op::HalfFromBits, args } => args[0] == result,
            _ => false,
        })
    }

    /// The operand of a deferred conversion of floats to halves that only this row uses.
    fn halves_of(&mut self, row: &Row, value: Value) -> Option<Value> {
        let Some((inst, InstData::Pure { op: Op::HalfBits, args })) = self.deferred_def(value) else { return None };
        if row.width != Width::Half {
            return None;
        }
        self.deferred[inst] = 0;
        Some(args[0])
    }

    /// Stores contiguous sub-words; a deferred conversion of floats to halves is merged.
    pub(super) fn store_subword_row(&mut self, row: &Row, value: Value, mask: Value) -> Result {
        let bits = if self.is_all(mask) { None } else { Some(V::mask_bits(self, mask)?) };
        let converted = self.halves_of(row, value);
        let value = V::registers(self, converted.unwrap_or(value))?;
        let floats = converted.is_some();
        self.code.floats |= floats;
        let mut operands: OperandSlots = value.as_ref().iter().map(|&half| Operand::reg_use(half)).collect();
        let place = self.row_address(row, &mut operands)?;
        let bits = bits.map(|bits| operands.add(Operand::reg_use(bits)));
        let vectors = [(); 2].map(|()| Operand::reg_temp(self.code.vreg(RegClass::Float)));
        let vectors = vectors.map(|temp| operands.add(temp));
        let order = self.code.pool.vector(match row.width {
            Width::Byte => std::array::from_fn(|word| if word % 4 == 0 { 0x0c08_0400 } else { 0x8080_8080 }),
            _ => std::array::from_fn(|word| [0x0504_0100, 0x0d0c_0908, 0x8080_8080, 0x8080_8080][word % 4]),
        });
        self.code
            .push(InstKind::Sequence(Box::new(StoreSubwordRow { place, bits, vectors, order, floats })), &operands);
        Ok(())
    }

    /// Stores sub-words lane by lane.
    pub(super) fn scatter_subwords(&mut self, width: Width, lanes: &LaneAddress, value: Value, mask: Value) -> Result {
        let bits = V::mask_bits(self, mask)?;
        let halves = [self.halves(lanes.index)?, self.halves(value)?];
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let (scatter, operands) = self.lane_stores(width, (base, disp, lanes.scale), halves, bits);
        self.code.push(InstKind::Sequence(Box::new(scatter)), &operands);
        Ok(())
    }

    /// Stores lane by lane, to an address (base, displacement, scale) and with registers of indices and words.
    pub(super) fn lane_stores(
        &mut self,
        width: Width,
        (base, disp, scale): (VReg, i32, u8),
        halves: [[VReg; 2]; 2],
        bits: VReg,
    ) -> (LaneStores, OperandSlots) {
        let mut operands = OperandSlots::default();
        let halves = halves.map(|pair| pair.map(|half| operands.add(Operand::reg_use(half))));
        let (base, bits) = (operands.add(Operand::reg_use(base)), operands.add(Operand::reg_use(bits)));
        let temps = [(); 3].map(|()| operands.add(Operand::reg_temp(self.code.vreg(RegClass::Int))));
        let parts = halves.map(|vector| {
            let temp = operands.add(Operand::reg_temp(self.code.vreg(RegClass::Float)));
            VectorRegisters { isa: V::ISA, vector, temp }
        });
        self.code.scratch = true;
        (LaneStores { width, parts, base, scale, disp, bits, temps }, operands)
    }
}

/// The low part of a general register.
fn low(reg: Register, width: Width) -> Register {
    let number = reg.number() as u32;
    match width {
        Width::Byte if number < 4 => Register::AL + number,
        Width::Byte => Register::SPL + (number - 4),
        Width::Half => Register::AX + number,
        Width::Word => Register::EAX + number,
    }
}

/// Stores the low part of a register.
pub(super) fn put(asm: &mut Assembler<'_>, width: Width, place: MemoryOperand, reg: Register) {
    let code = match width {
        Width::Byte => Code::Mov_rm8_r8,
        Width::Half => Code::Mov_rm16_r16,
        Width::Word => Code::Mov_rm32_r32,
    };
    asm.put(Instruction::with2(code, place, low(reg, width)));
}

/// The address of a lane's word in the scratch area.
fn kept(at: i32, lane: Register) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(Register::RSP, lane, 4, i64::from(at), 1)
}

impl RowAddress {
    fn memory(&self, regs: Regs<'_>, index: Register, more: i32) -> MemoryOperand {
        let disp = i64::from(self.disp + more);
        MemoryOperand::with_base_index_scale_displ_size(regs.gpr(self.base), index, self.width.bytes(), disp, 1)
    }

    /// Jumps to `cold` unless all 16 sub-words are in bounds.
    fn check(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, cold: Label) {
        let limit = self.limit.map(|limit| regs.gpr(limit));
        jump_unless_inside(asm, regs.gpr(self.index), limit, regs.gpr(self.temps[0]), cold);
    }

    /// Computes the lane's index, from the first temporary, into the second; jumps to `skip` if it is out of bounds.
    fn lane(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, skip: Label) -> MemoryOperand {
        let [lane, index, ..] = self.temps;
        let sum = MemoryOperand::with_base_index_scale_displ_size(regs.gpr(self.index), regs.gpr(lane), 1, 0, 0);
        asm.put(Instruction::with2(Code::Lea_r32_m, regs.gpr32(index), sum));
        asm.put(match self.limit {
            Ok(limit) => Instruction::with2(Code::Cmp_r32_rm32, regs.gpr32(index), regs.gpr32(limit)),
            Err(limit) => Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(index), limit.cast_signed()),
        });
        asm.jump_if(ConditionCode::ae, skip);
        self.memory(regs, regs.gpr(index), 0)
    }

    /// Calls `each` in a loop over the lanes, with the label of the next iteration.
    fn each_lane(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, each: impl FnOnce(&mut Assembler<'_>, Label)) {
        let lane = regs.gpr32(self.temps[0]);
        let (again, next) = (asm.label(), asm.label());
        asm.put(Instruction::with2(Code::Xor_r32_rm32, lane, lane));
        asm.bind(again);
        each(asm, next);
        asm.bind(next);
        asm.put(Instruction::with2(Code::Add_rm32_imm8, lane, 1));
        asm.put(Instruction::with2(Code::Cmp_rm32_imm8, lane, LANES.cast_signed()));
        asm.jump_if(ConditionCode::b, again);
    }
}

/// The address of a lane's half in the scratch area.
fn kept_half(lane: Register) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(Register::RSP, lane, 2, i64::from(VALUE_AT), 1)
}

/// Rounds to nearest.
const NEAREST: i32 = 0;

/// The first operands become the row.
#[derive(Debug)]
struct LoadSubwordRow {
    place: RowAddress,
    floats: bool,
}

impl LoadSubwordRow {
    /// Converts halves in memory to floats; those of the second operand are at an offset of 16 bytes.
    fn convert(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, memory: impl Fn(i32) -> MemoryOperand) {
        match self.place.isa {
            Isa::Avx512 => {
                let code = Code::EVEX_Vcvtph2ps_zmm_k1z_ymmm256_sae;
                asm.put(Instruction::with2(code, regs.zmm(0), memory(0)));
            }
            Isa::Avx2 => {
                for half in 0..2u8 {
                    let from = memory(16 * i32::from(half));
                    asm.put(Instruction::with2(Code::VEX_Vcvtph2ps_ymm_xmmm128, regs.ymm(half), from));
                }
            }
        }
    }
}

impl Expand for LoadSubwordRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        let place = &self.place;
        place.check(regs, asm, cold);
        let index = regs.gpr(place.index);
        if self.floats {
            return self.convert(regs, asm, |more| place.memory(regs, index, more));
        }
        match place.isa {
            Isa::Avx512 => {
                let code = match place.width {
                    Width::Byte => Code::EVEX_Vpmovzxbd_zmm_k1z_xmmm128,
                    _ => Code::EVEX_Vpmovzxwd_zmm_k1z_ymmm256,
                };
                asm.put(Instruction::with2(code, regs.zmm(0), place.memory(regs, index, 0)));
            }
            Isa::Avx2 => {
                let code = match place.width {
                    Width::Byte => Code::VEX_Vpmovzxbd_ymm_xmmm64,
                    _ => Code::VEX_Vpmovzxwd_ymm_xmmm128,
                };
                for half in 0..2u8 {
                    let memory = place.memory(regs, index, i32::from(half) * 8 * place.width.bytes().cast_signed());
                    asm.put(Instruction::with2(code, regs.ymm(half), memory));
                }
            }
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let place = &self.place;
        let [lane, _, part, _] = place.temps;
        if self.floats {
            place.each_lane(regs, asm, |asm, next| {
                let half = kept_half(regs.gpr(lane));
                asm.put(Instruction::with2(Code::Mov_rm16_imm16, half, 0));
                let memory = place.lane(regs, asm, next);
                asm.put(Instruction::with2(Code::Movzx_r32_rm16, regs.gpr32(part), memory));
                put(asm, Width::Half, half, regs.gpr(part));
            });
            return self.convert(regs, asm, |more| {
                MemoryOperand::with_base_displ_size(Register::RSP, i64::from(VALUE_AT + more), 1)
            });
        }
        place.each_lane(regs, asm, |asm, next| {
            // The word is 0 until it is known to be in bounds.
            let zero = Instruction::with2(Code::Mov_rm32_imm32, kept(VALUE_AT, regs.gpr(lane)), 0);
            asm.put(zero);
            let memory = place.lane(regs, asm, next);
            let code = if place.width == Width::Byte { Code::Movzx_r32_rm8 } else { Code::Movzx_r32_rm16 };
            asm.put(Instruction::with2(code, regs.gpr32(part), memory));
            asm.put(Instruction::with2(Code::Mov_rm32_r32, kept(VALUE_AT, regs.gpr(lane)), regs.gpr32(part)));
        });
        match place.isa {
            Isa::Avx512 => {
                let from = asm.scratch(VALUE_AT, false);
                asm.put(Instruction::with2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, regs.zmm(0), from));
            }
            Isa::Avx2 => {
                for half in 0..2u8 {
                    let from = asm.scratch(VALUE_AT + 32 * i32::from(half), false);
                    asm.put(Instruction::with2(Code::VEX_Vmovups_ymm_ymmm256, regs.ymm(half), from));
                }
            }
        }
    }
}

/// Stores the first operands as the row.
#[derive(Debug)]
struct StoreSubwordRow {
    place: RowAddress,
    bits: Option<u8>,
    /// Temporary vector registers.
    vectors: [u8; 2],
    /// The byte shuffle that packs the sub-words of a 128-bit lane.
    order: PooledConstant,
    /// Whether the operands are floats that are converted to halves.
    floats: bool,
}

impl StoreSubwordRow {
    /// Stores floats as halves; those of the second operand are at an offset of 16 bytes.
    fn convert(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, memory: impl Fn(i32) -> MemoryOperand) {
        match self.place.isa {
            Isa::Avx512 => {
                let code = Code::EVEX_Vcvtps2ph_ymmm256_k1z_zmm_imm8_sae;
                asm.put(Instruction::with3(code, memory(0), regs.zmm(0), NEAREST));
            }
            Isa::Avx2 => {
                for half in 0..2u8 {
                    let to = memory(16 * i32::from(half));
                    asm.put(Instruction::with3(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, to, regs.ymm(half), NEAREST));
                }
            }
        }
    }

    fn pack_halves(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let place = &self.place;
        let index = regs.gpr(place.index);
        let [packed, above] = self.vectors;
        for half in 0..2u8 {
            let order = asm.constant(self.order, false);
            let shuffle = Code::VEX_Vpshufb_ymm_ymm_ymmm256;
            asm.put(Instruction::with3(shuffle, regs.ymm(packed), regs.ymm(half), order));
            let upper = Code::VEX_Vextracti128_xmmm128_ymm_imm8;
            asm.put(Instruction::with3(upper, regs.xmm(above), regs.ymm(packed), 1));
            let memory = place.memory(regs, index, i32::from(half) * 8 * place.width.bytes().cast_signed());
            let (join, store) = match place.width {
                Width::Byte => (Code::VEX_Vpunpckldq_xmm_xmm_xmmm128, Code::VEX_Vmovq_xmmm64_xmm),
                _ => (Code::VEX_Vpunpcklqdq_xmm_xmm_xmmm128, Code::VEX_Vmovdqu_xmmm128_xmm),
            };
            asm.put(Instruction::with3(join, regs.xmm(packed), regs.xmm(packed), regs.xmm(above)));
            asm.put(Instruction::with2(store, memory, regs.xmm(packed)));
        }
    }
}

impl Expand for StoreSubwordRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        let place = &self.place;
        if let Some(bits) = self.bits {
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(bits), 0xffff));
            asm.jump_if(ConditionCode::ne, cold);
        }
        place.check(regs, asm, cold);
        if self.floats {
            return self.convert(regs, asm, |more| place.memory(regs, regs.gpr(place.index), more));
        }
        let code = match (place.isa, place.width) {
            (Isa::Avx512, Width::Byte) => Code::EVEX_Vpmovdb_xmmm128_k1z_zmm,
            (Isa::Avx512, _) => Code::EVEX_Vpmovdw_ymmm256_k1z_zmm,
            (Isa::Avx2, _) => return self.pack_halves(regs, asm),
        };
        let memory = place.memory(regs, regs.gpr(place.index), 0);
        asm.put(Instruction::with2(code, memory, regs.zmm(0)));
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let place = &self.place;
        let [lane, _, part, _] = place.temps;
        if self.floats {
            self.convert(regs, asm, |more| {
                MemoryOperand::with_base_displ_size(Register::RSP, i64::from(VALUE_AT + more), 1)
            });
        } else {
            let vector = [0, place.isa.registers_per_vector() - 1];
            VectorRegisters { isa: place.isa, vector, temp: 0 }.keep(regs, asm, VALUE_AT);
        }
        place.each_lane(regs, asm, |asm, next| {
            if let Some(bits) = self.bits {
                asm.put(Instruction::with2(Code::Bt_rm32_r32, regs.gpr32(bits), regs.gpr32(lane)));
                asm.jump_if(ConditionCode::ae, next);
            }
            let memory = place.lane(regs, asm, next);
            let (load, from) = if self.floats {
                (Code::Movzx_r32_rm16, kept_half(regs.gpr(lane)))
            } else {
                (Code::Mov_r32_rm32, kept(VALUE_AT, regs.gpr(lane)))
            };
            asm.put(Instruction::with2(load, regs.gpr32(part), from));
            put(asm, place.width, memory, regs.gpr(part));
        });
    }
}

/// A store for each active lane, in order.
#[derive(Debug)]
pub(super) struct LaneStores {
    width: Width,
    /// Indices and words.
    pub parts: [VectorRegisters; 2],
    base: u8,
    scale: u8,
    disp: i32,
    pub bits: u8,
    pub temps: [u8; 3],
}

impl LaneStores {
    pub(super) fn at(&self, regs: Regs<'_>, index: Register) -> MemoryOperand {
        LaneMemory { base: regs.gpr(self.base), scale: self.scale, disp: self.disp }.at(index)
    }
}

impl Expand for LaneStores {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let [indices, words] = self.parts;
        let [index, lane, left] = self.temps;
        let (again, done) = (asm.label(), asm.label());
        indices.keep(regs, asm, INDEX_AT);
        words.keep(regs, asm, VALUE_AT);
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(left), regs.gpr32(self.bits)));
        asm.put(Instruction::with2(Code::Test_rm32_r32, regs.gpr32(left), regs.gpr32(left)));
        asm.jump_if(ConditionCode::e, done);
        asm.bind(again);
        asm.put(Instruction::with2(Code::Tzcnt_r32_rm32, regs.gpr32(lane), regs.gpr32(left)));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(index), kept(INDEX_AT, regs.gpr(lane))));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, regs.gpr32(lane), kept(VALUE_AT, regs.gpr(lane))));
        put(asm, self.width, self.at(regs, regs.gpr(index)), regs.gpr(lane));
        asm.put(Instruction::with2(Code::VEX_Blsr_r32_rm32, regs.gpr32(left), regs.gpr32(left)));
        asm.jump_if(ConditionCode::ne, again);
        asm.bind(done);
    }
}
