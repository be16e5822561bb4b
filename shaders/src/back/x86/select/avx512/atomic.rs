//! Atomics: lane by lane, in order; or once, where all lanes have one address and nobody asks for the old values (`once.rs`);
//! or together, where words are next to each other.

use iced_x86::{Code, Instruction};
use regalloc2::{Operand, PReg, RegClass, VReg};
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::atomic::{
    ACCUMULATOR, Atomic, Brought, COMPARATOR_AT, INDEX_AT, LaneMemory, Loop, RESULT_AT, Registers, VALUE_AT,
};
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Build, Expand, Kind, View};
use super::super::Select;
use super::super::lane_atomics::{LaneAtomic, PLACES};
use super::uniform_atomic::Reduction;
use crate::back::x86::contiguous_atomics::{self, Neighbours};
use crate::back::x86::scatter_add::Increments;
use crate::ir::AtomicOp;
use crate::simd::{Inst, InstData, LaneAddress, Value};

const STORE: Code = Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm;

/// Slots of the operands, added one by one.
#[derive(Debug, Default)]
pub(super) struct Slots(pub(super) SmallVec<[Operand; 16]>);

impl Slots {
    pub(super) fn add(&mut self, operand: Operand) -> u8 {
        self.0.push(operand);
        self.0.len() as u8 - 1
    }

    /// A general register of no account.
    pub(super) fn general(&mut self, select: &mut Select<'_>) -> u8 {
        let reg = select.general();
        self.add(Operand::reg_temp(reg))
    }

    pub(super) fn accumulator(&mut self, select: &mut Select<'_>) -> u8 {
        let reg = select.general();
        self.add(Operand::reg_fixed_def_at_start(reg, PReg::new(ACCUMULATOR, RegClass::Int)))
    }
}

