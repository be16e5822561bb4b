//! Translation of instructions: the arms that hand each scalar instruction to the file that translates it.

use super::access::plan::GroupRole;
use super::access::{self, emit_groups, subword};
use super::state::Widen;
use crate::ir::{self, InstData as ScalarInst, Width};

impl Widen<'_> {
    /// Translates the instructions of a scalar block.
    pub(super) fn translate(&mut self, block: ir::Block) {
        let (kernel, accesses) = (self.kernel, &self.plans.accesses);
        for &inst in &kernel.blocks[block].insts {
            let (data, result) = (&kernel.insts[inst], kernel.results[inst]);
            self.builder.set_origin(kernel.origins[inst]);
            match accesses.role(inst) {
                None => {}
                Some(GroupRole::Member) => continue,
                Some(GroupRole::Leader(group)) => {
                    emit_groups::access_group(self, group);
                    continue;
                }
            }
            let is_done = result.is_some_and(|result| self.cache.samples.early.contains(&result));
            if is_done || self.computes(result, data) {
                continue;
            }
            match (data, result) {
                (ScalarInst::Element { base, index, stride }, Some(result)) => {
                    if self.is_materialized(result) {
                        self.element(result, *base, *index, *stride);
                    }
                }
                (ScalarInst::Buffer { binding, index }, Some(result)) => self.buffer(result, *binding, *index),
                (ScalarInst::BufferSize { buffer }, Some(result)) => self.buffer_size(result, *buffer),
                // Numbers in memory are one higher: 0 is a null pointer.
                (ScalarInst::BufferNumber { buffer }, Some(result)) => self.renumber(result, *buffer, 1),
                (ScalarInst::BufferOf { number }, Some(result)) => self.renumber(result, *number, u32::MAX),
                (ScalarInst::BufferAt { low, high }, Some(result)) => self.buffer_at(result, *low, *high),
                (ScalarInst::BufferNear { low, high }, Some(result)) => self.buffer_near(result, *low, *high),
                (ScalarInst::BufferOffset { buffer, low, high }, Some(result)) => {
                    self.buffer_offset(result, *buffer, [*low, *high]);
                }
                (ScalarInst::Reaches { buffer, .. }, Some(result)) => {
                    self.reaches(result, *buffer, &accesses.at(inst).offset)
                }
                (ScalarInst::ImageField { image, field }, Some(result)) => self.image_field(result, *image, *field),
                (ScalarInst::Image { .. }, _) => self.image(block, inst),
                (ScalarInst::Load { ty, width: Width::Word, place, .. }, Some(result)) => {
                    access::load(self, result, *ty, place, accesses.at(inst))
                }
                (ScalarInst::Load { width, place, .. }, Some(result)) => {
                    subword::load_subword(self, result, *width, place, accesses.at(inst))
                }
                (ScalarInst::Store { width: Width::Word, place, value, .. }, _) => {
                    access::store(self, place, *value, accesses.at(inst))
                }
                (ScalarInst::Store { width, place, value, .. }, _) => {
                    subword::store_subword(self, *width, place, accesses.at(inst), *value)
                }
                (ScalarInst::Atomic { .. }, _) => self.atomic(result, data, accesses.at(inst)),
                (ScalarInst::Clock { .. }, Some(result)) => self.clock(result),
                (ScalarInst::Print { message, args }, _) => self.print(*message, args),
                (ScalarInst::HighWord { of }, Some(result)) => self.high_word(result, *of),
                (ScalarInst::Subgroup { op, args }, Some(result)) => self.subgroup_op(result, *op, args),
                (ScalarInst::Barrier { memory, semantics, .. }, _) => {
                    self.fence(*memory, *semantics);
                    self.barrier(data);
                }
                (ScalarInst::Fence { scope, semantics }, _) => self.fence(*scope, *semantics),
                (ScalarInst::Check { .. } | ScalarInst::Sync { .. }, _)
                    if self.plans.ordered_accesses.contains(inst) => {}
                (ScalarInst::Check { site, place, width }, _) => self.check(*site, place, *width, accesses.find(inst)),
                (ScalarInst::CheckImage { site, op, image, sampler, args }, _) => {
                    self.check_image(*site, op, (*image, *sampler), args);
                }
                (ScalarInst::Sync { site, place, bytes, wrote }, _) => {
                    self.sync(*site, place.as_ref(), (*bytes, accesses.find(inst)), *wrote);
                }
                (
                    ScalarInst::Jump { .. }
                    | ScalarInst::Branch { .. }
                    | ScalarInst::Switch { .. }
                    | ScalarInst::Return
                    | ScalarInst::Unreachable,
                    _,
                ) => self.terminator(data),
                _ => unreachable!("an instruction lacks its result, which the verifier requires: {data:?}"),
            }
        }
    }

    /// Whether the result of an `element` is used as a number, not only as an offset that is decomposed.
    fn is_materialized(&self, value: ir::Value) -> bool {
        self.plans.materialized.contains(value)
    }
}
