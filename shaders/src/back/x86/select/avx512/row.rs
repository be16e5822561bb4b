//! Consecutive words: one access for all lanes where the whole row is in bounds, a masked one where it is not.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, VReg};
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::encode::{Assembler, Label, Regs};
use super::super::super::pool::Constant;
use super::super::super::vcode::{Build, Expand, Kind, Place, View};
use super::super::Select;
use crate::back::x86::select::nontemporal::LARGE;
use crate::simd::{Inst, LANES, Row, Value};

/// Lane numbers.
pub(super) const IOTA: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// A row's address with slots for its registers.
#[derive(Clone, Copy, Debug)]
struct RowPlace {
    base: u8,
    disp: i32,
    index: u8,
    limit: Limit,
    /// A register of no account.
    temp: u8,
    iota: Constant,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    Slot(u8),
    Constant(u32),
}

/// Where rows stand that are in bounds by their constants.
enum Where {
    Inside(Place),
    Checked { base: VReg, disp: i32 },
}

impl Select<'_> {
    fn row(&mut self, row: &Row) -> Result<Where, CompileError> {
        let (base, disp) = self.base(row.base, 0)?;
        if let (Some(index), Some(limit)) = (self.constant(row.index), self.constant(row.limit))
            && index + u64::from(LANES) <= limit
            && index < 1 << 24
            && let Some(disp) = disp.checked_add(index as i32 * 4)
        {
            return Ok(Where::Inside(Self::at(base, disp)));
        }
        if let Some(index) = self.inside(row.index, row.limit)? {
            return Ok(Where::Inside(Place { base, index: Some(index), scale: 4, disp, broadcast: false }));
        }
        Ok(Where::Checked { base, disp })
    }

    /// Adds the row's operands behind those that there are.
    fn row_slots(
        &mut self,
        row: &Row,
        (base, disp): (VReg, i32),
        operands: &mut SmallVec<[Operand; 8]>,
    ) -> Result<RowPlace, CompileError> {
        let index = self.reg(row.index)?;
        let limit = match self.constant(row.limit) {
            Some(limit) => Err(limit as u32),
            None => Ok(self.reg(row.limit)?),
        };
        let temp = self.general();
        let mut slot = |operand| {
            operands.push(operand);
            operands.len() as u8 - 1
        };
        let (base, index) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(index)));
        let limit = match limit {
            Ok(reg) => Limit::Slot(slot(Operand::reg_use(reg))),
            Err(constant) => Limit::Constant(constant),
        };
        let temp = slot(Operand::reg_temp(temp));
        self.code.scratch = true;
        Ok(RowPlace { base, disp, index, limit, temp, iota: self.code.pool.vector(IOTA) })
    }

    pub(super) fn load_row(&mut self, inst: Inst, row: &Row) -> Result<(), CompileError> {
        let (base, disp) = match self.row(row)? {
            Where::Inside(place) => {
                let result = self.define(inst);
                let build = Build::new(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512).def(result, View::Zmm).at(&place);
                build.push(&mut self.code);
                return Ok(());
            }
            Where::Checked { base, disp } => (base, disp),
        };
        let mut operands = SmallVec::new();
        let result = self.define(inst);
        operands.push(Operand::reg_def(result));
        let place = self.row_slots(row, (base, disp), &mut operands)?;
        let fetch = self.strides.fetched(self.kernel, self.block, row);
        self.code.push(Kind::Sequence(Box::new(LoadRow { place, fetch })), &operands);
        Ok(())
    }

    pub(super) fn store_row(&mut self, row: &Row, value: Value, mask: Value) -> Result<(), CompileError> {
        let mask = if self.is_all(mask) { None } else { Some(self.reg(mask)?) };
        let value = self.reg(value)?;
        let (base, disp) = match self.row(row)? {
            Where::Inside(place) => {
                let mut build = Build::new(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm).at(&place).reads(value, View::Zmm);
                if let Some(mask) = mask {
                    build = build.mask(mask);
                }
                build.push(&mut self.code);
                return Ok(());
            }
            Where::Checked { base, disp } => (base, disp),
        };
        let mut operands: SmallVec<[Operand; 8]> = SmallVec::new();
        operands.push(Operand::reg_use(value));
        operands.extend(mask.map(Operand::reg_use));
        let place = self.row_slots(row, (base, disp), &mut operands)?;
        let store = StoreRow { place, masked: mask.is_some() };
        let store: Box<dyn Expand> = if self.streams.has(row) { Box::new(StreamRow(store)) } else { Box::new(store) };
        self.code.push(Kind::Sequence(store), &operands);
        Ok(())
    }
}

impl RowPlace {
    fn memory(&self, regs: Regs<'_>, index: Register) -> MemoryOperand {
        self.memory_from(regs, index, self.disp)
    }

    fn memory_from(&self, regs: Regs<'_>, index: Register, disp: i32) -> MemoryOperand {
        let (disp, disp_size) = (i64::from(disp), u32::from(disp != 0));
        MemoryOperand::with_base_index_scale_displ_size(regs.gpr(self.base), index, 4, disp, disp_size)
    }

    /// Leads to `cold` unless all 16 words are in bounds: limits are small, so the sum cannot be one that wrapped.
    fn check(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, cold: Label) {
        let last = MemoryOperand::with_base_displ_size(regs.gpr(self.index), i64::from(LANES - 1), 1);
        asm.put(Instruction::with2(Code::Lea_r64_m, regs.gpr(self.temp), last));
        asm.put(match self.limit {
            Limit::Slot(limit) => Instruction::with2(Code::Cmp_r64_rm64, regs.gpr(self.temp), regs.gpr(limit)),
            Limit::Constant(limit) => {
                Instruction::with2(Code::Cmp_rm64_imm32, regs.gpr(self.temp), limit.min(1 << 30).cast_signed())
            }
        });
        asm.jump_if(ConditionCode::ae, cold);
    }

