//! Atomics: lane by lane, in order; or once, where all lanes have one address and nobody asks for the old values; or
//! together, where words are next to each other.

use iced_x86::{Code, Instruction, OpKind};
use regalloc2::{Operand, PReg, RegClass, VReg};
use smallvec::SmallVec;

use super::super::super::CompileError;
use super::super::super::atomic::{
    ACCUMULATOR, Atomic, Brought, COMPARATOR_AT, INDEX_AT, LaneMemory, Loop, RESULT_AT, Registers, VALUE_AT,
};
use super::super::super::encode::{Assembler, Regs};
use super::super::super::vcode::{self, Build, Expand, Kind, View};
use super::super::lane_atomics::{LaneAtomic, PLACES};
use super::Halves;
use super::operand::Pair;
use crate::back::x86::contiguous_atomics::{self, Neighbours};
use crate::back::x86::scatter_add::Increments;
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
        if let (Some(index), Some(value)) = (self.row_index(lanes), value)
            && self.neighbours(inst, atomic, lanes, index, value, mask)?
        {
            return Ok(());
        }
        let bits = self.mask_bits(mask)?;
        if result && self.same_index(lanes.index) && self.running(inst, atomic, lanes, value, mask, bits)? {
            return Ok(());
        }
        if let (false, Some(value)) = (result, value) {
            let constant = self.constant(value).map(|bits| bits as u32);
            let sum = matches!(op, AtomicOp::Add | AtomicOp::Sub);
            match (self.same_index(lanes.index), constant) {
                (true, Some(step)) if sum => {
                    let word = self.step_for_each(bits, step);
                    self.once(atomic, lanes, word, bits)?;
                    return Ok(());
                }
                (true, _) => {
                    if let Some(reduction) = reduction(op) {
                        let word = self.reduce(reduction, value, mask)?;
                        self.once(atomic, lanes, word, bits)?;
                        return Ok(());
                    }
                }
                (false, Some(by)) if op == AtomicOp::Add && !lock => return self.increments(lanes, by, bits),
                _ => {}
            }
        }
        if let Some(result) = self.lane_by_lane(atomic, lanes, [value, comparator], bits)? {
            self.bind(inst, result);
        }
        Ok(())
    }

    /// On floats, halves or 64 bits; `words` are low and high ones of value and comparator.
    fn general_atomic(
        &mut self,
        inst: Inst,
        data: &InstData,
        words: [[Option<Value>; 2]; 2],
    ) -> Result<(), CompileError> {
        let &InstData::Atomic { op, ref lanes, wide, lock, mask, .. } = data else { return Ok(()) };
        let index = self.pair(lanes.index)?;
        let mut kept = SmallVec::new();
        for (value, at) in words.into_iter().flatten().zip(PLACES.into_iter().flatten()) {
            if let Some(value) = value {
                kept.push((self.pair(value)?, at));
            }
        }
        let bits = self.mask_bits(mask)?;
        let mut results = SmallVec::new();
        for number in 0..self.kernel.results[inst].len() {
            let pair = [self.lanes_reg(), self.lanes_reg()];
            self.bind_nth(inst, number, pair);
            results.extend(pair);
        }
        self.lane_atomic(LaneAtomic { op, lanes, index, words: kept, wide: wide.is_some(), lock, bits, results })
    }

    /// Whether all lanes have one index.
    fn same_index(&self, index: Value) -> bool {
        let definition = self.kernel.definition(self.facts.canonical(index));
        matches!(definition, Some(InstData::Splat { .. } | InstData::Const { .. }))
    }

    /// The number of lanes that are on times `step`.
    fn step_for_each(&mut self, bits: VReg, step: u32) -> VReg {
        let [count, sum] = std::array::from_fn(|_| self.general());
        Build::new(Code::Popcnt_r32_rm32).def(count, View::Dword).reads(bits, View::Dword).push(&mut self.code);
        let build = Build::new(Code::Imul_r32_rm32_imm32).def(sum, View::Dword).reads(count, View::Dword);
        build.imm(OpKind::Immediate32, i64::from(step)).push(&mut self.code);
        sum
    }

    /// The lanes that are on, folded in halves.
    fn reduce(&mut self, (code, neutral): (Code, u32), value: Value, mask: Value) -> Result<VReg, CompileError> {
        let mut lanes = self.pair(value)?;
        if !self.is_all(mask) {
            let (mask, neutral) = (self.pair(mask)?, self.fill(neutral));
            lanes = self.blend(mask, lanes.into(), neutral);
        }
        let whole = self.fold(code, lanes);
        let word = self.general();
        let build = Build::new(Code::VEX_Vmovd_rm32_xmm).def(word, View::Dword).reads(whole, View::Xmm);
        build.push(&mut self.code);
        Ok(word)
    }

    /// What all lanes make together, in each lane of a half.
    pub(super) fn fold(&mut self, code: Code, lanes: Pair) -> VReg {
        let mut whole = self.lanes_reg();
        let build = Build::new(code).def(whole, View::Ymm).reads(lanes[0], View::Ymm);
        build.reads(lanes[1], View::Ymm).push(&mut self.code);
        let within = Code::VEX_Vpshufd_ymm_ymmm256_imm8;
        for (order, order_of) in [(Code::VEX_Vpermq_ymm_ymmm256_imm8, 0x4e), (within, 0x4e), (within, 0xb1)] {
            let (moved, folded) = (self.lanes_reg(), self.lanes_reg());
            let build = Build::new(order).def(moved, View::Ymm).reads(whole, View::Ymm);
            build.imm8(order_of).push(&mut self.code);
            let build = Build::new(code).def(folded, View::Ymm).reads(whole, View::Ymm);
            build.reads(moved, View::Ymm).push(&mut self.code);
            whole = folded;
        }
        whole
    }

    /// One operation with what all lanes together bring: the lowest lane does it, and has the old value.
    pub(super) fn once(
        &mut self,
        atomic: Atomic,
        lanes: &LaneAddress,
        word: VReg,
        bits: VReg,
    ) -> Result<Option<Pair>, CompileError> {
        let lowest = self.general();
        Build::new(Code::VEX_Blsi_r32_rm32).def(lowest, View::Dword).reads(bits, View::Dword).push(&mut self.code);
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.pair(lanes.index)?;
        let mut slots = Slots::default();
        let value = Operands::Same(slots.add(Operand::reg_use(word)));
        let place = Place { base, index, scale: lanes.scale, disp };
        Ok(self.write_lanes(atomic, place, [value, Operands::Nothing], lowest, slots))
    }

    /// Adds a constant for each lane, without a lock.
    fn increments(&mut self, lanes: &LaneAddress, by: u32, bits: VReg) -> Result<(), CompileError> {
        let (base, disp) = self.base(lanes.base, lanes.disp)?;
        let index = self.pair(lanes.index)?;
        let increments = Increments { isa: self.isa, by, base, scale: lanes.scale, disp, index, bits };
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
            let (value, (base, disp)) = (self.pair(value)?, self.base(lanes.base, lanes.disp)?);
            let (index, bits) = (self.reg(index)?, self.mask_bits(mask)?);
            Neighbours { isa: self.isa, atomic, base, disp, index, bits, value }.push(&mut self.code);
            return Ok(true);
        }
        let operation = match (atomic.op, reduction(atomic.op)) {
            (AtomicOp::Sub, _) => Some(Code::VEX_Vpsubd_ymm_ymm_ymmm256),
            (AtomicOp::Exchange, _) => None,
            (_, Some((code, _))) => Some(code),
            _ => return Ok(false),
        };
        let value = self.pair(value)?;
        let place = self.row_place(lanes, index)?;
        let mask = self.pair(mask)?;
        let old = [self.lanes_reg(), self.lanes_reg()];
        for half in 0..2 {
            let place = vcode::Place { disp: place.disp + 32 * half as i32, ..place };
            let load = Build::new(Code::VEX_Vmaskmovps_ymm_ymm_m256).def(old[half], View::Ymm);
            load.reads(mask[half], View::Ymm).at(&place).push(&mut self.code);
        }
        let new = match operation {
            Some(operation) => self.op2(operation, old, value),
            None => value,
        };
        for half in 0..2 {
            let place = vcode::Place { disp: place.disp + 32 * half as i32, ..place };
            let store = Build::new(Code::VEX_Vmaskmovps_m256_ymm_ymm).at(&place);
            store.reads(mask[half], View::Ymm).reads(new[half], View::Ymm).push(&mut self.code);
        }
        if atomic.result {
            self.bind(inst, old);
        }
        Ok(true)
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

/// How lanes are combined before one operation, and what lanes that are off count as.
fn reduction(op: AtomicOp) -> Option<(Code, u32)> {
    Some(match op {
        AtomicOp::Add | AtomicOp::Sub => (Code::VEX_Vpaddd_ymm_ymm_ymmm256, 0),
        AtomicOp::SMin => (Code::VEX_Vpminsd_ymm_ymm_ymmm256, 0x7fff_ffff),
        AtomicOp::UMin => (Code::VEX_Vpminud_ymm_ymm_ymmm256, u32::MAX),
        AtomicOp::SMax => (Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, 0x8000_0000),
        AtomicOp::UMax => (Code::VEX_Vpmaxud_ymm_ymm_ymmm256, 0),
        AtomicOp::And => (Code::VEX_Vpand_ymm_ymm_ymmm256, u32::MAX),
        AtomicOp::Or => (Code::VEX_Vpor_ymm_ymm_ymmm256, 0),
        AtomicOp::Xor => (Code::VEX_Vpxor_ymm_ymm_ymmm256, 0),
        _ => return None,
    })
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
