//! AVX-512: a vector is one register, a mask a mask register of 16 bits.

mod atomic;
mod atomic_scan;
mod compare;
mod convert;
mod double;
mod elements;
mod float;
mod frames;
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

use super::super::CompileError;
use super::Select;
use crate::ir::Width;
use crate::simd::{Inst, InstData, Type, Value};

impl Select<'_> {
    /// An instruction on vectors.
    pub(super) fn vector_inst(&mut self, inst: Inst, data: &InstData) -> Result<(), CompileError> {
        match data {
            InstData::Pure { op, args } => {
                let operands_are_masks = self.kernel.ty(args[0]) == Type::Mask;
                if operands_are_masks {
                    self.mask_op(inst, *op, args)?;
                } else {
                    self.lane_op(inst, *op, args)?;
                }
            }
            InstData::Select { condition, then, otherwise } => {
                self.vector_select(inst, *condition, *then, *otherwise)?
            }
            InstData::Splat { value } => self.splat(inst, *value)?,
            InstData::Extract { vector, lane } => self.extract(inst, *vector, *lane)?,
            InstData::Pick { first, second, words } => self.pick(inst, *first, *second, words)?,
            InstData::Permute { vector, lanes } => self.permute(inst, *vector, *lanes)?,
            InstData::MaskBits { mask } => {
                let bits = self.mask_bits(*mask)?;
                let result = self.kernel.results[inst][0];
                self.regs[result] = Some(bits);
            }
            InstData::FirstLane { mask } => self.first_lane(inst, *mask)?,
            InstData::Any { .. } => self.truth(inst)?,
            InstData::Load { address, .. } => self.load_broadcast(inst, address)?,
            InstData::Store { address, value, mask } => self.store_uniform(address, *value, *mask)?,
            InstData::LoadRow { row } if row.width != Width::Word => {
                let floats = self.floats_of(inst, row);
                let result = self.define(floats.unwrap_or(inst));
                self.load_part_row(row, &[result], floats.is_some())?;
            }
            InstData::StoreRow { row, value, mask } if row.width != Width::Word => {
                let bits = if self.is_all(*mask) { None } else { Some(self.mask_bits(*mask)?) };
                let floats = self.halves_of(row, *value);
                let value = self.reg(floats.unwrap_or(*value))?;
                self.store_part_row(row, &[value], bits, floats.is_some())?;
            }
            InstData::LoadRow { row } => self.load_row(inst, row)?,
            InstData::StoreRow { row, value, mask } => self.store_row(row, *value, *mask)?,
            InstData::Gather { lanes, mask } => self.gather(inst, lanes, *mask)?,
            InstData::Scatter { width: Width::Word, lanes, value, mask } => self.scatter(lanes, *value, *mask)?,
            InstData::Scatter { width, lanes, value, mask } => {
                let bits = self.mask_bits(*mask)?;
                let [index, value] = [self.reg(lanes.index)?, self.reg(*value)?];
                self.scatter_parts(*width, lanes, [[index; 2], [value; 2]], bits)?;
            }
            InstData::FrameLoad { ty, frame, at } => self.vector_frame_load(inst, *ty, *frame, *at)?,
            InstData::FrameStore { frame, at, value } => self.vector_frame_store(*frame, *at, *value)?,
            InstData::Zero { base, bytes } => self.zero(*base, *bytes)?,
            InstData::GatherElements { base, index, masks } => self.gather_elements(inst, *base, *index, masks)?,
            InstData::LoadElements { elements } => self.load_elements(inst, elements)?,
            InstData::StoreElements { elements, values, mask } => self.store_elements(elements, values, *mask)?,
            InstData::Atomic { .. } => self.atomic(inst, data)?,
            _ => unreachable!("not on vectors: {data:?}"),
        }
        Ok(())
    }

    fn both(&mut self, args: &[Value]) -> Result<[regalloc2::VReg; 2], CompileError> {
        Ok([self.reg(args[0])?, self.reg(args[1])?])
    }
}
