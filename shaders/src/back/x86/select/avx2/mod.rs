//! AVX2: a vector is two registers of 8 lanes, a mask a vector whose lanes are all ones or all zeros.
//!
//! Where both halves hold the same, as those of a splat do, they may be one register; operations on such vectors are
//! written once.

mod atomic;
mod atomic_scan;
mod compare;
mod convert;
mod double;
mod elements;
mod float;
mod frames;
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

use std::ops::{Deref, DerefMut};

use iced_x86::ConditionCode;
use regalloc2::{RegClass, VReg};

use self::operand::Pair;
use super::super::CompileError;
use super::Select;
use crate::ir::Width;
use crate::simd::{Inst, InstData, Type, Value, ValueDef};

/// Selection with vectors in halves.
pub(super) struct Halves<'s, 'k>(pub &'s mut Select<'k>);

impl<'k> Deref for Halves<'_, 'k> {
    type Target = Select<'k>;

    fn deref(&self) -> &Select<'k> {
        self.0
    }
}

impl DerefMut for Halves<'_, '_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0
    }
}

impl Halves<'_, '_> {
    /// An instruction on vectors.
    pub(super) fn vector_inst(&mut self, inst: Inst, data: &InstData) -> Result<(), CompileError> {
        match data {
            InstData::Pure { op, args } => {
                let operands_are_masks = self.kernel.ty(args[0]) == Type::Mask;
                let result = if operands_are_masks { self.mask_op(*op, args)? } else { self.lane_op(*op, args)? };
                self.bind(inst, result);
            }
            InstData::Select { condition, then, otherwise } => {
                let result = self.vector_select(*condition, *then, *otherwise)?;
                self.bind(inst, result);
            }
            InstData::Splat { value } => {
                let result = self.splat(*value)?;
                self.bind(inst, result);
            }
            InstData::Extract { vector, lane } => self.extract(inst, *vector, *lane)?,
            InstData::Pick { first, second, words } => {
                let result = self.pick(*first, *second, words)?;
                self.bind(inst, result);
            }
            InstData::Permute { vector, lanes } => {
                let result = self.permute(*vector, *lanes)?;
                self.bind(inst, result);
            }
            InstData::MaskBits { mask } => {
                let bits = self.mask_bits(*mask)?;
                let result = self.kernel.results[inst][0];
                self.regs[result] = Some(bits);
            }
            InstData::FirstLane { mask } => self.first_lane(inst, *mask)?,
            InstData::Any { .. } => self.truth(inst)?,
            InstData::FrameLoad { ty, frame, at } => self.vector_frame_load(inst, *ty, *frame, *at)?,
            InstData::FrameStore { frame, at, value } => self.vector_frame_store(*frame, *at, *value)?,
            InstData::Zero { base, bytes } => self.zero(*base, *bytes)?,
            InstData::Atomic { .. } => self.atomic(inst, data)?,
            _ => self.access(inst, data)?,
        }
        Ok(())
    }

    fn access(&mut self, inst: Inst, data: &InstData) -> Result<(), CompileError> {
        match data {
            InstData::Load { address, .. } => self.load_broadcast(inst, address),
            InstData::Store { address, value, mask } => self.store_uniform(address, *value, *mask),
            InstData::LoadRow { row } if row.width != Width::Word => {
                let results = [self.lanes_reg(), self.lanes_reg()];
                let floats = self.floats_of(inst, row);
                self.load_part_row(row, &results, floats.is_some())?;
                self.bind(floats.unwrap_or(inst), results);
                Ok(())
            }
            InstData::StoreRow { row, value, mask } if row.width != Width::Word => {
                let bits = if self.is_all(*mask) { None } else { Some(self.mask_bits(*mask)?) };
                let floats = self.halves_of(row, *value);
                let value = self.pair(floats.unwrap_or(*value))?;
                self.store_part_row(row, &value, bits, floats.is_some())
            }
            InstData::LoadRow { row } => self.load_row(inst, row),
            InstData::StoreRow { row, value, mask } => self.store_row(row, *value, *mask),
            InstData::Gather { lanes, mask } => self.gather(inst, lanes, *mask),
            InstData::Scatter { width: Width::Word, lanes, value, mask } => self.scatter(lanes, *value, *mask),
            InstData::Scatter { width, lanes, value, mask } => {
                let bits = self.mask_bits(*mask)?;
                let halves = [self.pair(lanes.index)?, self.pair(*value)?];
                self.scatter_parts(*width, lanes, halves, bits)
            }
            InstData::GatherElements { base, index, masks } => self.gather_elements(inst, *base, *index, masks),
            InstData::LoadElements { elements } => self.load_elements(inst, elements),
            InstData::StoreElements { elements, values, mask } => self.store_elements(elements, values, *mask),
            _ => unreachable!("not on vectors: {data:?}"),
        }
    }

    fn lanes_reg(&mut self) -> VReg {
        self.code.vreg(RegClass::Float)
    }

    /// Makes registers the first result.
    fn bind(&mut self, inst: Inst, registers: Pair) {
        self.bind_nth(inst, 0, registers);
    }

    fn bind_nth(&mut self, inst: Inst, number: usize, [low, high]: Pair) {
        let value = self.kernel.results[inst][number];
        self.regs[value] = Some(low);
        self.highs[value] = Some(high);
    }

    /// New registers for the parameter of a block.
    pub(super) fn define_param(&mut self, param: Value) -> Pair {
        let pair = [self.lanes_reg(), self.lanes_reg()];
        self.regs[param] = Some(pair[0]);
        self.highs[param] = Some(pair[1]);
        pair
    }

    /// The registers of a vector or mask, which is written now if it was put off.
    pub(super) fn pair(&mut self, value: Value) -> Result<Pair, CompileError> {
        let value = self.facts.canonical(value);
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
        let low = self.reg(value)?;
        Ok([low, self.highs[value].unwrap_or(low)])
    }

    /// Sets the flags by whether a lane is on.
    pub(super) fn any(&mut self, mask: Value) -> Result<ConditionCode, CompileError> {
        self.any_lane(mask)
    }
}
