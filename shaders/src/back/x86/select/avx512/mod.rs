//! AVX-512: a vector is one register, a mask a mask register of 16 bits.

mod atomic_scan;
mod compare;
mod convert;
mod double;
mod elements;
mod float;
mod fused;
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

use iced_x86::{Code, ConditionCode};
use regalloc2::{RegClass, VReg};

use super::super::Isa;
use super::super::atomic::AtomicCode;
use super::super::pool::{Pool, PooledConstant};
use super::super::vcode::{AddressRegisters, Build, Expand, View};
use super::double::{Double, DoubleRegisters};
use super::gather_elements::LaneWordSlots;
use super::nontemporal::NontemporalStores;
use super::row::RowPlace;
use super::{Result, Select, VectorIsa, class_of};
use crate::ir::{AtomicOp, Op, Width};
use crate::simd::{Address, Elements, Inst, InstData, Kernel, LaneAddress, Row, Type, Value, ValueDef};

/// The instruction set and the buffers that are stored to non-temporally.
pub(super) struct Avx512 {
    nontemporal: NontemporalStores,
}

impl VectorIsa for Avx512 {
    const ISA: Isa = Isa::Avx512;

    type Registers = [VReg; 1];

    fn new(kernel: &Kernel) -> Self {
        Self { nontemporal: NontemporalStores::new(kernel) }
    }

    fn has_nontemporal_stores(&self) -> bool {
        self.nontemporal.any()
    }

    fn registers(select: &mut Select<'_, Self>, value: Value) -> Result<[VReg; 1]> {
        Ok([select.lanes(value)?])
    }

    fn define(select: &mut Select<'_, Self>, value: Value) -> [VReg; 1] {
        let reg = select.code.vreg(class_of(select.kernel.ty(value)));
        select.regs[value] = Some(reg);
        [reg]
    }

    fn any(select: &mut Select<'_, Self>, mask: Value) -> Result<ConditionCode> {
        select.any(mask)
    }

    fn mask_bits(select: &mut Select<'_, Self>, mask: Value) -> Result<VReg> {
        select.mask_bits(mask)
    }

    fn doubles(select: &mut Select<'_, Self>, double: Double, args: &[Value]) -> Result<DoubleRegisters> {
        select.compute_doubles(double, args)
    }

    fn mask_op(select: &mut Select<'_, Self>, inst: Inst, op: Op, args: &[Value]) -> Result {
        select.mask_op(inst, op, args)
    }

    fn lane_op(select: &mut Select<'_, Self>, inst: Inst, op: Op, args: &[Value]) -> Result {
        select.lane_op(inst, op, args)
    }

    fn select(select: &mut Select<'_, Self>, inst: Inst, [condition, then, otherwise]: [Value; 3]) -> Result {
        select.vector_select(inst, condition, then, otherwise)
    }

    fn interleave_words(select: &mut Select<'_, Self>, low: Value, high: Value) -> Result<DoubleRegisters> {
        select.interleave_words(low, high)
    }

    fn exclusive_or(select: &mut Select<'_, Self>, [words]: [VReg; 1], constant: u32) -> [VReg; 1] {
        let result = select.lanes_reg();
        let build = Build::new(Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32).def(result, View::Zmm).reads(words, View::Zmm);
        select.push_with(build, operand::Source::Word(constant), None);
        [result]
    }

    fn splat(select: &mut Select<'_, Self>, inst: Inst, value: Value) -> Result {
        select.splat(inst, value)
    }

    fn extract(select: &mut Select<'_, Self>, inst: Inst, vector: Value, lane: Value) -> Result {
        select.extract(inst, vector, lane)
    }

    fn pick(select: &mut Select<'_, Self>, inst: Inst, [first, second]: [Value; 2], words: &[u8; 16]) -> Result {
        select.pick(inst, first, second, words)
    }

    fn permute(select: &mut Select<'_, Self>, inst: Inst, vector: Value, lanes: Value) -> Result {
        select.permute(inst, vector, lanes)
    }

