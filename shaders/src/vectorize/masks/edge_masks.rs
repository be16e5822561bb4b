//! Lanes that wait at a block: what they take along, and what they must not find of those before them.

use crate::analysis::{Shape, Uniformity};
use crate::ir::{self, BlockCall};
use crate::simd::InstData;

use smallvec::SmallVec;

use crate::simd::ssa::{Variable, Writers};
use crate::vectorize::{Type, Value, Widen};

impl Widen<'_> {
    /// Finds from where on lanes may be parked at a block: a search for those that were ends there, not at the kernel's
    /// beginning. Out of a loop lanes come trip after trip, so there it does not.
    pub(super) fn find_fresh(&mut self) {
        let Uniformity { flow, loops, dominators, .. } = self.uniformity;
        for &block in &self.kernel.layout {
            if let Some(idom) = dominators.idom(block)
                && flow.is_parked(block)
                && loops.headed_by(block).is_none()
                && loops.of(block) == loops.of(idom)
            {
                self.control.fresh.entry(idom).or_default().push(block);
            }
        }
    }

    /// Before a block's lanes go on: at the blocks that it dominates at once, nobody waits.
    pub(super) fn begin_fresh(&mut self) {
        let kernel = self.kernel;
        for block in self.control.fresh.remove(&self.block).unwrap_or_default() {
            if self.uniformity.flow.whole(block).is_none() {
                let none = self.builder.constant(Type::Mask, 0);
                let parked = self.parked_variable(block);
                self.write(parked, none);
            }
            for &param in &kernel.blocks[block].params {
                let passed = self.passed_variable(param);
                self.forget_variable(passed);
            }
        }
    }

    /// Finds before which loop what lanes took out of it in an earlier run has to be forgotten: the outermost one that they
    /// leave one by one and take it out of.
    pub(super) fn find_thaws(&mut self) {
        let positions = &self.control.positions;
        for (&value, &variable) in &self.frozen {
            let Some(&number) = self.left.get(&value) else { continue };
            self.control.thaw.entry(number).or_default().push(variable);
            // Written where the value is, and forgotten on the ways into the loop.
            if let Some(home) = self.uniformity.home(value) {
                let header = self.uniformity.loops.all[number].header;
                let from = self.control.predecessors[header].iter().copied().chain([home]);
                let mut at: SmallVec<[u32; 4]> = from.map(|block| positions[block]).collect();
                at.sort_unstable();
                self.builder.variables.set_writers(variable, Writers::Of { owner: u32::MAX, before: true, at });
            }
        }
    }

    /// Before a loop is entered, what lanes took out of an earlier run of it is forgotten.
    pub(super) fn thaw(&mut self, target: ir::Block) {
        let loops = &self.uniformity.loops;
        if loops.headed_by(target).is_none() {
            return;
        }
        let variables = loops.of(target).and_then(|number| self.control.thaw.get(&number)).cloned();
        for variable in variables.unwrap_or_default() {
            self.forget_variable(variable);
        }
    }

    pub(super) fn forget_variable(&mut self, variable: Variable) {
        let ty = self.builder.variables.ty(variable);
        let undef = self.builder.emit_one(InstData::Undef { ty });
        self.write(variable, undef);
    }

    /// Passes arguments that replace those before.
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

    /// A value in the form of a parameter.
    pub(super) fn argument(&mut self, value: ir::Value, param: ir::Value) -> Value {
        match self.uniformity.shape(param) {
            Shape::Varying => self.vector(value),
            _ => self.get(value),
        }
    }

    /// Some lanes wait at a block.
    pub(super) fn park(&mut self, call: &BlockCall, lanes: Value) {
        if self.builder.kernel.constant(lanes) == Some(0) {
            return;
        }
        let kernel = self.kernel;
        let back = self.control.positions[call.block] <= self.control.positions[self.block];
        // The first branch finds nobody there. Only its first edge, though: a switch may have several to one block.
        let first = !back && self.control.first.get(&call.block) == Some(&self.block);
        if first {
            self.control.first.remove(&call.block);
        }
        // A header's lanes come from its latch alone.
        let alone = first || back || self.uniformity.loops.headed_by(call.block).is_some();
        if !back {
            self.thaw(call.block);
        }
        if self.uniformity.flow.whole(call.block).is_none() {
            let parked = self.parked_variable(call.block);
            let all = if alone {
                lanes
            } else {
                let before = self.read(parked);
                self.builder.or(before, lanes)
            };
            self.write(parked, all);
        }
        for (&arg, &param) in call.args.iter().zip(&kernel.blocks[call.block].params) {
            // What these lanes never read may be whatever lanes before them passed.
            if !alone && self.fillers.contains(arg) {
                continue;
            }
            let value = self.argument(arg, param);
            let passed = self.passed_variable(param);
            let value = if alone {
                // Lanes of other edges come later.
                if first { self.builder.held_by(lanes, value) } else { value }
            } else {
                let before = self.read(passed);
                // What lanes share is replaced for all of them, if one takes this edge.
                let shared = self.uniformity.shape(param) != Shape::Varying;
                let condition = if shared { self.builder.any(lanes) } else { lanes };
                self.builder.select(condition, value, before)
            };
            self.write(passed, value);
        }
    }
}
