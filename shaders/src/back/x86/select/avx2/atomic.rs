//! Atomics lane by lane, in order; or once, where all lanes have one address and nobody asks for the old values.

use iced_x86::{Code, Instruction, OpKind};
use regalloc2::{Operand, PReg, RegClass, VReg};
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::atomic::{
    ACCUMULATOR, Atomic, Brought, COMPARATOR_AT, INDEX_AT, LaneMemory, Loop, RESULT_AT, Registers, VALUE_AT,
};
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{Build, Expand, Kind, View};
use super::Halves;
use super::operand::Pair;
use crate::ir::AtomicOp;
use crate::simd::{Inst, InstData, LaneAddress, Value};

const STORE: Code = Code::VEX_Vmovups_ymmm256_ymm;
const LOAD: Code = Code::VEX_Vmovups_ymm_ymmm256;

/// An address for each lane; the index has no sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub base: VReg,
    pub index: Pair,
    pub scale: u8,
    pub disp: i32,
}

/// Slots of the operands, added one by one.
#[derive(Debug, Default)]
struct Slots(SmallVec<[Operand; 16]>);

impl Slots {
    fn add(&mut self, operand: Operand) -> u8 {
        self.0.push(operand);
        self.0.len() as u8 - 1
    }

    fn vector(&mut self, pair: Pair) -> [u8; 2] {
        pair.map(|reg| self.add(Operand::reg_use(reg)))
    }
}

impl Halves<'_, '_> {
    /// An atomic instruction; `data` is [`InstData::Atomic`].
    pub(super) fn atomic(&mut self, inst: Inst, data: &InstData) -> Result<(), CompileError> {
        let &InstData::Atomic { op, ref lanes, value, comparator, lock, sequential, mask } = data else {
            unreachable!("not an atomic: {data:?}")
        };
        let result = self.kernel.results[inst].first().is_some_and(|&result| self.facts.is_used(result));
        if op == AtomicOp::Load && !result {
            return Ok(());
        }
        let atomic = Atomic { op, lock, sequential, result };
        let bits = self.mask_bits(mask)?;
        let counts = matches!(op, AtomicOp::Add | AtomicOp::Sub) && !result && self.same_index(lanes.index);
        if let (true, Some(step)) = (counts, value.and_then(|value| self.constant(value))) {
            return self.counted(atomic, lanes, step as u32, bits);
        }
        if let Some(result) = self.lane_by_lane(atomic, lanes, [value, comparator], bits)? {
            self.bind(inst, result);
        }
        Ok(())
    }

    /// Whether all lanes have one index.
    fn same_index(&self, index: Value) -> bool {
        let definition = self.kernel.definition(self.facts.canonical(index));
        matches!(definition, Some(InstData::Splat { .. } | InstData::Const { .. }))
    }

