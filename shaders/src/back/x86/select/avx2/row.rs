//! Masked rows. Masked stores are slow on most processors, so full masks are tested for.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use smallvec::SmallVec;

use super::super::super::encode::{Assembler, Label, Regs};
use super::super::super::vcode::{AddressRegisters, Build, Expand, View};
use super::super::Select;
use super::super::row::RowPlace;
use super::Avx2;
use super::operand::RegisterPair;
use crate::simd::{ContextField, InstData, LANES, Row, Value, WideOp};

const LOAD: Code = Code::VEX_Vmovups_ymm_ymmm256;
const STORE: Code = Code::VEX_Vmovups_ymmm256_ymm;
/// Offset in the scratch area.
const SAVED_AT: i32 = 0;

impl Select<'_, Avx2> {
    /// Stores a row that is in bounds.
    pub(super) fn store_row_in_bounds(
        &mut self,
        row: &Row,
        place: &AddressRegisters,
        value: RegisterPair,
        mask: Option<RegisterPair>,
    ) {
        let blend = self.is_of_workgroup(row.base);
        for half in 0..2 {
            let place = AddressRegisters { disp: place.disp + 32 * half as i32, ..*place };
            let build = match mask {
                None => Build::new(STORE).at(&place),
                Some(mask) if blend => {
                    let (before, after) = (self.lanes_reg(), self.lanes_reg());
                    Build::new(LOAD).def(before, View::Ymm).at(&place).push(&mut self.code);
                    let blend = Build::new(Code::VEX_Vblendvps_ymm_ymm_ymmm256_ymm).def(after, View::Ymm);
                    let blend = blend.reads(before, View::Ymm).reads(value[half], View::Ymm);
                    blend.reads(mask[half], View::Ymm).push(&mut self.code);
                    Build::new(STORE).at(&place).reads(after, View::Ymm).push(&mut self.code);
                    continue;
                }
                Some(mask) => Build::new(Code::VEX_Vmaskmovps_m256_ymm_ymm).at(&place).reads(mask[half], View::Ymm),
            };
            build.reads(value[half], View::Ymm).push(&mut self.code);
        }
    }

    /// Whether memory is private or workgroup memory, which only one thread accesses: words of inactive lanes may be
    /// written back unchanged, which is faster than a masked store on most processors.
    fn is_of_workgroup(&self, base: Value) -> bool {
        let definition = |value| self.kernel.definition(self.uses.canonical(value));
        let own = |value| {
            matches!(definition(value), Some(InstData::Context { field: ContextField::Private | ContextField::Shared }))
        };
        match definition(base) {
            Some(InstData::Wide { op: WideOp::Add, args }) => own(args[0]),
            _ => own(base),
        }
    }
}

/// A row in memory.
#[derive(Clone, Copy, Debug)]
struct MaskedRow(RowPlace);

/// `base + index * scale + disp`.
fn memory(base: Register, index: Register, scale: u32, disp: i32) -> MemoryOperand {
    MemoryOperand::with_base_index_scale_displ_size(base, index, scale, i64::from(disp), 1)
}

impl MaskedRow {
    fn memory(&self, regs: Regs<'_>, index: Register, half: u8) -> MemoryOperand {
        memory(regs.gpr(self.0.base), index, 4, self.0.disp + 32 * i32::from(half))
    }

    /// Sign-extends the index: rows that begin below 0 and end above are the ones that wrapped.
    fn signed_index(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, to: u8) -> Register {
        let to = regs.gpr(to);
        asm.put(Instruction::with2(Code::Movsxd_r64_rm32, to, regs.gpr32(self.0.index)));
        to
    }

    /// Sets the second temporary to `-4 * clamp(end - index, 0, 16)`: the offset of a window that ends with that lane.
    fn moved(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, end: Option<Result<u8, u32>>) {
        let lanes = self.signed_index(regs, asm, self.0.temp + 1);
        let narrow = regs.gpr32(self.0.temp + 1);
        asm.put(Instruction::with1(Code::Neg_rm64, lanes));
        match end {
            None => {}
            Some(Ok(limit)) => asm.put(Instruction::with2(Code::Add_r64_rm64, lanes, regs.gpr(limit))),
            Some(Err(limit)) => {
                asm.put(Instruction::with2(Code::Add_rm64_imm32, lanes, limit.min(1 << 30).cast_signed()));
            }
        }
        let (not_above, not_below) = (asm.label(), asm.label());
        asm.put(Instruction::with2(Code::Cmp_rm64_imm8, lanes, LANES.cast_signed()));
        asm.jump_if(ConditionCode::l, not_above);
        asm.put(Instruction::with2(Code::Mov_r32_imm32, narrow, LANES.cast_signed()));
        asm.bind(not_above);
        asm.put(Instruction::with2(Code::Test_rm64_r64, lanes, lanes));
        asm.jump_if(ConditionCode::ns, not_below);
        asm.put(Instruction::with2(Code::Xor_r32_rm32, narrow, narrow));
        asm.bind(not_below);
        asm.put(Instruction::with2(Code::Shl_rm64_imm8, lanes, 2));
        asm.put(Instruction::with1(Code::Neg_rm64, lanes));
    }

