//! Edge masks: an edge of a divergent branch adds its lanes to the target's block-in mask and selects their arguments.
//! Block-in masks are emptied, and values live out of divergent loops are reset, before lanes of an earlier iteration
//! could be seen in them.

use crate::analysis::{Shape, Uniformity};
use crate::ir::{self, BlockCall};
use crate::simd::{InstData, Type, Value};

use smallvec::SmallVec;

use crate::simd::ssa::{Variable, Writers};
use crate::vectorize::state::Widen;

impl Widen<'_> {
    /// Finds where block-in masks are known to be empty: at the terminator of the immediate dominator. The search for
    /// the mask's definition ends there, not at the kernel's entry. Exit blocks of loops are left out, since their
    /// masks collect lanes over several iterations.
    pub(super) fn find_empty_masks(&mut self) {
        let Uniformity { linearization, loops, dominators, .. } = self.uniformity;
        for &block in &self.kernel.layout {
            if let Some(idom) = dominators.idom(block)
                && linearization.has_block_in_mask(block)
                && loops.headed_by(block).is_none()
                && loops.of(block) == loops.of(idom)
            {
                self.control.empty_after.entry(idom).or_default().push(block);
            }
        }
    }

    /// Before the terminator of a block: empties the block-in masks of the blocks that it immediately dominates.
    pub(super) fn empty_masks(&mut self) {
        let kernel = self.kernel;
        for block in self.control.empty_after.remove(&self.block).unwrap_or_default() {
            if self.uniformity.linearization.reconverges(block).is_none() {
                let none = self.builder.constant(Type::Mask, 0);
                let block_in = self.block_in_variable(block);
                self.write(block_in, none);
            }
            for &param in &kernel.blocks[block].params {
                let passed = self.passed_variable(param);
                self.reset_variable(passed);
            }
        }
    }

    /// Finds the loop at the entry of which each value with temporal divergence is reset: the outermost divergent loop
    /// that the value is live out of.
    pub(super) fn find_resets(&mut self) {
        let positions = &self.control.positions;
        for &(value, exited) in &self.plans.live_outs {
            let Some(number) = exited else { continue };
            let variable = self.live_outs[&value];
            self.control.live_outs.entry(number).or_default().push(variable);
            // Written in the defining block, and reset on the loop's entry edges.
            if let Some(defining) = self.uniformity.defining_block(value) {
                let header = self.uniformity.loops.all[number].header;
                let from = self.control.predecessors[header].iter().copied().chain([defining]);
                let mut at: SmallVec<[u32; 4]> = from.map(|block| positions[block]).collect();
                at.sort_unstable();
                self.builder.variables.set_writers(variable, Writers::Of { owner: u32::MAX, before: true, at });
            }
        }
    }

    /// Before an entry edge of a loop: resets the loop's live-out values, since those of an earlier execution of the
    /// loop are dead.
    pub(super) fn reset_live_outs(&mut self, target: ir::Block) {
        let loops = &self.uniformity.loops;
        if loops.headed_by(target).is_none() {
            return;
        }
        let variables = loops.of(target).and_then(|number| self.control.live_outs.get(&number)).cloned();
        for variable in variables.unwrap_or_default() {
            self.reset_variable(variable);
        }
    }

    fn reset_variable(&mut self, variable: Variable) {
        let ty = self.builder.variables.ty(variable);
        let undef = self.builder.emit_one(InstData::Undef { ty });
        self.write(variable, undef);
    }

    /// Passes the arguments of an edge that all active lanes take: they replace earlier ones.
    pub(super) fn pass_all(&mut self, call: &BlockCall) {
        let kernel = self.kernel;
        let values: Vec<Value> = call
            .args
            .iter()
            .zip(&kernel.blocks[call.block].params)
            .map(|(&arg, &param)| self.argument(arg, param))
            .collect();
        for (&param, value) in kernel.blocks[call.block].params.iter().zip(values) {
            let passed = self.passed_variable(param);
            self.write(passed, value);
        }
    }

    /// The value in the form of the parameter: a vector if the parameter is varying.
    fn argument(&mut self, value: ir::Value, param: ir::Value) -> Value {
        match self.uniformity.shape(param) {
            Shape::Varying => self.vector(value),
            _ => self.get(value),
        }
    }

    /// Adds the edge mask `lanes` to the target's block-in mask, and selects the edge's arguments in these lanes.
    pub(super) fn add_edge(&mut self, call: &BlockCall, lanes: Value) {
        if self.builder.kernel.constant(lanes) == Some(0) {
            return;
        }
        let kernel = self.kernel;
        let back = self.control.positions[call.block] <= self.control.positions[self.block];
        // The first branch in the layout finds an empty mask, at its first edge: a switch may have several to one
        // block.
        let first = !back && self.control.first_branch.get(&call.block) == Some(&self.block);
        if first {
            self.control.first_branch.remove(&call.block);
        }
        // A header has one entry edge and one back edge: each of them replaces the mask.
        let alone = first || back || self.uniformity.loops.headed_by(call.block).is_some();
        if !back {
            self.reset_live_outs(call.block);
        }
        if self.uniformity.linearization.reconverges(call.block).is_none() {
            let block_in = self.block_in_variable(call.block);
            let all = if alone {
                lanes
            } else {
                let before = self.read(block_in);
                self.builder.or(before, lanes)
            };
            self.write(block_in, all);
        }
        for (&arg, &param) in call.args.iter().zip(&kernel.blocks[call.block].params) {
            // These lanes never read the parameter, so the arguments of earlier edges can stay.
            if !alone && self.plans.fillers.contains(arg) {
                continue;
            }
            let value = self.argument(arg, param);
            let passed = self.passed_variable(param);
            let value = if alone {
                // The other lanes are selected by later edges.
                if first { self.builder.only_in(lanes, value) } else { value }
            } else {
                let before = self.read(passed);
                // A uniform or lane-affine parameter is one scalar for all lanes: replaced if any lane takes the edge.
                let shared = self.uniformity.shape(param) != Shape::Varying;
                let condition = if shared { self.builder.any(lanes) } else { lanes };
                self.builder.select(condition, value, before)
            };
            self.write(passed, value);
        }
    }
}
