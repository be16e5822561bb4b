//! Atomics: lane by lane, in order; or once, with the combined value, if all lanes have one address.

use iced_x86::{Code, Instruction, OpKind, Register};
use regalloc2::{Operand, PReg, RegClass, VReg};
use smallvec::SmallVec;

use super::super::Isa;
use super::super::atomic::{
    ACCUMULATOR, AtomicCode, AtomicLoop, AtomicRegisters, Brought, COMPARATOR_AT, INDEX_AT, LaneLoop, LaneMemory,
    RESULT_AT, VALUE_AT,
};
use super::super::encode::{Assembler, Regs};
use super::super::vcode::{Build, Expand, InstKind, View};
use super::lane_address::LaneAddressRegisters;
use super::lane_atomics::{LaneAtomic, PLACES};
use super::registers::OperandSlots;
use super::{Result, Select, VectorIsa};
use crate::ir::AtomicOp;
use crate::simd::{Inst, InstData, LaneAddress, Value};

impl OperandSlots {
    /// The operand in the accumulator.
    pub(super) fn accumulator(&mut self, reg: VReg) -> u8 {
        self.add(Operand::reg_fixed_def_at_start(reg, PReg::new(ACCUMULATOR, RegClass::Int)))
    }

    /// The registers of a vector.
    pub(super) fn vector(&mut self, isa: Isa, regs: &[VReg], operand: fn(VReg) -> Operand) -> Vector {
        Vector { isa, slots: regs.iter().map(|&reg| self.add(operand(reg))).collect() }
    }
}

/// The slots of a vector's registers.
#[derive(Clone, Debug)]
pub(super) struct Vector {
    isa: Isa,
    slots: SmallVec<[u8; 2]>,
}

impl Vector {
    /// The registers, each with its position from `at` on in the scratch area.
    fn each(&self, regs: Regs<'_>, at: i32) -> impl Iterator<Item = (Register, i32)> {
        let (view, bytes) = (self.isa.view(), self.isa.vector_bytes());
        (0..).zip(&self.slots).map(move |(number, &slot)| (regs.view(slot, view), at + number * bytes))
    }

    fn keep(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, at: i32) {
        for (reg, at) in self.each(regs, at) {
            let place = asm.scratch(at, false);
            asm.put(Instruction::with2(self.isa.vectors().store, place, reg));
        }
    }

    fn fetch(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, at: i32) {
        for (reg, at) in self.each(regs, at) {
            let place = asm.scratch(at, false);
            asm.put(Instruction::with2(self.isa.vectors().load, reg, place));
        }
    }

    fn clear(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        for (reg, _) in self.each(regs, 0) {
            asm.put(Instruction::with3(self.isa.vectors().xor, reg, reg, reg));
        }
    }
}

/// The value of inactive lanes in a reduction, which does not change its result.
pub(super) fn neutral(op: AtomicOp) -> u32 {
    match op {
        AtomicOp::SMin => 0x7fff_ffff,
        AtomicOp::UMin | AtomicOp::And => u32::MAX,
        AtomicOp::SMax => 0x8000_0000,
        _ => 0,
    }
}

