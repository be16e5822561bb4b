//! AVX2: a vector is two registers of 8 lanes; a mask is a vector with all ones or all zeros in each lane.
//!
//! If both halves are equal, as those of a splat are, they may be one register; operations on such vectors are emitted
//! once.

mod atomic_scan;
mod compare;
mod convert;
mod double;
mod elements;
mod float;
mod gather;
mod gather_elements;
mod integer;
mod lanes;
mod mask;
mod operand;
mod packed;
mod permute;
mod row;
mod uniform;
mod uniform_atomic;

use cranelift_entity::SecondaryMap;
use iced_x86::{Code, ConditionCode};
use regalloc2::{RegClass, VReg};

use self::operand::RegisterPair;
use super::super::Isa;
use super::super::atomic::AtomicCode;
use super::super::pool::{Pool, PooledConstant};
use super::super::vcode::{AddressRegisters, Build, Expand, View};
use super::double::{Double, DoubleRegisters};
use super::gather_elements::LaneWordSlots;
use super::row::RowPlace;
use super::{Result, Select, VectorIsa};
use crate::ir::{AtomicOp, Op, Width};
use crate::simd::{Address, Elements, Inst, InstData, Kernel, LaneAddress, Row, Type, Value, ValueDef};

/// The instruction set and the registers of vectors' upper halves, unless equal to the lower ones.
pub(super) struct Avx2 {
    highs: SecondaryMap<Value, Option<VReg>>,
}

impl VectorIsa for Avx2 {
    const ISA: Isa = Isa::Avx2;

    type Registers = RegisterPair;

    fn new(_: &Kernel) -> Self {
        Self { highs: SecondaryMap::new() }
    }

    fn has_nontemporal_stores(&self) -> bool {
        false
    }

    fn registers(select: &mut Select<'_, Self>, value: Value) -> Result<RegisterPair> {
        select.pair(value)
    }

    fn define(select: &mut Select<'_, Self>, value: Value) -> RegisterPair {
        let pair = [select.lanes_reg(), select.lanes_reg()];
        select.regs[value] = Some(pair[0]);
        select.vectors.highs[value] = Some(pair[1]);
        pair
    }

    fn any(select: &mut Select<'_, Self>, mask: Value) -> Result<ConditionCode> {
        select.any_lane(mask)
    }

    fn mask_bits(select: &mut Select<'_, Self>, mask: Value) -> Result<VReg> {
        select.mask_bits(mask)
    }

    fn doubles(select: &mut Select<'_, Self>, double: Double, args: &[Value]) -> Result<DoubleRegisters> {
        select.compute_doubles(double, args)
    }

    fn mask_op(select: &mut Select<'_, Self>, inst: Inst, op: Op, args: &[Value]) -> Result {
        let result = select.mask_op(op, args)?;
        select.bind(inst, result);
        Ok(())
    }

    fn lane_op(select: &mut Select<'_, Self>, inst: Inst, op: Op, args: &[Value]) -> Result {
        let result = select.lane_op(op, args)?;
        select.bind(inst, result);
        Ok(())
    }

    fn select(select: &mut Select<'_, Self>, inst: Inst, [condition, then, otherwise]: [Value; 3]) -> Result {
        let result = select.vector_select(condition, then, otherwise)?;
        select.bind(inst, result);
        Ok(())
    }

    fn interleave_words(select: &mut Select<'_, Self>, low: Value, high: Value) -> Result<DoubleRegisters> {
        select.interleave_words(low, high)
    }

    fn exclusive_or(select: &mut Select<'_, Self>, words: RegisterPair, constant: u32) -> RegisterPair {
        let constant = select.word(constant);
        select.op2(Code::VEX_Vpxor_ymm_ymm_ymmm256, words, constant)
    }

    fn splat(select: &mut Select<'_, Self>, inst: Inst, value: Value) -> Result {
        let result = select.splat(value)?;
        select.bind(inst, result);
        Ok(())
    }

    fn extract(select: &mut Select<'_, Self>, inst: Inst, vector: Value, lane: Value) -> Result {
        select.extract(inst, vector, lane)
    }

    fn pick(select: &mut Select<'_, Self>, inst: Inst, [first, second]: [Value; 2], words: &[u8; 16]) -> Result {
        let result = select.pick(first, second, words)?;
        select.bind(inst, result);
        Ok(())
    }

    fn permute(select: &mut Select<'_, Self>, inst: Inst, vector: Value, lanes: Value) -> Result {
        let result = select.permute(vector, lanes)?;
        select.bind(inst, result);
        Ok(())
    }

    fn first_lane(select: &mut Select<'_, Self>, inst: Inst, mask: Value) -> Result {
        let bits = select.mask_bits(mask)?;
        let stopped = select.general();
        select.lowest_lane(inst, bits, stopped);
        Ok(())
    }

    fn load_broadcast(select: &mut Select<'_, Self>, inst: Inst, address: &Address) -> Result {
        select.load_broadcast(inst, address)
    }

    fn store_uniform(
        select: &mut Select<'_, Self>,
        width: Width,
        address: &Address,
        value: Value,
        mask: Value,
    ) -> Result {
        select.store_uniform(width, address, value, mask)
    }

