//! Contiguous words: one access per register if all of them are in bounds, masked ones otherwise.

use iced_x86::{Code, ConditionCode, Instruction, MemoryOperand, Register};
use regalloc2::{Operand, VReg};
use smallvec::SmallVec;

use super::super::encode::{Assembler, Label, Regs};
use super::super::pool::PooledConstant;
use super::super::vcode::{AddressRegisters, InstKind};
use super::registers::OperandSlots;
use super::{Result, Select, VectorIsa};
use crate::simd::{Inst, LANES, Row, Value};

/// A row's address with slots for its registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowPlace {
    pub base: u8,
    pub disp: i32,
    pub index: u8,
    pub limit: Result<u8, u32>,
    /// The first temporary general register; the others follow.
    pub temp: u8,
    /// The constants from which masks are computed: [`VectorIsa::row_constants`].
    pub constants: PooledConstant,
}

/// The address of a row.
enum RowTarget {
    InBounds(AddressRegisters),
    Checked { base: VReg, disp: i32 },
}

impl<V: VectorIsa> Select<'_, V> {
    fn row(&mut self, row: &Row) -> Result<RowTarget> {
        let (base, disp) = self.base(row.base, 0)?;
        if let (Some(index), Some(limit)) = (self.constant(row.index), self.constant(row.limit))
            && index + u64::from(LANES) <= limit
            && index < 1 << 24
            && let Some(disp) = disp.checked_add(index as i32 * 4)
        {
            return Ok(RowTarget::InBounds(Self::at(base, disp)));
        }
        if let Some(index) = self.inside(row.index, row.limit)? {
            return Ok(RowTarget::InBounds(AddressRegisters {
                base,
                index: Some(index),
                scale: 4,
                disp,
                broadcast: false,
            }));
        }
        Ok(RowTarget::Checked { base, disp })
    }

    /// Adds the row's operands after those that there are.
    fn row_slots(&mut self, row: &Row, (base, disp): (VReg, i32), operands: &mut OperandSlots) -> Result<RowPlace> {
        let index = self.reg(row.index)?;
        let limit = match self.constant(row.limit) {
            Some(limit) => Err(limit as u32),
            None => Ok(self.reg(row.limit)?),
        };
        let temps: SmallVec<[VReg; 2]> = (0..V::ROW_TEMPS).map(|_| self.general()).collect();
        let mut slot = |operand| operands.add(operand);
        let (base, index) = (slot(Operand::reg_use(base)), slot(Operand::reg_use(index)));
        let limit = limit.map_or_else(Err, |reg| Ok(slot(Operand::reg_use(reg))));
        let temp = operands.len() as u8;
        temps.into_iter().for_each(|temp| _ = operands.add(Operand::reg_temp(temp)));
        self.code.scratch = true;
        Ok(RowPlace { base, disp, index, limit, temp, constants: V::row_constants(&mut self.code.pool) })
    }

    pub(super) fn load_row(&mut self, inst: Inst, row: &Row) -> Result {
        let target = self.row(row)?;
        let results = V::define(self, self.kernel.results[inst][0]);
        match target {
            RowTarget::InBounds(place) => self.load_vector(results, &place),
            RowTarget::Checked { base, disp } => {
                // Of two results, the first is written before the operands are read for the last time.
                let is_one = results.as_ref().len() == 1;
                let def = if is_one { Operand::reg_def } else { Operand::reg_def_at_start };
                let mut operands: OperandSlots = results.as_ref().iter().map(|&reg| def(reg)).collect();
                let place = self.row_slots(row, (base, disp), &mut operands)?;
                let fetch = self.strides.distance(self.kernel, self.block, row);
                self.code.push(InstKind::Sequence(V::checked_row_load(place, fetch)), &operands);
            }
        }
        Ok(())
    }

    pub(super) fn store_row(&mut self, row: &Row, value: Value, mask: Value) -> Result {
        let mask = if self.is_all(mask) { None } else { Some(V::registers(self, mask)?) };
        let value = V::registers(self, value)?;
        match self.row(row)? {
            RowTarget::InBounds(place) => V::store_row_in_bounds(self, row, &place, value, mask),
            RowTarget::Checked { base, disp } => {
                let mut operands: OperandSlots = value.as_ref().iter().map(|&reg| Operand::reg_use(reg)).collect();
                if let Some(mask) = &mask {
                    mask.as_ref().iter().for_each(|&reg| _ = operands.add(Operand::reg_use(reg)));
                }
                let place = self.row_slots(row, (base, disp), &mut operands)?;
                let store = self.vectors.checked_row_store(row, place, mask.is_some());
                self.code.push(InstKind::Sequence(store), &operands);
            }
        }
        Ok(())
    }
}

impl RowPlace {
    /// Jumps to `cold` unless all 16 words are in bounds.
    pub(super) fn check(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, cold: Label) {
        let limit = self.limit.map(|limit| regs.gpr(limit));
        jump_unless_inside(asm, regs.gpr(self.index), limit, regs.gpr(self.temp), cold);
    }
}

/// Jumps to `cold` unless the 16 elements from `index` on are below the limit. Limits are small, so the sum cannot be
/// one that wrapped.
pub(super) fn jump_unless_inside(
    asm: &mut Assembler<'_>,
    index: Register,
    limit: Result<Register, u32>,
    temp: Register,
    cold: Label,
) {
    let last = MemoryOperand::with_base_displ_size(index, i64::from(LANES - 1), 1);
    asm.put(Instruction::with2(Code::Lea_r64_m, temp, last));
    asm.put(match limit {
        Ok(limit) => Instruction::with2(Code::Cmp_r64_rm64, temp, limit),
        // A lower limit than the actual one only selects the cold path.
        Err(limit) => Instruction::with2(Code::Cmp_rm64_imm32, temp, limit.min(1 << 30).cast_signed()),
    });
    asm.jump_if(ConditionCode::ae, cold);
}