    fn first_lane(select: &mut Select<'_, Self>, inst: Inst, mask: Value) -> Result {
        let mask = select.lanes(mask)?;
        let [bits, stopped] = [select.general(), select.general()];
        Build::new(Code::VEX_Kmovw_r32_kr).def(bits, View::Dword).reads(mask, View::Mask).push(&mut select.code);
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

    const ROW_TEMPS: usize = 1;

    fn row_constants(pool: &mut Pool) -> PooledConstant {
        pool.vector(row::IOTA)
    }

    fn checked_row_load(place: RowPlace, fetch: Option<i32>) -> Box<dyn Expand> {
        Box::new(row::LoadRow { place, fetch })
    }

    fn checked_row_store(&self, row: &Row, place: RowPlace, masked: bool) -> Box<dyn Expand> {
        let store = row::StoreRow { place, masked };
        if self.nontemporal.has(row) { Box::new(row::NontemporalRow(store)) } else { Box::new(store) }
    }

    fn store_row_in_bounds(
        select: &mut Select<'_, Self>,
        _: &Row,
        place: &AddressRegisters,
        [value]: [VReg; 1],
        mask: Option<[VReg; 1]>,
    ) {
        let mut build = Build::new(Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm).at(place).reads(value, View::Zmm);
        if let Some([mask]) = mask {
            build = build.mask(mask);
        }
        build.push(&mut select.code);
    }

    const LANE_WORDS_TEMPS: &[RegClass] = &[RegClass::Float, RegClass::Int, RegClass::Vector];

    fn constant_one(pool: &mut Pool) -> PooledConstant {
        pool.word(1)
    }

    fn gather_lane_words(words: LaneWordSlots) -> Box<dyn Expand> {
        Box::new(gather_elements::GatherElements(words))
    }

    fn load_mask(select: &mut Select<'_, Self>, inst: Inst, place: &AddressRegisters) {
        let result = select.define_lanes(inst);
        Build::new(Code::VEX_Kmovw_kr_km16).def(result, View::Mask).at(place).push(&mut select.code);
    }

    fn store_mask(select: &mut Select<'_, Self>, place: &AddressRegisters, mask: Value) -> Result {
        let mask = select.lanes(mask)?;
        Build::new(Code::VEX_Kmovw_m16_kr).at(place).reads(mask, View::Mask).push(&mut select.code);
        Ok(())
    }

    fn zeros_and_counter(select: &mut Select<'_, Self>) -> [VReg; 2] {
        let (zeros, counter) = (select.lanes_reg(), select.general());
        select.set_lanes(zeros, 0);
        [zeros, counter]
    }

    const EARLY_MASK_BITS: bool = false;

    fn reduction(op: AtomicOp) -> Option<Code> {
        uniform_atomic::reduction(op)
    }

    fn reduce(select: &mut Select<'_, Self>, op: AtomicOp, value: Value, mask: Value) -> Result<VReg> {
        select.reduce(op, value, mask)
    }

    fn step_for_each(select: &mut Select<'_, Self>, bits: VReg, step: u32) -> VReg {
        let count = select.count_lanes(bits);
        if step == 1 { count } else { select.multiple(count, step) }
    }

    fn reduced_atomic(
        select: &mut Select<'_, Self>,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        index: Value,
        bits: VReg,
        word: VReg,
    ) -> Result {
        select.emit_uniform_atomic(atomic, lanes, index, bits, word)?;
        Ok(())
    }

    fn scanned_atomic(
        select: &mut Select<'_, Self>,
        inst: Inst,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        index: Value,
        value: Option<Value>,
        mask: Value,
    ) -> Result<bool> {
        select.scan(inst, atomic, lanes, index, value, mask)
    }
}

impl Select<'_, Avx512> {
    /// The register of a vector or mask; emits it first if it is deferred.
    fn lanes(&mut self, value: Value) -> Result<VReg> {
        debug_assert!(self.kernel.ty(value).is_vector(), "{value} is a scalar");
        let value = self.uses.canonical(value);
        if let (None, ValueDef::Result { inst, .. }) = (self.regs[value], self.kernel.values[value]) {
            let kernel = self.kernel;
            match &kernel.insts[inst] {
                InstData::Const { ty: Type::Mask, bits } => {
                    let reg = self.mask_reg();
                    self.set_mask(reg, *bits as u16);
                    return Ok(reg);
                }
                InstData::Const { bits, .. } => {
                    let reg = self.lanes_reg();
                    self.set_lanes(reg, *bits as u32);
                    return Ok(reg);
                }
                InstData::Lanes { values } => return Ok(self.constant_lanes(**values)),
                InstData::Undef { ty } => return Ok(self.undefined(*ty)),
                _ => {}
            }
        }
        self.written(value)
    }

    /// A new register for the first result, a vector or mask.
    fn define_lanes(&mut self, inst: Inst) -> VReg {
        self.define_lanes_nth(inst, 0)
    }

    fn define_lanes_nth(&mut self, inst: Inst, index: usize) -> VReg {
        let [reg] = Avx512::define(self, self.kernel.results[inst][index]);
        reg
    }

    fn both(&mut self, args: &[Value]) -> Result<[VReg; 2]> {
        Ok([self.lanes(args[0])?, self.lanes(args[1])?])
    }
}
