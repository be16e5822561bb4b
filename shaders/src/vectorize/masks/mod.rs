//! Control-flow linearization: uniform branches stay branches, divergent branches become edge masks.
//!
//! Every scalar block has a SIMD block, in the layout's order. A block that a divergent branch leads to begins with its
//! block-in mask; a branch skips it if the mask is empty. Parameters, block-in masks and values that several blocks use
//! are variables; `ssa` makes block parameters of them where that is needed.

pub(super) mod control;
mod edge_masks;

use smallvec::SmallVec;

use super::outcome::Unsupported;
use super::state::Widen;
use super::values::type_of;
use crate::analysis::{Next, Shape, positions, predecessors};
use crate::ir::{self, BlockCall, InstData as ScalarInst};
use crate::simd::dominance::LoopSpan;
use crate::simd::ssa::{Unwritten, Variable, Writers};
use crate::simd::{self, Block, InstData, Type, Value};

impl Widen<'_> {
    /// Translates all blocks, from the current SIMD block on; all paths end in `end`.
    ///
    /// # Errors
    ///
    /// The compile-time budget is spent: the kernel is incomplete then.
    pub(super) fn region(&mut self, end: Block) -> Result<(), Unsupported> {
        self.prepare(end);
        let kernel = self.kernel;
        let first = self.simd_block(kernel.layout[0]);
        self.builder.jump(first);
        for &block in &kernel.layout {
            self.enter(block);
            self.translate(block);
            for number in self.loops_ending(block) {
                self.close(number);
            }
            self.kernel.work.visit(1 + self.builder.kernel.blocks[self.builder.current()].insts.len());
            self.kernel.work.check().map_err(|spent| Unsupported(spent.to_string()))?;
        }
        Ok(())
    }

    fn prepare(&mut self, end: Block) {
        let kernel = self.kernel;
        self.control.end = Some(end);
        self.control.positions = positions(kernel);
        self.control.predecessors = predecessors(kernel);
        self.control.stops = self.stops();
        self.control.loop_ends = vec![None; self.uniformity.loops.all.len()];
        for &block in &kernel.layout {
            let linearization = &self.uniformity.linearization;
            let known = self.plans.convergent.contains(block) && !linearization.maybe_empty(block);
            if let Some(from) = linearization.reconverges(block).filter(|_| !known) {
                self.split_variable(from);
            }
            for call in kernel.targets(block) {
                if self.control.positions[call.block] > self.control.positions[block]
                    && !self.uniformity.linearization.leaves(block, call.block)
                {
                    self.control.first_branch.entry(call.block).or_insert(block);
                }
            }
        }
        // Lanes that exit a divergent loop may reach a block before the first other edge in the layout: then no branch
        // finds an empty mask.
        for &block in &kernel.layout {
            for call in kernel.targets(block) {
                if self.uniformity.linearization.leaves(block, call.block) {
                    self.control.first_branch.remove(&call.block);
                }
            }
        }
        self.find_resets();
        self.find_empty_masks();
    }

    fn simd_block(&mut self, block: ir::Block) -> Block {
        *self.control.blocks[block].get_or_insert_with(|| self.builder.create_block())
    }

    fn loop_end(&mut self, number: usize) -> Block {
        *self.control.loop_ends[number].get_or_insert_with(|| self.builder.create_block())
    }

    fn lanes_variable(&mut self) -> Variable {
        let variables = &mut self.builder.variables;
        *self.control.lanes.get_or_insert_with(|| variables.declare(Type::Mask, Unwritten::Empty))
    }

    fn block_in_variable(&mut self, block: ir::Block) -> Variable {
        if let Some(&variable) = self.control.block_in.get(&block) {
            return variable;
        }
        let writers = self.writers_before(block);
        let variable = self.builder.variables.declare_of(Type::Mask, Unwritten::Empty, writers);
        self.control.block_in.insert(block, variable);
        variable
    }

    fn split_variable(&mut self, from: ir::Block) -> Variable {
        let writers = Writers::only(self.control.positions[from]);
        let variables = &mut self.builder.variables;
        *self
            .control
            .at_split
            .entry(from)
            .or_insert_with(|| variables.declare_of(Type::Mask, Unwritten::Empty, writers))
    }

    /// Where a block's block-in mask and arguments are written: in its predecessors, in its immediate dominator, which
    /// empties them, and in the block itself.
    fn writers_before(&self, block: ir::Block) -> Writers {
        let positions = &self.control.positions;
        let from = self.control.predecessors[block].iter().copied().chain(self.uniformity.dominators.idom(block));
        let mut at: SmallVec<[u32; 4]> = from.chain([block]).map(|block| positions[block]).collect();
        at.sort_unstable();
        at.dedup();
        Writers::Of { owner: positions[block], before: true, at }
    }

    /// The positions of a loop's first and last block, and whether subgroups suspend in it.
    fn extent(&self, number: usize) -> LoopSpan {
        let positions = &self.control.positions;
        let found = &self.uniformity.loops.all[number];
        let first = positions[found.header];
        let last = found.blocks.last().map_or(first, |&last| positions[last]);
        let stops = &self.control.stops;
        match stops.get(stops.partition_point(|&place| place < first)) {
            Some(&place) if place <= last => LoopSpan::Stops(first, last),
            _ => LoopSpan::Span(first, last),
        }
    }

    fn passed_variable(&mut self, param: ir::Value) -> Variable {
        let ty = type_of(self.kernel.ty(param), self.uniformity.shape(param));
        if let Some(&variable) = self.control.passed.get(&param) {
            return variable;
        }
        let writers =
            self.uniformity.defining_block(param).map_or(Writers::Everywhere, |defining| self.writers_before(defining));
        let variable = self.builder.variables.declare_of(ty, Unwritten::Undef, writers);
        self.mark_common(variable, param);
        self.control.passed.insert(param, variable);
        variable
    }

    fn write(&mut self, variable: Variable, value: Value) {
        let block = self.builder.current();
        self.builder.variables.write(block, variable, value);
    }

    fn read(&mut self, variable: Variable) -> Value {
        let block = self.builder.current();
        self.builder.read(variable, block)
    }

    /// Begins a block: defines its mask and parameters.
    fn enter(&mut self, block: ir::Block) {
        let here = self.simd_block(block);
        self.builder.switch_to(here);
        self.block = block;
        self.cache.clear();
        match self.uniformity.loops.of(block) {
            Some(number) if self.uniformity.loops.all[number].header == block => {
                let extent = self.extent(number);
                self.builder.variables.dominance.open_loop(here, extent);
            }
            _ => self.builder.seal(here),
        }
        self.exec = self.lanes_of(block);
        let lanes = self.lanes_variable();
        self.write(lanes, self.exec);
        self.record_exec();
        if let Some(&at_split) = self.control.at_split.get(&block) {
            self.write(at_split, self.exec);
        }
        let kernel = self.kernel;
        for &param in &kernel.blocks[block].params {
            let passed = self.passed_variable(param);
            let value = self.read(passed);
            self.define(param, value);
        }
    }

    /// The mask of a block. Adds the branch that skips the block if the mask is empty.
    fn lanes_of(&mut self, block: ir::Block) -> Value {
        let convergent = self.plans.convergent.contains(block);
        let linearization = &self.uniformity.linearization;
        if !linearization.has_block_in_mask(block) {
            let lanes = self.lanes_variable();
            return if convergent { self.subgroup.lanes } else { self.read(lanes) };
        }
        let lanes = match linearization.reconverges(block) {
            // A convergent block has all lanes or none: its mask is only read if it may be empty.
            _ if convergent && !linearization.maybe_empty(block) => self.subgroup.lanes,
            Some(from) => {
                let at_split = self.split_variable(from);
                self.read(at_split)
            }
            None => {
                let block_in = self.block_in_variable(block);
                let lanes = self.read(block_in);
                let none = self.builder.constant(Type::Mask, 0);
                // The next iteration of a loop around the block begins with an empty mask.
                self.write(block_in, none);
                lanes
            }
        };
        if linearization.maybe_empty(block) {
            let any = self.builder.any(lanes);
            let body = self.builder.create_block();
            let instead = self.next_block_after_loops(linearization.instead(block));
            self.builder.branch(any, body, instead);
            self.builder.switch_to(body);
            self.builder.seal(body);
        }
        if convergent { self.subgroup.lanes } else { lanes }
    }

    /// The SIMD block that runs next.
    fn next_block(&mut self, next: Next) -> Block {
        match next {
            Next::Block(block) => self.simd_block(block),
            Next::LoopEnd(number) => self.loop_end(number),
            Next::End => self.control.end.unwrap_or_else(|| unreachable!("a region has an end")),
        }
    }

    /// As [`Widen::next_block`], for a block that is not a latch: no lane took a back edge in this iteration, so the
    /// end of a loop is replaced by what follows the loop.
    fn next_block_after_loops(&mut self, mut next: Next) -> Block {
        while let Next::LoopEnd(number) = next {
            next = self.uniformity.linearization.after_loop(number);
        }
        self.next_block(next)
    }

    /// Translates the terminator of the current block.
    pub(super) fn terminator(&mut self, data: &ScalarInst) {
        let block = self.block;
        self.empty_masks();
        match data {
            ScalarInst::Jump { to } => self.follow(to),
            ScalarInst::Branch { condition, then, otherwise } if self.shape(*condition) == Shape::Uniform => {
                let condition = self.scalar(*condition);
                let [first, second] = [self.builder.create_block(), self.builder.create_block()];
                self.builder.branch(condition, first, second);
                for (edge, call) in [(first, then), (second, otherwise)] {
                    self.follow_from(edge, call);
                }
            }
            ScalarInst::Branch { condition, then, otherwise } => {
                let mask = self.vector(*condition);
                let lanes = self.builder.and(self.exec, mask);
                let others = self.builder.and_not(self.exec, mask);
                self.note_mask_bound(*condition, lanes);
                self.add_edge(then, lanes);
                self.add_edge(otherwise, others);
                self.go(self.uniformity.linearization.after(block));
            }
            ScalarInst::Switch { selector, default, cases } if self.shape(*selector) == Shape::Uniform => {
                let selector = self.scalar(*selector);
                let edges: Vec<(u32, Block)> =
                    cases.iter().map(|&(literal, _)| (literal, self.builder.create_block())).collect();
                let other = self.builder.create_block();
                let call = simd::BlockCall::new;
                let targets = edges.iter().map(|&(literal, edge)| (literal, call(edge))).collect();
                self.builder.terminate(InstData::Switch { selector, default: call(other), cases: targets });
                let calls = cases.iter().map(|(_, call)| call).chain([default]);
                for (edge, call) in edges.into_iter().map(|(_, edge)| edge).chain([other]).zip(calls) {
                    self.follow_from(edge, call);
                }
            }
            ScalarInst::Switch { selector, default, cases } => {
                let selector = self.vector(*selector);
                let mut rest = self.exec;
                for (literal, call) in cases {
                    let literal = self.builder.constant(Type::V32, u64::from(*literal));
                    let equal = self.builder.pure(ir::Op::IEq, &[selector, literal]);
                    let lanes = self.builder.and(self.exec, equal);
                    rest = self.builder.and_not(rest, equal);
                    self.add_edge(call, lanes);
                }
                self.add_edge(default, rest);
                self.go(self.uniformity.linearization.after(block));
            }
            _ => self.go(self.uniformity.linearization.after(block)),
        }
    }

    /// Ends a block after all of its lanes have been added to block-in masks, or have returned.
    fn go(&mut self, next: Next) {
        let latch = self
            .kernel
            .targets(self.block)
            .iter()
            .any(|call| self.control.positions[call.block] <= self.control.positions[self.block]);
        let block = if latch { self.next_block(next) } else { self.next_block_after_loops(next) };
        self.builder.jump(block);
    }

    /// An edge of a uniform branch, which all active lanes take, in a separate block.
    fn follow_from(&mut self, edge: Block, call: &BlockCall) {
        self.builder.switch_to(edge);
        self.builder.seal(edge);
        self.record_exec();
        self.follow(call);
    }

    /// An edge that all active lanes take.
    fn follow(&mut self, call: &BlockCall) {
        let (from, to) = (self.control.positions[self.block], self.control.positions[call.block]);
        if to <= from {
            return self.repeat(call);
        }
        let linearization = &self.uniformity.linearization;
        if linearization.has_block_in_mask(call.block) {
            self.add_edge(call, self.exec);
        } else {
            self.reset_live_outs(call.block);
            self.pass_all(call);
        }
        // Other lanes may have to run first: in a block before the target, or in the next iteration of a loop that this
        // edge exits.
        let target = Next::Block(call.block);
        let next = match linearization.instead(self.block) {
            Next::Block(other) if self.control.positions[other] < to => Next::Block(other),
            Next::LoopEnd(number) if self.leaves(number, to) => Next::LoopEnd(number),
            _ => target,
        };
        debug_assert!(
            next == target || linearization.has_block_in_mask(call.block),
            "{} to {}",
            self.block,
            call.block
        );
        let block = self.next_block_after_loops(next);
        self.builder.jump(block);
    }

    fn leaves(&self, number: usize, to: u32) -> bool {
        let last = self.uniformity.loops.all[number].blocks.last();
        last.is_none_or(|&last| to > self.control.positions[last])
    }

    /// A back edge that all active lanes take.
    fn repeat(&mut self, call: &BlockCall) {
        self.pass_all(call);
        let number = self.uniformity.loops.of(call.block);
        let number = number.unwrap_or_else(|| unreachable!("a back edge leads to the header of a loop"));
        if self.uniformity.linearization.is_divergent(number) {
            let block_in = self.block_in_variable(call.block);
            self.write(block_in, self.exec);
        }
        self.poll(number, self.exec);
        let header = self.simd_block(call.block);
        self.builder.jump(header);
    }

    /// On the back edge of a loop, which `lanes` take: polls the stop flag, unless the loop's trip count is bounded.
    fn poll(&mut self, number: usize, lanes: Value) {
        if self.plans.trip_counts[number].is_none() {
            let at = self.kernel.word_of_loop(self.uniformity.loops.all[number].header);
            self.builder.emit(InstData::Poll { at, lanes: Some([self.subgroup.number, lanes]) });
        }
    }

    /// Loops whose last block is `block`, inner ones first.
    fn loops_ending(&self, block: ir::Block) -> Vec<usize> {
        let loops = &self.uniformity.loops;
        let around = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
        // If a loop has a later block, so have the loops around it.
        around.take_while(|&number| loops.all[number].blocks.last() == Some(&block)).collect()
    }

    /// Ends a loop: a divergent one has another iteration while its header's block-in mask has lanes.
    fn close(&mut self, number: usize) {
        let header = self.uniformity.loops.all[number].header;
        let top = self.simd_block(header);
        if let Some(end) = self.control.loop_ends[number] {
            self.builder.switch_to(end);
            self.builder.seal(end);
            let block_in = self.block_in_variable(header);
            let lanes = self.read(block_in);
            let any = self.builder.any(lanes);
            let back = self.builder.create_block();
            let out = self.next_block(self.uniformity.linearization.after_loop(number));
            self.builder.branch(any, back, out);
            self.builder.switch_to(back);
            self.builder.seal(back);
            self.poll(number, lanes);
            self.builder.jump(top);
        }
        self.builder.seal(top);
        self.builder.variables.dominance.close_loop();
    }

    /// After a barrier: reads the mask again, and drops cached values of the code before it.
    pub(super) fn resume(&mut self) {
        self.cache.clear();
        let lanes = self.lanes_variable();
        self.exec = if self.plans.convergent.contains(self.block) { self.subgroup.lanes } else { self.read(lanes) };
        self.record_exec();
    }
}