impl<V: VectorIsa> Select<'_, V> {
    /// An atomic instruction; `data` is [`InstData::Atomic`].
    pub(super) fn atomic(&mut self, inst: Inst, data: &InstData) -> Result {
        let &InstData::Atomic { op, ref lanes, value, comparator, wide, lock, sequential, mask } = data else {
            unreachable!("not an atomic: {data:?}")
        };
        if wide.is_some() || op.is_float() || op.is_half() {
            let high = wide.unwrap_or_default();
            return self.general_atomic(inst, data, [[value, high[0]], [comparator, high[1]]]);
        }
        let result = self.kernel.results[inst].first().is_some_and(|&result| self.uses.is_used(result));
        if op == AtomicOp::Load && !result {
            return Ok(());
        }
        let atomic = AtomicCode { op, lock, sequential, result };
        if let Some(index) = self.same_index(lanes.index)
            && self.uniform_atomic(inst, atomic, lanes, index, value, mask)?
        {
            return Ok(());
        }
        self.lane_by_lane(inst, atomic, lanes, [value, comparator], mask)
    }

    /// On floats, halves or 64 bits; `words` are low and high ones of value and comparator.
    fn general_atomic(&mut self, inst: Inst, data: &InstData, words: [[Option<Value>; 2]; 2]) -> Result {
        let &InstData::Atomic { op, ref lanes, wide, lock, mask, .. } = data else { return Ok(()) };
        let index = self.halves(lanes.index)?;
        let mut kept = SmallVec::new();
        for (value, at) in words.into_iter().flatten().zip(PLACES.into_iter().flatten()) {
            if let Some(value) = value {
                kept.push((self.halves(value)?, at));
            }
        }
        let bits = V::mask_bits(self, mask)?;
        let mut results = SmallVec::new();
        for number in 0..self.kernel.results[inst].len() {
            let result = V::define(self, self.kernel.results[inst][number]);
            results.extend_from_slice(result.as_ref());
        }
        self.lane_atomic(LaneAtomic { op, lanes, index, words: kept, wide: wide.is_some(), lock, bits, results })
    }

    /// The scalar that all lanes have as their index, or the constant vector that is.
    fn same_index(&self, index: Value) -> Option<Value> {
        let index = self.uses.canonical(index);
        match self.kernel.definition(index)? {
            InstData::Splat { value } => Some(*value),
            InstData::Const { .. } => Some(index),
            _ => None,
        }
    }

    /// One operation for all lanes, as they have the same address; whether the operation has this form.
    fn uniform_atomic(
        &mut self,
        inst: Inst,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        index: Value,
        value: Option<Value>,
        mask: Value,
    ) -> Result<bool> {
        if atomic.result && self.kernel.subgroup_order > 0 {
            // A scan has the lowest lane first.
            return Ok(false);
        }
        if atomic.result {
            let is_scan = V::scanned_atomic(self, inst, atomic, lanes, index, value, mask)?;
            self.code.forms.extend(is_scan.then_some("atomic scans"));
            return Ok(is_scan);
        }
        let Some(value) = value.filter(|_| V::reduction(atomic.op).is_some()) else { return Ok(false) };
        let bits = V::mask_bits(self, mask)?;
        let is_sum = matches!(atomic.op, AtomicOp::Add | AtomicOp::Sub);
        let word = match self.constant(value) {
            Some(step) if is_sum => V::step_for_each(self, bits, step as u32),
            _ => V::reduce(self, atomic.op, value, mask)?,
        };
        V::reduced_atomic(self, atomic, lanes, index, bits, word)?;
        self.code.forms.insert("uniform atomics");
        Ok(true)
    }

    fn early_mask_bits(&mut self, mask: Value) -> Result<Option<VReg>> {
        if V::EARLY_MASK_BITS { Ok(Some(V::mask_bits(self, mask)?)) } else { Ok(None) }
    }

    fn mask_bits_after(&mut self, early: Option<VReg>, mask: Value) -> Result<VReg> {
        match early {
            Some(bits) => Ok(bits),
            None => V::mask_bits(self, mask),
        }
    }

    /// The operands of lanes: a vector, or a scalar that is the same for all.
    fn brought(&mut self, value: Option<Value>, slots: &mut OperandSlots) -> Result<LaneOperands> {
        let Some(value) = value else { return Ok(LaneOperands::Nothing) };
        let value = self.uses.canonical(value);
        Ok(match self.kernel.definition(value) {
            Some(InstData::Splat { value: scalar }) => {
                let scalar = self.reg(*scalar)?;
                LaneOperands::Same(slots.add(Operand::reg_use(scalar)))
            }
            Some(InstData::Const { bits, .. }) => {
                let scalar = self.general();
                self.set(scalar, u64::from(*bits as u32));
                LaneOperands::Same(slots.add(Operand::reg_use(scalar)))
            }
            _ => {
                let regs = V::registers(self, value)?;
                LaneOperands::Vector(slots.vector(V::ISA, regs.as_ref(), Operand::reg_use))
            }
        })
    }

    /// The operation for each active lane.
    fn lane_by_lane(
        &mut self,
        inst: Inst,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        [value, comparator]: [Option<Value>; 2],
        mask: Value,
    ) -> Result {
        let early = self.early_mask_bits(mask)?;
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = V::registers(self, lanes.index)?;
        let mut slots = OperandSlots::default();
        let brought = [self.brought(value, &mut slots)?, self.brought(comparator, &mut slots)?];
        let bits = self.mask_bits_after(early, mask)?;
        // Numbers of registers are visible in the allocator's choices, so each instruction set keeps its order.
        let value = self.kernel.results[inst].first().copied().filter(|_| atomic.result);
        let mut result = value.filter(|_| V::EARLY_MASK_BITS).map(|value| V::define(self, value));
        let left = self.general();
        if !V::EARLY_MASK_BITS {
            result = value.map(|value| V::define(self, value));
        }
        let place = LaneAddressRegisters { base, index, scale: lanes.scale, disp };
        self.push_lane_by_lane(atomic, place, brought, [bits, left], result, slots);
        Ok(())
    }

    /// As [`Select::lane_by_lane`], with all operands in registers or slots; `left` is a temporary.
    pub(super) fn push_lane_by_lane(
        &mut self,
        atomic: AtomicCode,
        place: LaneAddressRegisters<V>,
        [value, comparator]: [LaneOperands; 2],
        [bits, left]: [VReg; 2],
        result: Option<V::Registers>,
        mut slots: OperandSlots,
    ) {
        let accumulator = self.general();
        let temps: [VReg; 4] = std::array::from_fn(|_| self.general());
        let order = self.lane_order().map(|order| slots.add(Operand::reg_use(order)));
        let sequence = LaneByLane {
            atomic,
            order,
            base: slots.add(Operand::reg_use(place.base)),
            index: slots.vector(V::ISA, place.index.as_ref(), Operand::reg_use),
            scale: place.scale,
            disp: place.disp,
            value,
            comparator,
            lanes: (slots.add(Operand::reg_use(bits)), slots.add(Operand::reg_temp(left))),
            accumulator: slots.accumulator(accumulator),
            temps: temps.map(|temp| slots.add(Operand::reg_temp(temp))),
            result: result.map(|regs| slots.vector(V::ISA, regs.as_ref(), Operand::reg_def_at_start)),
        };
        self.code.scratch = true;
        self.code.push(InstKind::Sequence(Box::new(sequence)), &slots);
    }

    /// Counts the active lanes.
    pub(super) fn count_lanes(&mut self, bits: VReg) -> VReg {
        let count = self.general();
        Build::new(Code::Popcnt_r32_rm32).def(count, View::Dword).reads(bits, View::Dword).push(&mut self.code);
        count
    }

    /// `count * step`.
    pub(super) fn multiple(&mut self, count: VReg, step: u32) -> VReg {
        let product = self.general();
        let build = Build::new(Code::Imul_r32_rm32_imm32).def(product, View::Dword).reads(count, View::Dword);
        build.imm(OpKind::Immediate32, i64::from(step)).push(&mut self.code);
        product
    }
}