    /// Sets `mask` to the lanes of the row that are in bounds, of those in `among` if that is not 0, and the temporary to the index
    /// with its sign: rows that begin below 0 and end above are the ones that wrapped.
    fn lanes_in_bounds(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        mask: Register,
        lanes: Register,
        among: Register,
    ) {
        let limit = asm.scratch(LIMIT_AT, false);
        asm.put(match self.limit {
            Limit::Slot(slot) => Instruction::with2(Code::Mov_rm32_r32, limit, regs.gpr32(slot)),
            Limit::Constant(constant) => Instruction::with2(Code::Mov_rm32_imm32, limit, constant.cast_signed()),
        });
        asm.put(Instruction::with2(Code::EVEX_Vpbroadcastd_zmm_k1z_r32, lanes, regs.gpr32(self.index)));
        let iota = asm.constant(self.iota, false);
        asm.put(Instruction::with3(Code::EVEX_Vpaddd_zmm_k1z_zmm_zmmm512b32, lanes, lanes, iota));
        let limit = asm.scratch(LIMIT_AT, true);
        const LESS: i32 = 1;
        let compare = Instruction::with4(Code::EVEX_Vpcmpud_kr_k1_zmm_zmmm512b32_imm8, mask, lanes, limit, LESS);
        asm.put_masked(among, false, compare);
        asm.put(Instruction::with2(Code::Movsxd_r64_rm32, regs.gpr(self.temp), regs.gpr32(self.index)));
    }
}

/// In the scratch area: a vector, a mask, a limit.
const VECTOR_AT: i32 = 0;
const MASK_AT: i32 = 256;
pub(super) const LIMIT_AT: i32 = 264;

/// Bytes of a line of the caches.
const LINE: i32 = 64;

/// Operand 0 becomes the row; the words `fetch` bytes further come nearer.
#[derive(Debug)]
struct LoadRow {
    place: RowPlace,
    fetch: Option<i32>,
}

impl Expand for LoadRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        self.place.check(regs, asm, cold);
        let memory = self.place.memory(regs, regs.gpr(self.place.index));
        asm.put(Instruction::with2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, regs.zmm(0), memory));
        if let Some(further) = self.fetch {
            // No fetch fails, wherever it goes.
            let at = self.place.disp.wrapping_add(further);
            let memory = self.place.memory_from(regs, regs.gpr(self.place.index), at);
            asm.put(Instruction::with1(Code::Prefetcht1_m8, memory));
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (mask, saved) = (Register::K1, asm.scratch(MASK_AT, false));
        asm.put(Instruction::with2(Code::VEX_Kmovw_m16_kr, saved, mask));
        self.place.lanes_in_bounds(regs, asm, mask, regs.zmm(0), Register::None);
        let memory = self.place.memory(regs, regs.gpr(self.place.temp));
        let load = Instruction::with2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, regs.zmm(0), memory);
        asm.put_masked(mask, true, load);
        asm.put(Instruction::with2(Code::VEX_Kmovw_kr_km16, mask, saved));
    }
}

/// Stores operand 0 as the row, under operand 1 if `masked`.
#[derive(Debug)]
struct StoreRow {
    place: RowPlace,
    masked: bool,
}

impl StoreRow {
    fn mask(&self, regs: Regs<'_>) -> Register {
        if self.masked { regs.mask(1) } else { Register::None }
    }

    /// Where all of the row is in bounds.
    fn whole(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let memory = self.place.memory(regs, regs.gpr(self.place.index));
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
        self.place.lanes_in_bounds(regs, asm, mask, lanes, among);
        let memory = self.place.memory(regs, regs.gpr(self.place.temp));
        let store = Instruction::with2(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm, memory, regs.zmm(0));
        asm.put_masked(mask, false, store);
        asm.put(Instruction::with2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, lanes, saved_lanes));
        asm.put(Instruction::with2(Code::VEX_Kmovw_kr_km16, mask, saved_mask));
    }
}

/// As [`StoreRow`]; whole lines of large buffers are written past the caches.
#[derive(Debug)]
struct StreamRow(StoreRow);

impl Expand for StreamRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        let place = &self.0.place;
        place.check(regs, asm, cold);
        if let Limit::Slot(limit) = place.limit {
            asm.put(Instruction::with2(Code::Cmp_rm32_imm32, regs.gpr32(limit), LARGE.cast_signed()));
            asm.jump_if(ConditionCode::ae, cold);
        }
        self.0.whole(regs, asm);
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let place = &self.0.place;
        let Limit::Slot(limit) = place.limit else { return self.0.cold(regs, asm) };
        let (partial, line, end) = (asm.label(), asm.label(), asm.label());
        let temp = regs.gpr(place.temp);
        asm.put(Instruction::with2(Code::Cmp_r64_rm64, temp, regs.gpr(limit)));
        asm.jump_if(ConditionCode::ae, partial);
        asm.put(Instruction::with2(Code::Lea_r64_m, temp, place.memory(regs, regs.gpr(place.index))));
        asm.put(Instruction::with2(Code::Test_rm32_imm32, regs.gpr32(place.temp), LINE - 1));
        asm.jump_if(ConditionCode::e, line);
        let plain = asm.label();
        asm.bind(plain);
        self.0.whole(regs, asm);
        asm.jump(end);
        asm.bind(line);
        if self.0.masked {
            // The carry tells that all lanes are on.
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
