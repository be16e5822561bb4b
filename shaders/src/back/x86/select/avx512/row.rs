//! Rows that are masked as they are partly out of bounds, and non-temporal stores of rows.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};

use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::Expand;
use super::super::nontemporal::MIN_NONTEMPORAL;
use super::super::row::RowPlace;

/// Lane numbers.
pub(super) const IOTA: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A row in memory.
#[derive(Clone, Copy, Debug)]
struct MaskedRow(RowPlace);

impl MaskedRow {
    fn memory(&self, regs: Regs<'_>, index: Register) -> MemoryOperand {
        self.memory_from(regs, index, self.0.disp)
    }

    fn memory_from(&self, regs: Regs<'_>, index: Register, disp: i32) -> MemoryOperand {
        let (disp, disp_size) = (i64::from(disp), u32::from(disp != 0));
        MemoryOperand::with_base_index_scale_displ_size(regs.gpr(self.0.base), index, 4, disp, disp_size)
    }

    /// Sets `mask` to the lanes of the row that are in bounds, under `among` if there is one, and the temporary to the
    /// sign-extended index: rows that begin below 0 and end above are the ones that wrapped.
    fn lanes_in_bounds(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        mask: Register,
        lanes: Register,
        among: Register,
    ) {
        let limit = asm.scratch(LIMIT_AT, false);
        asm.put(match self.0.limit {
            Ok(slot) => Instruction::with2(Code::Mov_rm32_r32, limit, regs.gpr32(slot)),
            Err(constant) => Instruction::with2(Code::Mov_rm32_imm32, limit, constant.cast_signed()),
        });
        asm.put(Instruction::with2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, lanes, regs.gpr32(self.0.index)));
        let iota = asm.constant(self.0.constants, false);
        asm.put(Instruction::with3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, lanes, lanes, iota));
        let limit = asm.scratch(LIMIT_AT, true);
        const LESS: i32 = 1;
        let compare = Instruction::with4(Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, mask, lanes, limit, LESS);
        asm.put_masked(among, false, compare);
        asm.put(Instruction::with2(Code::Movsxd_r64_rm32, regs.gpr(self.0.temp), regs.gpr32(self.0.index)));
    }
}

/// Offsets in the scratch area: a vector, a mask, a limit.
const VECTOR_AT: i32 = 0;
const MASK_AT: i32 = 256;
pub(super) const LIMIT_AT: i32 = 264;

/// Bytes of a cache line.
const LINE: i32 = 64;

/// Operand 0 becomes the row; the words `fetch` bytes further are prefetched.
#[derive(Debug)]
pub(super) struct LoadRow {
    pub place: RowPlace,
    pub fetch: Option<i32>,
}

impl Expand for LoadRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        self.place.check(regs, asm, cold);
        let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.index));
        asm.put(Instruction::with2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, regs.zmm(0), memory));
        if let Some(further) = self.fetch {
            // Prefetches never fault.
            let at = self.place.disp.wrapping_add(further);
            let memory = MaskedRow(self.place).memory_from(regs, regs.gpr(self.place.index), at);
            asm.put(Instruction::with1(Code::Prefetcht1_m8, memory));
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (mask, saved) = (Register::K1, asm.scratch(MASK_AT, false));
        asm.put(Instruction::with2(Code::VEX_Kmovw_m16_kr, saved, mask));
        MaskedRow(self.place).lanes_in_bounds(regs, asm, mask, regs.zmm(0), Register::None);
        let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.temp));
        let load = Instruction::with2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, regs.zmm(0), memory);
        asm.put_masked(mask, true, load);
        asm.put(Instruction::with2(Code::VEX_Kmovw_kr_km16, mask, saved));
    }
}

/// Stores operand 0 as the row, under operand 1 if `masked`.
#[derive(Debug)]
pub(super) struct StoreRow {
    pub place: RowPlace,
    pub masked: bool,
}

impl StoreRow {
    fn mask(&self, regs: Regs<'_>) -> Register {
        if self.masked { regs.mask(1) } else { Register::None }
    }

    /// Stores a row that is in bounds.
    fn whole(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.index));
        let store = Instruction::with2(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, memory, regs.zmm(0));
        asm.put_masked(self.mask(regs), false, store);
    }
}

impl Expand for StoreRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        self.place.check(regs, asm, cold);
        self.whole(regs, asm);
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let among = self.mask(regs);
        let mask = if among == Register::K1 { Register::K2 } else { Register::K1 };
        let lanes = if regs.zmm(0) == Register::ZMM0 { Register::ZMM1 } else { Register::ZMM0 };
        let (saved_mask, saved_lanes) = (asm.scratch(MASK_AT, false), asm.scratch(VECTOR_AT, false));
        asm.put(Instruction::with2(Code::VEX_Kmovw_m16_kr, saved_mask, mask));
        asm.put(Instruction::with2(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, saved_lanes, lanes));
        MaskedRow(self.place).lanes_in_bounds(regs, asm, mask, lanes, among);
        let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.temp));
        let store = Instruction::with2(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, memory, regs.zmm(0));
        asm.put_masked(mask, false, store);
        asm.put(Instruction::with2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, lanes, saved_lanes));
        asm.put(Instruction::with2(Code::VEX_Kmovw_kr_km16, mask, saved_mask));
    }
}

/// As [`StoreRow`]; whole cache lines of large buffers are stored non-temporally.
#[derive(Debug)]
pub(super) struct NontemporalRow(pub StoreRow);

impl Expand for NontemporalRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        let place = &self.0.place;
        place.check(regs, asm, cold);
        if let Ok(limit) = place.limit {
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(limit), MIN_NONTEMPORAL.cast_signed()));
            asm.jump_if(ConditionCode::ae, cold);
        }
        self.0.whole(regs, asm);
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let place = &self.0.place;
        let Ok(limit) = place.limit else { return self.0.cold(regs, asm) };
        let (partial, line, end) = (asm.label(), asm.label(), asm.label());
        let temp = regs.gpr(place.temp);
        asm.put(Instruction::with2(Code::Cmp_r64_rm64, temp, regs.gpr(limit)));
        asm.jump_if(ConditionCode::ae, partial);
        asm.put(Instruction::with2(Code::Lea_r64_m, temp, MaskedRow(*place).memory(regs, regs.gpr(place.index))));
        asm.put(Instruction::with2(Code::Test_rm32_imm32, regs.gpr32(place.temp), LINE - 1));
        asm.jump_if(ConditionCode::e, line);
        let plain = asm.label();
        asm.bind(plain);
        self.0.whole(regs, asm);
        asm.jump(end);
        asm.bind(line);
        if self.0.masked {
            // The carry flag is set if all lanes are active.
            asm.put(Instruction::with2(Code::VEX_Kortestw_kr_kr, regs.mask(1), regs.mask(1)));
            asm.jump_if(ConditionCode::ae, plain);
        }
        let memory = MemoryOperand::with_base(temp);
        asm.put(Instruction::with2(Code::EVEX_Vmovntps_m512_zmm, memory, regs.zmm(0)));
        asm.jump(end);
        asm.bind(partial);
        self.0.cold(regs, asm);
        asm.bind(end);
    }
}