impl Select<'_> {
    /// An atomic instruction; `data` is [`InstData::Atomic`].
    pub(super) fn atomic(&mut self, inst: Inst, data: &InstData) -> Result<(), CompileError> {
        let &InstData::Atomic { op, ref lanes, value, comparator, wide, lock, sequential, mask } = data else {
            unreachable!("not an atomic: {data:?}")
        };
        if wide.is_some() || op.is_float() || op.is_half() {
            let high = wide.unwrap_or_default();
            return self.general_atomic(inst, data, [[value, high[0]], [comparator, high[1]]]);
        }
        let result = self.kernel.results[inst].first().is_some_and(|&result| self.facts.is_used(result));
        if op == AtomicOp::Load && !result {
            return Ok(());
        }
        let atomic = Atomic { op, lock, sequential, result };
        if let (false, Some(value), Some(index)) = (result, value, self.same_index(lanes.index))
            && let Some(reduction) = Reduction::of(op)
        {
            return self.reduced(atomic, lanes, index, value, mask, reduction);
        }
        if let (true, Some(index)) = (result, self.same_index(lanes.index))
            && self.running(inst, atomic, lanes, index, value, mask)?
        {
            return Ok(());
        }
        if let (Some(index), Some(value)) = (self.row_index(lanes), value)
            && self.neighbours(inst, atomic, lanes, index, value, mask)?
        {
            return Ok(());
        }
        let increments = op == AtomicOp::Add && !result && !lock;
        if let (true, Some(bits)) = (increments, value.and_then(|value| self.constant(value))) {
            return self.increments(lanes, bits as u32, mask);
        }
        self.lane_by_lane(inst, atomic, lanes, [value, comparator], mask)
    }

    /// On floats, halves or 64 bits; `words` are low and high ones of value and comparator.
    fn general_atomic(
        &mut self,
        inst: Inst,
        data: &InstData,
        words: [[Option<Value>; 2]; 2],
    ) -> Result<(), CompileError> {
        let &InstData::Atomic { op, ref lanes, wide, lock, mask, .. } = data else { return Ok(()) };
        let index = self.reg(lanes.index)?;
        let mut kept = SmallVec::new();
        for (value, at) in words.into_iter().flatten().zip(PLACES.into_iter().flatten()) {
            if let Some(value) = value {
                let reg = self.reg(value)?;
                kept.push(([reg; 2], at));
            }
        }
        let bits = self.mask_bits(mask)?;
        let results = (0..self.kernel.results[inst].len()).map(|number| self.define_nth(inst, number)).collect();
        let (wide, index) = (wide.is_some(), [index; 2]);
        self.lane_atomic(LaneAtomic { op, lanes, index, words: kept, wide, lock, bits, results })
    }

    /// The scalar that all lanes have as their index.
    fn same_index(&self, index: Value) -> Option<Value> {
        let index = self.facts.canonical(index);
        match self.kernel.definition(index)? {
            InstData::Splat { value } => Some(*value),
            InstData::Const { .. } => Some(index),
            _ => None,
        }
    }

    /// Bits of the mask in a general register.
    pub(in super::super) fn mask_bits(&mut self, mask: Value) -> Result<VReg, CompileError> {
        let bits = self.general();
        if let Some(constant) = self.constant(mask) {
            self.set(bits, constant & 0xffff);
        } else {
            let mask = self.reg(mask)?;
            Build::new(Code::VEX_Kmovw_r32_kr).def(bits, View::Dword).reads(mask, View::Mask).push(&mut self.code);
        }
        Ok(bits)
    }

    /// What lanes bring: a vector, or a scalar that all of them have.
    fn brought(&mut self, value: Option<Value>, slots: &mut Slots) -> Result<Operands, CompileError> {
        let Some(value) = value else { return Ok(Operands::Nothing) };
        let value = self.facts.canonical(value);
        Ok(match self.kernel.definition(value) {
            Some(InstData::Splat { value: scalar }) => {
                let scalar = self.reg(*scalar)?;
                Operands::Same(slots.add(Operand::reg_use(scalar)))
            }
            Some(InstData::Const { bits, .. }) => {
                let scalar = self.general();
                self.set(scalar, u64::from(*bits as u32));
                Operands::Same(slots.add(Operand::reg_use(scalar)))
            }
            _ => Operands::Vector(slots.add(Operand::reg_use(self.reg(value)?))),
        })
    }

    fn lane_by_lane(
        &mut self,
        inst: Inst,
        atomic: Atomic,
        lanes: &LaneAddress,
        [value, comparator]: [Option<Value>; 2],
        mask: Value,
    ) -> Result<(), CompileError> {
        let mut slots = Slots::default();
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.reg(lanes.index)?;
        let (value, comparator) = (self.brought(value, &mut slots)?, self.brought(comparator, &mut slots)?);
        let bits = self.mask_bits(mask)?;
        let left = self.general();
        let result = atomic.result.then(|| self.define(inst));
        let sequence = LaneByLane {
            atomic,
            base: slots.add(Operand::reg_use(base)),
            index: slots.add(Operand::reg_use(index)),
            scale: lanes.scale,
            disp,
            value,
            comparator,
            lanes: (slots.add(Operand::reg_use(bits)), slots.add(Operand::reg_temp(left))),
            accumulator: slots.accumulator(self),
            temps: std::array::from_fn(|_| slots.general(self)),
            result: result.map(|result| slots.add(Operand::reg_def_at_start(result))),
        };
        self.code.scratch = true;
        self.code.push(Kind::Sequence(Box::new(sequence)), &slots.0);
        Ok(())
    }

    /// Adds a constant for each lane, without a lock.
    fn increments(&mut self, lanes: &LaneAddress, by: u32, mask: Value) -> Result<(), CompileError> {
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.reg(lanes.index)?;
        let bits = self.mask_bits(mask)?;
        let increments = Increments { isa: self.isa, by, base, scale: lanes.scale, disp, index: [index, index], bits };
        increments.push(&mut self.code);
        Ok(())
    }

    /// Words next to each other, together; whether there is a form for that.
    fn neighbours(
        &mut self,
        inst: Inst,
        atomic: Atomic,
        lanes: &LaneAddress,
        index: Value,
        value: Value,
        mask: Value,
    ) -> Result<bool, CompileError> {
        if atomic.lock {
            if atomic.result || !contiguous_atomics::has_form(atomic.op) {
                return Ok(false);
            }
            let (value, (base, disp)) = (self.reg(value)?, self.base(lanes.base, lanes.disp)?);
            let (index, bits) = (self.reg(index)?, self.mask_bits(mask)?);
            Neighbours { isa: self.isa, atomic, base, disp, index, bits, value: [value, value] }.push(&mut self.code);
            return Ok(true);
        }
        let operation = match (atomic.op, Reduction::of(atomic.op)) {
            (AtomicOp::Sub, _) => Some(Code::EVEX_Vpsubd_zmm_k1z_zmm_zmmm512b32),
            (AtomicOp::Exchange, _) => None,
            (_, Some(reduction)) => Some(reduction.code),
            _ => return Ok(false),
        };
        let value = self.reg(value)?;
        let place = self.row_place(lanes, index)?;
        let mask = self.reg(mask)?;
        let old = if atomic.result { self.define(inst) } else { self.lanes_reg() };
        let load = Build::new(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512).def(old, View::Zmm);
        load.at(&place).mask(mask).zeroing().push(&mut self.code);
        let mut new = value;
        if let Some(operation) = operation {
            new = self.lanes_reg();
            self.lanes3(operation, new, old, value);
        }
        Build::new(STORE).at(&place).reads(new, View::Zmm).mask(mask).push(&mut self.code);
        Ok(true)
    }
}