    /// A constant added to one word for each lane is one sum: the lowest lane brings what all of them do.
    fn counted(&mut self, atomic: Atomic, lanes: &LaneAddress, step: u32, bits: VReg) -> Result<(), CompileError> {
        let [count, sum, lowest] = std::array::from_fn(|_| self.general());
        Build::new(Code::Popcnt_r32_rm32).def(count, View::Dword).reads(bits, View::Dword).push(&mut self.code);
        let build = Build::new(Code::Imul_r32_rm32_imm32).def(sum, View::Dword).reads(count, View::Dword);
        build.imm(OpKind::Immediate32, i64::from(step)).push(&mut self.code);
        Build::new(Code::VEX_Blsi_r32_rm32).def(lowest, View::Dword).reads(bits, View::Dword).push(&mut self.code);
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.pair(lanes.index)?;
        let mut slots = Slots::default();
        let value = Operands::Same(slots.add(Operand::reg_use(sum)));
        let place = Place { base, index, scale: lanes.scale, disp };
        self.write_lanes(atomic, place, [value, Operands::Nothing], lowest, slots);
        Ok(())
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
            _ => {
                let pair = self.pair(value)?;
                Operands::Vector(slots.vector(pair))
            }
        })
    }

    /// The operation for each lane whose bit is set, and registers with the old values if somebody asks for them.
    pub(super) fn lane_by_lane(
        &mut self,
        atomic: Atomic,
        lanes: &LaneAddress,
        brought: [Option<Value>; 2],
        bits: VReg,
    ) -> Result<Option<Pair>, CompileError> {
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.pair(lanes.index)?;
        self.lanes_at(atomic, Place { base, index, scale: lanes.scale, disp }, brought, bits)
    }

    /// As [`Halves::lane_by_lane`], at an address in registers.
    pub(super) fn lanes_at(
        &mut self,
        atomic: Atomic,
        place: Place,
        [value, comparator]: [Option<Value>; 2],
        bits: VReg,
    ) -> Result<Option<Pair>, CompileError> {
        let mut slots = Slots::default();
        let brought = [self.brought(value, &mut slots)?, self.brought(comparator, &mut slots)?];
        Ok(self.write_lanes(atomic, place, brought, bits, slots))
    }

    /// As [`Halves::lanes_at`] with operands that have slots.
    fn write_lanes(
        &mut self,
        atomic: Atomic,
        place: Place,
        [value, comparator]: [Operands; 2],
        bits: VReg,
        mut slots: Slots,
    ) -> Option<Pair> {
        let result = atomic.result.then(|| [self.lanes_reg(), self.lanes_reg()]);
        let [left, accumulator] = [self.general(), self.general()];
        let temps: [VReg; 4] = std::array::from_fn(|_| self.general());
        let sequence = LaneByLane {
            atomic,
            base: slots.add(Operand::reg_use(place.base)),
            index: slots.vector(place.index),
            scale: place.scale,
            disp: place.disp,
            value,
            comparator,
            lanes: (slots.add(Operand::reg_use(bits)), slots.add(Operand::reg_temp(left))),
            accumulator: slots.add(Operand::reg_fixed_def_at_start(accumulator, PReg::new(ACCUMULATOR, RegClass::Int))),
            temps: temps.map(|temp| slots.add(Operand::reg_temp(temp))),
            result: result.map(|pair| pair.map(|reg| slots.add(Operand::reg_def_at_start(reg)))),
        };
        self.code.scratch = true;
        self.code.push(Kind::Sequence(Box::new(sequence)), &slots.0);
        result
    }
}

/// What lanes bring, by slot.
#[derive(Clone, Copy, Debug)]
enum Operands {
    Nothing,
    Same(u8),
    Vector([u8; 2]),
}

/// Puts a vector into the scratch area.
fn keep(vector: [u8; 2], at: i32, regs: Regs<'_>, asm: &mut Assembler<'_>) {
    for (half, at) in vector.into_iter().zip([at, at + 32]) {
        let place = asm.scratch(at, false);
        asm.put(Instruction::with2(STORE, place, regs.ymm(half)));
    }
}

impl Operands {
    fn bring(self, regs: Regs<'_>, asm: &mut Assembler<'_>, at: i32) -> Brought {
        match self {
            Self::Nothing => Brought::Nothing,
            Self::Same(slot) => Brought::Same(regs.gpr32(slot)),
            Self::Vector(slots) => {
                keep(slots, at, regs, asm);
                Brought::Lanes(at)
            }
        }
    }
}

#[derive(Debug)]
struct LaneByLane {
    atomic: Atomic,
    base: u8,
    index: [u8; 2],
    scale: u8,
    disp: i32,
    value: Operands,
    comparator: Operands,
    /// Bits of the mask, and a register for those that are left.
    lanes: (u8, u8),
    accumulator: u8,
    /// For the lane, its index, its value, its comparator.
    temps: [u8; 4],
    result: Option<[u8; 2]>,
}

impl Expand for LaneByLane {
    fn hot(&self, regs: Regs<'_>, asm: &mut Assembler<'_>) {
        if let Some(result) = self.result {
            for half in result {
                let ymm = regs.ymm(half);
                asm.put(Instruction::with3(Code::VEX_Vpxor_ymm_ymm_ymmm256, ymm, ymm, ymm));
            }
            keep(result, RESULT_AT, regs, asm);
        }
        keep(self.index, INDEX_AT, regs, asm);
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
        for (half, at) in self.result.into_iter().flatten().zip([RESULT_AT, RESULT_AT + 32]) {
            let results = asm.scratch(at, false);
            asm.put(Instruction::with2(LOAD, regs.ymm(half), results));
        }
    }
}
