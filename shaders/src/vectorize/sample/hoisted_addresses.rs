//! Hoists texel addresses of the next samples above the branches of the current one.

use smallvec::SmallVec;

use crate::image::{LodOperand, direct};
use crate::ir::{self, InstData as ScalarInst, ValueDef};
use crate::vectorize::image::ShapedOperands;
use crate::vectorize::state::Widen;

/// Samples whose addresses are hoisted at a time.
const AHEAD: usize = 2;

/// Operations that are hoisted for a sample, at most.
const MAX_HOISTED: usize = 32;

impl Widen<'_> {
    /// Computes the texel addresses of the samples that follow an instruction in the current block, if their
    /// coordinates depend on arithmetic only.
    pub(super) fn look_ahead(&mut self, inst: ir::Inst) {
        let kernel = self.kernel;
        let mut seen: SmallVec<[&[ir::Value]; 4]> = SmallVec::new();
        let insts = &kernel.blocks[self.block].insts;
        let from = insts.iter().position(|&other| other == inst).unwrap_or(insts.len());
        for &other in &insts[from..] {
            let (op, image, sampler, args) = match &kernel.insts[other] {
                ScalarInst::Barrier { .. } => return,
                ScalarInst::Image { op, image, sampler: Some(sampler), args, .. } if direct::is_direct(op) => {
                    (op, *image, *sampler, args)
                }
                _ => continue,
            };
            // The components of one sample are adjacent instructions.
            if seen.last().is_some_and(|last| *last == &args[..]) {
                continue;
            }
            seen.push(args);
            if other == inst {
                continue;
            }
            let mut left = MAX_HOISTED;
            let all = [image, sampler].into_iter().chain(args.iter().copied());
            if all.clone().all(|value| self.compute_early(value, &mut left)) {
                let operands: ShapedOperands = all.map(|value| (self.get(value), self.shape(value))).collect();
                let is_base_level =
                    op.lod == LodOperand::None || args.last().is_some_and(|&lod| self.kernel.constant(lod) == Some(0));
                if let Some(sample) = self.inline_sample(other, &operands, is_base_level) {
                    self.head(&sample);
                }
            }
            if seen.len() > AHEAD {
                return;
            }
        }
    }

    /// Computes a value of this block early. Returns whether it is available.
    fn compute_early(&mut self, value: ir::Value, left: &mut usize) -> bool {
        if self.uniformity.defining_block(value) != Some(self.block) || self.is_defined(value) {
            return true;
        }
        let ValueDef::Result { inst, .. } = self.kernel.values[value] else { return true };
        let data = &self.kernel.insts[inst];
        let is_arithmetic = matches!(
            data,
            ScalarInst::Const { .. } | ScalarInst::Pure { .. } | ScalarInst::Select { .. } | ScalarInst::BuiltIn { .. }
        );
        let Some(less) = left.checked_sub(1).filter(|_| is_arithmetic) else { return false };
        *left = less;
        let mut uses: SmallVec<[ir::Value; 4]> = SmallVec::new();
        data.for_each_use(|value| uses.push(value));
        if !uses.into_iter().all(|value| self.compute_early(value, left)) {
            return false;
        }
        self.cache.samples.early.insert(value);
        self.computes(Some(value), data)
    }
}