/// What lanes bring, by slot.
#[derive(Clone, Copy, Debug)]
enum Operands {
    Nothing,
    Same(u8),
    Vector(u8),
}

impl Operands {
    /// Puts vectors into the scratch area.
    fn bring(self, regs: Regs<'_>, asm: &mut Assembler<'_>, at: i32) -> Brought {
        match self {
            Self::Nothing => Brought::Nothing,
            Self::Same(slot) => Brought::Same(regs.gpr32(slot)),
            Self::Vector(slot) => {
                let place = asm.scratch(at, false);
                asm.put(Instruction::with2(STORE, place, regs.zmm(slot)));
                Brought::Lanes(at)
            }
        }
    }
}

#[derive(Debug)]
struct LaneByLane {
    atomic: Atomic,
    base: u8,
    index: u8,
    scale: u8,
    disp: i32,
    value: Operands,
    comparator: Operands,
    /// Bits of the mask, and a register for those that are left.
    lanes: (u8, u8),
    accumulator: u8,
    /// For the lane, its index, its value, its comparator.
    temps: [u8; 4],
    result: Option<u8>,
}

impl Expand for LaneByLane {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        let results = asm.scratch(RESULT_AT, false);
        if let Some(result) = self.result {
            let zmm = regs.zmm(result);
            asm.put(Instruction::with3(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32, zmm, zmm, zmm));
            asm.put(Instruction::with2(STORE, results, zmm));
        }
        let indices = asm.scratch(INDEX_AT, false);
        asm.put(Instruction::with2(STORE, indices, regs.zmm(self.index)));
        let (bits, left) = (regs.gpr32(self.lanes.0), regs.gpr32(self.lanes.1));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, left, bits));
        let [lane, index, value, comparator] = self.temps;
        let lanes = Loop {
            lanes: left,
            lane: regs.gpr(lane),
            index: regs.gpr(index),
            memory: LaneMemory { base: regs.gpr(self.base), scale: self.scale, disp: self.disp },
            value: self.value.bring(regs, asm, VALUE_AT),
            comparator: self.comparator.bring(regs, asm, COMPARATOR_AT),
        };
        let old = regs.gpr32(self.accumulator);
        let registers = Registers { old, value: regs.gpr32(value), comparator: regs.gpr32(comparator) };
        lanes.write(asm, &self.atomic, registers);
        if let Some(result) = self.result {
            asm.put(Instruction::with2(Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512, regs.zmm(result), results));
        }
    }
}