/// The operands of lanes, by slot.
#[derive(Clone, Debug)]
pub(super) enum LaneOperands {
    Nothing,
    Same(u8),
    Vector(Vector),
}

impl LaneOperands {
    fn bring(&self, regs: Regs<'_>, asm: &mut Assembler<'_>, at: i32) -> Brought {
        match self {
            Self::Nothing => Brought::Nothing,
            Self::Same(slot) => Brought::Same(regs.gpr32(*slot)),
            Self::Vector(vector) => {
                vector.keep(regs, asm, at);
                Brought::Lanes(at)
            }
        }
    }
}

#[derive(Debug)]
struct LaneByLane {
    atomic: AtomicCode,
    base: u8,
    index: Vector,
    scale: u8,
    disp: i32,
    value: LaneOperands,
    comparator: LaneOperands,
    /// Bits of the mask, and a register for those of the remaining lanes.
    lanes: (u8, u8),
    /// Address of the order of lanes.
    order: Option<u8>,
    accumulator: u8,
    /// For the lane, its index, its value, its comparator.
    temps: [u8; 4],
    result: Option<Vector>,
}

impl Expand for LaneByLane {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        if let Some(result) = &self.result {
            result.clear(regs, asm);
            result.keep(regs, asm, RESULT_AT);
        }
        self.index.keep(regs, asm, INDEX_AT);
        let (bits, left) = (regs.gpr32(self.lanes.0), regs.gpr32(self.lanes.1));
        asm.put(Instruction::with2(Code::Mov_r32_rm32, left, bits));
        let [lane, index, value, comparator] = self.temps;
        let order = self.order.map(|order| regs.gpr(order));
        let lanes = AtomicLoop {
            lanes: LaneLoop { bits, left, lane: regs.gpr32(lane), order },
            lane: regs.gpr(lane),
            index: regs.gpr(index),
            memory: LaneMemory { base: regs.gpr(self.base), scale: self.scale, disp: self.disp },
            value: self.value.bring(regs, asm, VALUE_AT),
            comparator: self.comparator.bring(regs, asm, COMPARATOR_AT),
        };
        let old = regs.gpr32(self.accumulator);
        let registers = AtomicRegisters { old, value: regs.gpr32(value), comparator: regs.gpr32(comparator) };
        lanes.write(asm, &self.atomic, registers);
        if let Some(result) = &self.result {
            result.fetch(regs, asm, RESULT_AT);
        }
    }
}