    fn gather(select: &mut Select<'_, Self>, inst: Inst, lanes: &LaneAddress, mask: Value) -> Result {
        select.gather(inst, lanes, mask)
    }

    fn scatter(select: &mut Select<'_, Self>, lanes: &LaneAddress, value: Value, mask: Value) -> Result {
        select.scatter(lanes, value, mask)
    }

    fn load_elements(select: &mut Select<'_, Self>, inst: Inst, elements: &Elements) -> Result {
        select.load_elements(inst, elements)
    }

    fn store_elements(select: &mut Select<'_, Self>, elements: &Elements, values: &[Value], mask: Value) -> Result {
        select.store_elements(elements, values, mask)
    }

    const ROW_TEMPS: usize = 2;

    fn row_constants(pool: &mut Pool) -> PooledConstant {
        pool.range_masks()
    }

    fn checked_row_load(place: RowPlace, fetch: Option<i32>) -> Box<dyn Expand> {
        Box::new(row::LoadRow { place, fetch })
    }

    fn checked_row_store(&self, _: &Row, place: RowPlace, masked: bool) -> Box<dyn Expand> {
        Box::new(row::StoreRow { place, masked })
    }

    fn store_row_in_bounds(
        select: &mut Select<'_, Self>,
        row: &Row,
        place: &AddressRegisters,
        value: RegisterPair,
        mask: Option<RegisterPair>,
    ) {
        select.store_row_in_bounds(row, place, value, mask);
    }

    const LANE_WORDS_TEMPS: &[RegClass] = &[RegClass::Float, RegClass::Int];

    fn constant_one(pool: &mut Pool) -> PooledConstant {
        pool.vector([1; 16])
    }

    fn gather_lane_words(words: LaneWordSlots) -> Box<dyn Expand> {
        Box::new(gather_elements::GatherElements(words))
    }

    fn load_mask(select: &mut Select<'_, Self>, inst: Inst, place: &AddressRegisters) {
        let bits = select.lanes_reg();
        Build::new(Code::VEX_Vpbroadcastd_ymm_xmmm32).def(bits, View::Ymm).at(place).push(&mut select.code);
        let mask = select.mask_of_bits([bits, bits]);
        select.bind(inst, mask);
    }

    fn store_mask(select: &mut Select<'_, Self>, place: &AddressRegisters, mask: Value) -> Result {
        let bits = select.mask_bits(mask)?;
        Build::new(Code::Mov_rm32_r32).at(place).reads(bits, View::Dword).push(&mut select.code);
        Ok(())
    }

    fn zeros_and_counter(select: &mut Select<'_, Self>) -> [VReg; 2] {
        let counter = select.general();
        let [zeros, _] = select.fill(0);
        [zeros, counter]
    }

    const EARLY_MASK_BITS: bool = true;

    fn reduction(op: AtomicOp) -> Option<Code> {
        uniform_atomic::reduction(op)
    }

    fn reduce(select: &mut Select<'_, Self>, op: AtomicOp, value: Value, mask: Value) -> Result<VReg> {
        select.reduce(op, value, mask)
    }

    fn step_for_each(select: &mut Select<'_, Self>, bits: VReg, step: u32) -> VReg {
        let count = select.count_lanes(bits);
        select.multiple(count, step)
    }

    fn reduced_atomic(
        select: &mut Select<'_, Self>,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        _: Value,
        bits: VReg,
        word: VReg,
    ) -> Result {
        select.emit_uniform_atomic(atomic, lanes, word, bits)?;
        Ok(())
    }

    fn scanned_atomic(
        select: &mut Select<'_, Self>,
        inst: Inst,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        _: Value,
        value: Option<Value>,
        mask: Value,
    ) -> Result<bool> {
        select.scan(inst, atomic, lanes, value, mask)
    }
}

impl Select<'_, Avx2> {
    /// Binds the first result to registers.
    fn bind(&mut self, inst: Inst, registers: RegisterPair) {
        self.bind_nth(inst, 0, registers);
    }

    fn bind_nth(&mut self, inst: Inst, number: usize, [low, high]: RegisterPair) {
        let value = self.kernel.results[inst][number];
        self.regs[value] = Some(low);
        self.vectors.highs[value] = Some(high);
    }

    /// The registers of a vector or mask; emits it first if it is deferred.
    pub(super) fn pair(&mut self, value: Value) -> Result<RegisterPair> {
        let value = self.uses.canonical(value);
        if self.regs[value].is_none()
            && let ValueDef::Result { inst, .. } = self.kernel.values[value]
        {
            let kernel = self.kernel;
            match &kernel.insts[inst] {
                InstData::Const { ty: Type::Mask, bits } => return Ok(self.constant_mask(*bits as u16)),
                InstData::Const { bits, .. } => return Ok(self.fill(*bits as u32)),
                InstData::Lanes { values } => return Ok(self.load_lanes(**values)),
                InstData::Undef { .. } => {
                    let any = self.undefined(Type::V32);
                    return Ok([any, any]);
                }
                _ => {}
            }
        }
        let low = self.written(value)?;
        Ok([low, self.vectors.highs[value].unwrap_or(low)])
    }
}
