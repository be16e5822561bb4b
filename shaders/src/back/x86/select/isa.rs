//! Vector instruction sets as a trait: all that instruction selection needs of one.
//!
//! The walk and everything that selects scalars are generic (`impl<V: VectorIsa> Select<'_, V>`) and reach vectors only
//! through this trait. Vector code is written in `impl Select<'_, Avx512>` and `impl Select<'_, Avx2>`: an instruction
//! set never sees methods of the other one, and an operation that one of them lacks does not compile.
//!
//! Selection itself is generic, rather than a shared struct inside two wrappers, since scalars and vectors call each
//! other: the register of a scalar may be that of a deferred `any`, whose operand is a deferred comparison of vectors.

use iced_x86::{Code, ConditionCode};
use regalloc2::{RegClass, VReg};

use super::super::atomic::AtomicCode;
use super::super::pool::{Pool, PooledConstant};
use super::super::vcode::{AddressRegisters, Expand, View};
use super::double::{Double, DoubleRegisters};
use super::gather_elements::LaneWordSlots;
use super::row::RowPlace;
use super::{Isa, Result, Select};
use crate::ir::{AtomicOp, Op, Width};
use crate::simd::{Address, Elements, Inst, InstData, Kernel, LaneAddress, Row, Type, Value};

/// A vector instruction set. Functions that take an instruction bind its results.
pub(super) trait VectorIsa: Sized {
    const ISA: Isa;

    /// The registers of a vector or of a mask, from the lowest lanes on.
    type Registers: AsRef<[VReg]> + Copy;

    /// The state of selection that only this instruction set has.
    fn new(kernel: &Kernel) -> Self;

    /// Whether rows are stored non-temporally.
    fn has_nontemporal_stores(&self) -> bool;