    /// Calls `each` with addresses of masks, first of lanes at or above 0, then of lanes below the limit. Afterwards
    /// the first temporary holds the sign-extended index.
    fn windows(
        &self,
        regs: Regs<'_>,
        asm: &mut Assembler<'_>,
        mut each: impl FnMut(&mut Assembler<'_>, bool, [MemoryOperand; 2]),
    ) {
        let [table, moved] = [self.0.temp, self.0.temp + 1].map(|temp| regs.gpr(temp));
        // A window at the ones, moved back, begins with zeros; one after them begins with ones.
        for (first, at, end) in [(true, 64, None), (false, 128, Some(self.0.limit))] {
            self.moved(regs, asm, end);
            let windows = asm.constant(self.0.constants, false);
            asm.put(Instruction::with2(Code::Lea_r64_m, table, windows));
            each(asm, first, [at, at + 32].map(|at| memory(table, moved, 1, at)));
        }
        self.signed_index(regs, asm, self.0.temp);
    }
}

/// Operands 0 and 1 become the row; the words `fetch` bytes further are prefetched.
#[derive(Debug)]
pub(super) struct LoadRow {
    pub place: RowPlace,
    pub fetch: Option<i32>,
}

impl Expand for LoadRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        self.place.check(regs, asm, cold);
        for half in 0..2 {
            let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.index), half);
            asm.put(Instruction::with2(LOAD, regs.ymm(half), memory));
        }
        if let Some(further) = self.fetch {
            // Prefetches never fault.
            let at = self.place.disp.wrapping_add(further);
            let memory = memory(regs.gpr(self.place.base), regs.gpr(self.place.index), 4, at);
            asm.put(Instruction::with1(Code::Prefetcht1_m8, memory));
        }
    }

    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        MaskedRow(self.place).windows(regs, asm, |asm, first, windows| {
            for (half, window) in (0..2).zip(windows) {
                let lanes = regs.ymm(half);
                asm.put(match first {
                    true => Instruction::with2(LOAD, lanes, window),
                    false => Instruction::with3(Code::VEX_Vandps_ymm_ymm_ymmm256, lanes, lanes, window),
                });
            }
        });
        for half in 0..2 {
            let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.temp), half);
            let lanes = regs.ymm(half);
            asm.put(Instruction::with3(Code::VEX_Vmaskmovps_ymm_ymm_m256, lanes, lanes, memory));
        }
    }
}

/// Stores operands 0 and 1 as the row, under operands 2 and 3 if `masked`.
#[derive(Debug)]
pub(super) struct StoreRow {
    pub place: RowPlace,
    pub masked: bool,
}

impl StoreRow {
    /// Jumps to `cold` unless all lanes are active: masked stores take many times as long as others.
    fn check_mask(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, cold: Label) {
        let [low, high] = [self.place.temp, self.place.temp + 1].map(|temp| regs.gpr32(temp));
        for (half, bits) in [(2, low), (3, high)] {
            asm.put(Instruction::with2(Code::VEX_Vmovmskps_r32_ymm, bits, regs.ymm(half)));
        }
        asm.put(Instruction::with2(Code::And_r32_rm32, low, high));
        asm.put(Instruction::with2(Code::Cmp_rm32_imm32, low, 0xff));
        asm.jump_if(ConditionCode::ne, cold);
    }
}

impl Expand for StoreRow {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let cold = asm.cold();
        if self.masked {
            self.check_mask(regs, asm, cold);
        }
        self.place.check(regs, asm, cold);
        for half in 0..2 {
            let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.index), half);
            asm.put(Instruction::with2(STORE, memory, regs.ymm(half)));
        }
    }

    /// Two registers that are no operands are saved and hold the masks.
    fn cold(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let (partial, done) = (asm.label(), asm.label());
        if self.masked {
            self.place.check(regs, asm, partial);
            for half in 0..2 {
                let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.index), half);
                let store = Code::VEX_Vmaskmovps_m256_ymm_ymm;
                asm.put(Instruction::with3(store, memory, regs.ymm(2 + half), regs.ymm(half)));
            }
            asm.jump(done);
        }
        asm.bind(partial);
        let operands: SmallVec<[Register; 4]> =
            (0..if self.masked { 4 } else { 2 }).map(|slot| regs.ymm(slot)).collect();
        let mut free = (0..6).map(|number| Register::YMM0 + number).filter(|reg| !operands.contains(reg));
        let masks = [free.next(), free.next()].map(|reg| reg.unwrap_or(Register::YMM15));
        let saved = [SAVED_AT, SAVED_AT + 32].map(|at| asm.scratch(at, false));
        for (mask, saved) in masks.into_iter().zip(saved) {
            asm.put(Instruction::with2(STORE, saved, mask));
        }
        let and = Code::VEX_Vandps_ymm_ymm_ymmm256;
        MaskedRow(self.place).windows(regs, asm, |asm, first, windows| {
            for (mask, window) in masks.into_iter().zip(windows) {
                asm.put(match first {
                    true => Instruction::with2(LOAD, mask, window),
                    false => Instruction::with3(and, mask, mask, window),
                });
            }
        });
        for (half, mask) in (0..2).zip(masks) {
            if self.masked {
                asm.put(Instruction::with3(and, mask, mask, regs.ymm(2 + half)));
            }
            let memory = MaskedRow(self.place).memory(regs, regs.gpr(self.place.temp), half);
            asm.put(Instruction::with3(Code::VEX_Vmaskmovps_m256_ymm_ymm, memory, mask, regs.ymm(half)));
        }
        for (mask, saved) in masks.into_iter().zip(saved) {
            asm.put(Instruction::with2(LOAD, mask, saved));
        }
        asm.bind(done);
    }
}