    /// The registers of a vector or mask; emits it first if it is deferred.
    fn registers(select: &mut Select<'_, Self>, value: Value) -> Result<Self::Registers>;

    /// New registers for a vector or mask.
    fn define(select: &mut Select<'_, Self>, value: Value) -> Self::Registers;

    /// Sets the flags by whether any lane is active; returns the condition under which one is.
    fn any(select: &mut Select<'_, Self>, mask: Value) -> Result<ConditionCode>;

    /// The bits of a mask in a general register.
    fn mask_bits(select: &mut Select<'_, Self>, mask: Value) -> Result<VReg>;

    /// The words of vectors interleaved, as doubles.
    fn interleave_words(select: &mut Select<'_, Self>, low: Value, high: Value) -> Result<DoubleRegisters>;

    /// Computes the results of a double-precision operation, with canonical NaNs.
    fn doubles(select: &mut Select<'_, Self>, double: Double, args: &[Value]) -> Result<DoubleRegisters>;

    /// An operation on masks.
    fn mask_op(select: &mut Select<'_, Self>, inst: Inst, op: Op, args: &[Value]) -> Result;

    /// An operation on vectors.
    fn lane_op(select: &mut Select<'_, Self>, inst: Inst, op: Op, args: &[Value]) -> Result;

    /// A select between vectors or masks, by a mask or by a truth value.
    fn select(select: &mut Select<'_, Self>, inst: Inst, args: [Value; 3]) -> Result;

    /// The exclusive or of each lane's word and the constant.
    fn exclusive_or(select: &mut Select<'_, Self>, words: Self::Registers, constant: u32) -> Self::Registers;

    /// A scalar in each lane; of a truth value, the mask of all lanes or of none.
    fn splat(select: &mut Select<'_, Self>, inst: Inst, value: Value) -> Result;

    /// The word of one lane, modulo 16, as a scalar.
    fn extract(select: &mut Select<'_, Self>, inst: Inst, vector: Value, lane: Value) -> Result;

    /// A constant shuffle of the words of two vectors.
    fn pick(select: &mut Select<'_, Self>, inst: Inst, vectors: [Value; 2], words: &[u8; 16]) -> Result;

    /// A shuffle by a vector of lane numbers.
    fn permute(select: &mut Select<'_, Self>, inst: Inst, vector: Value, lanes: Value) -> Result;

    /// The number of the lowest active lane; 16 if none is active.
    fn first_lane(select: &mut Select<'_, Self>, inst: Inst, mask: Value) -> Result;

    /// Loads one word for all lanes.
    fn load_broadcast(select: &mut Select<'_, Self>, inst: Inst, address: &Address) -> Result;

    /// Stores the word of the last active lane.
    fn store_uniform(
        select: &mut Select<'_, Self>,
        width: Width,
        address: &Address,
        value: Value,
        mask: Value,
    ) -> Result;

    /// General registers that a row's accesses need in addition.
    const ROW_TEMPS: usize;

    /// The constants from which the masks of rows are computed.
    fn row_constants(pool: &mut Pool) -> PooledConstant;

    /// Loads a row whose words may be out of bounds: those become 0. The words `fetch` bytes further are prefetched.
    fn checked_row_load(place: RowPlace, fetch: Option<i32>) -> Box<dyn Expand>;

    /// Stores those words of a row that are in bounds.
    fn checked_row_store(&self, row: &Row, place: RowPlace, masked: bool) -> Box<dyn Expand>;

    /// Stores a row that is in bounds.
    fn store_row_in_bounds(
        select: &mut Select<'_, Self>,
        row: &Row,
        place: &AddressRegisters,
        value: Self::Registers,
        mask: Option<Self::Registers>,
    );

    /// Loads a word for each active lane, 0 for the others.
    fn gather(select: &mut Select<'_, Self>, inst: Inst, lanes: &LaneAddress, mask: Value) -> Result;

    /// Stores words, in the order of lanes.
    fn scatter(select: &mut Select<'_, Self>, lanes: &LaneAddress, value: Value, mask: Value) -> Result;

    /// Classes of the pairs of temporaries of [`VectorIsa::gather_lane_words`]: vectors and general registers first.
    const LANE_WORDS_TEMPS: &[RegClass];

    /// The operand of an instruction that adds 1 to each lane.
    fn constant_one(pool: &mut Pool) -> PooledConstant;

    /// Loads contiguous words for each lane of a register.
    fn gather_lane_words(words: LaneWordSlots) -> Box<dyn Expand>;

    /// Loads an interleave group.
    fn load_elements(select: &mut Select<'_, Self>, inst: Inst, elements: &Elements) -> Result;

    /// Stores an interleave group.
    fn store_elements(select: &mut Select<'_, Self>, elements: &Elements, values: &[Value], mask: Value) -> Result;

    /// Loads a mask that [`VectorIsa::store_mask`] stored.
    fn load_mask(select: &mut Select<'_, Self>, inst: Inst, place: &AddressRegisters);

    /// Stores the bits of a mask.
    fn store_mask(select: &mut Select<'_, Self>, place: &AddressRegisters, mask: Value) -> Result;

    /// A vector register of zeros and a new general register.
    fn zeros_and_counter(select: &mut Select<'_, Self>) -> [VReg; 2];

    /// Whether atomics that lanes do one by one take the mask's bits before the address. They are several instructions
    /// where masks are vectors, whose latency is hidden so.
    const EARLY_MASK_BITS: bool;

    /// The opcode that combines the values of an operation, if it can be done once for all lanes.
    fn reduction(op: AtomicOp) -> Option<Code>;

    /// The values of the active lanes combined, in a general register.
    fn reduce(select: &mut Select<'_, Self>, op: AtomicOp, value: Value, mask: Value) -> Result<VReg>;

    /// `step` times the number of active lanes.
    fn step_for_each(select: &mut Select<'_, Self>, bits: VReg, step: u32) -> VReg;

    /// One atomic operation with the combined value `word` of all lanes, if any is active. The old value is not used.
    fn reduced_atomic(
        select: &mut Select<'_, Self>,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        index: Value,
        bits: VReg,
        word: VReg,
    ) -> Result;

    /// An atomic at one address for all lanes whose old values are used, as one operation and an exclusive scan;
    /// whether the operation has this form.
    fn scanned_atomic(
        select: &mut Select<'_, Self>,
        inst: Inst,
        atomic: AtomicCode,
        lanes: &LaneAddress,
        index: Value,
        value: Option<Value>,
        mask: Value,
    ) -> Result<bool>;
}

/// Opcodes on whole vector registers, as far as code that serves all instruction sets needs them.
pub(super) struct VectorCodes {
    pub load: Code,
    pub store: Code,
    pub xor: Code,
}

impl Isa {
    /// The opcodes on whole vector registers.
    pub(super) fn vectors(self) -> &'static VectorCodes {
        match self {
            Self::Avx512 => &VectorCodes {
                load: Code::EVEX_Vmovdqu32_zmm_k1z_zmmm512,
                store: Code::EVEX_Vmovdqu32_zmmm512_k1z_zmm,
                xor: Code::EVEX_Vpxord_zmm_k1z_zmm_zmmm512b32,
            },
            Self::Avx2 => &VectorCodes {
                load: Code::VEX_Vmovups_ymm_ymmm256,
                store: Code::VEX_Vmovups_ymmm256_ymm,
                xor: Code::VEX_Vpxor_ymm_ymm_ymmm256,
            },
        }
    }

    /// The view of a whole vector register.
    pub(super) fn view(self) -> View {
        match self {
            Self::Avx512 => View::Zmm,
            Self::Avx2 => View::Ymm,
        }
    }

    /// Size of a vector register in bytes.
    pub(super) fn vector_bytes(self) -> i32 {
        8 * self.vector_words() as i32
    }
}

impl<V: VectorIsa> Select<'_, V> {
    /// An instruction on vectors or masks.
    pub(super) fn vector_inst(&mut self, inst: Inst, data: &InstData) -> Result {
        match data {
            InstData::Pure { op, args } if self.kernel.ty(args[0]) == Type::Mask => V::mask_op(self, inst, *op, args),
            InstData::Pure { op, args } => V::lane_op(self, inst, *op, args),
            InstData::Select { condition, then, otherwise } => V::select(self, inst, [*condition, *then, *otherwise]),
            InstData::Splat { value } => V::splat(self, inst, *value),
            InstData::Extract { vector, lane } => V::extract(self, inst, *vector, *lane),
            InstData::Pick { first, second, words } => V::pick(self, inst, [*first, *second], words),
            InstData::Permute { vector, lanes } => V::permute(self, inst, *vector, *lanes),
            InstData::MaskBits { mask } => {
                let bits = V::mask_bits(self, *mask)?;
                let result = self.kernel.results[inst][0];
                self.regs[result] = Some(bits);
                Ok(())
            }
            InstData::FirstLane { mask } => V::first_lane(self, inst, *mask),
            InstData::Any { .. } => self.truth(inst),
            InstData::FrameLoad { ty, frame, at } => self.vector_frame_load(inst, *ty, *frame, *at),
            InstData::FrameStore { frame, at, value } => self.vector_frame_store(*frame, *at, *value),
            InstData::Zero { base, bytes } => self.zero(*base, *bytes),
            InstData::Atomic { .. } => self.atomic(inst, data),
            _ => self.vector_access(inst, data),
        }
    }

    fn vector_access(&mut self, inst: Inst, data: &InstData) -> Result {
        match data {
            InstData::Load { address, .. } => V::load_broadcast(self, inst, address),
            InstData::Store { width, address, value, mask } => V::store_uniform(self, *width, address, *value, *mask),
            InstData::LoadRow { row } if row.width == Width::Word => self.load_row(inst, row),
            InstData::LoadRow { row } => self.load_subword_row(inst, row),
            InstData::StoreRow { row, value, mask } if row.width == Width::Word => self.store_row(row, *value, *mask),
            InstData::StoreRow { row, value, mask } => self.store_subword_row(row, *value, *mask),
            InstData::Gather { lanes, mask } => V::gather(self, inst, lanes, *mask),
            InstData::Scatter { width: Width::Word, lanes, value, mask } => V::scatter(self, lanes, *value, *mask),
            InstData::Scatter { width, lanes, value, mask } => self.scatter_subwords(*width, lanes, *value, *mask),
            InstData::GatherElements { base, index, masks } => self.gather_elements(inst, *base, *index, masks),
            InstData::LoadElements { elements } => V::load_elements(self, inst, elements),
            InstData::StoreElements { elements, values, mask } => V::store_elements(self, elements, values, *mask),
            _ => unreachable!("not on vectors: {data:?}"),
        }
    }
}
