//! Control flow: uniform branches stay branches, the others park their lanes.
//!
//! Every scalar block has a SIMD block, in the layout's order. A parked block begins with its lanes, and is jumped over
//! without any. Parameters, parked lanes and values that several blocks use are variables; `ssa` makes block parameters
//! of them where that is needed.

mod edge_masks;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use super::values::type_of;
use super::{Block, Type, Unsupported, Value, Widen};
use crate::analysis::{Next, Predecessors, Shape, positions, predecessors};
use crate::ir::{self, BlockCall, InstData as Scalar};
use crate::simd::dominance::Extent;
use crate::simd::ssa::{Unwritten, Variable, Writers};
use crate::simd::{self, InstData};

/// Where lanes are, while blocks are translated.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// The SIMD block of each scalar block.
    blocks: SecondaryMap<ir::Block, Option<Block>>,
    /// Where a divergent loop ends.
    loop_ends: Vec<Option<Block>>,
    pub(super) positions: SecondaryMap<ir::Block, u32>,
    predecessors: Predecessors,
    /// Positions of blocks in which subgroups stop.
    stops: Vec<u32>,
    /// Blocks that run for all of the subgroup's lanes.
    full: EntitySet<ir::Block>,
    /// Lanes parked at a block.
    parked: HashMap<ir::Block, Variable>,
    /// What is passed to a parameter.
    passed: HashMap<ir::Value, Variable>,
    /// The lanes of a block all of which come together later.
    whole: HashMap<ir::Block, Variable>,
    /// The lanes that are on now.
    lanes: Option<Variable>,
    /// Branches that are the first to park lanes at a block, so that none are there yet.
    first: HashMap<ir::Block, ir::Block>,
    /// By block: those that it dominates at once, where lanes will be parked. Nobody waits there yet.
    fresh: HashMap<ir::Block, Vec<ir::Block>>,
    /// By loop: values to forget before it is entered.
    thaw: HashMap<usize, Vec<Variable>>,
    /// After the last subgroup's instruction.
    end: Option<Block>,
}

impl Widen<'_> {
    /// Translates all blocks, from the current SIMD block on; all ways end in `end`.
    ///
    /// # Errors
    ///
    /// That takes too long: what is built is no kernel then.
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
        self.control.full = self.uniformity.full(kernel);
        for &block in &kernel.layout {
            let flow = &self.uniformity.flow;
            let known = self.control.full.contains(block) && !flow.maybe_empty(block);
            if let Some(from) = flow.whole(block).filter(|_| !known) {
                self.whole_variable(from);
            }
            for call in targets(kernel, block) {
                if self.control.positions[call.block] > self.control.positions[block]
                    && !self.uniformity.flow.leaves(block, call.block)
                {
                    self.control.first.entry(call.block).or_insert(block);
                }
            }
        }
        // A block may be reached out of a divergent loop before its first edge in order: then none is the first.
        for &block in &kernel.layout {
            for call in targets(kernel, block) {
                if self.uniformity.flow.leaves(block, call.block) {
                    self.control.first.remove(&call.block);
                }
            }
        }
        self.find_thaws();
        self.find_fresh();
    }

    fn simd_block(&mut self, block: ir::Block) -> Block {
        match self.control.blocks[block] {
            Some(found) => found,
            None => {
                let made = self.builder.create_block();
                self.control.blocks[block] = Some(made);
                made
            }
        }
    }

    fn loop_end(&mut self, number: usize) -> Block {
        match self.control.loop_ends[number] {
            Some(found) => found,
            None => {
                let made = self.builder.create_block();
                self.control.loop_ends[number] = Some(made);
                made
            }
        }
    }

    fn lanes_variable(&mut self) -> Variable {
        let variables = &mut self.builder.variables;
        *self.control.lanes.get_or_insert_with(|| variables.declare(Type::Mask, Unwritten::Empty))
    }

    fn parked_variable(&mut self, block: ir::Block) -> Variable {
        if let Some(&variable) = self.control.parked.get(&block) {
            return variable;
        }
        let writers = self.writers_before(block);
        let variable = self.builder.variables.declare_of(Type::Mask, Unwritten::Empty, writers);
        self.control.parked.insert(block, variable);
        variable
    }

    fn whole_variable(&mut self, from: ir::Block) -> Variable {
        let writers = Writers::only(self.control.positions[from]);
        let variables = &mut self.builder.variables;
        *self.control.whole.entry(from).or_insert_with(|| variables.declare_of(Type::Mask, Unwritten::Empty, writers))
    }

    /// Where that is written which lanes bring to a block: where they come from, where nobody waits for it yet, and there.
    fn writers_before(&self, block: ir::Block) -> Writers {
        let positions = &self.control.positions;
        let from = self.control.predecessors[block].iter().copied().chain(self.uniformity.dominators.idom(block));
        let mut at: SmallVec<[u32; 4]> = from.chain([block]).map(|block| positions[block]).collect();
        at.sort_unstable();
        at.dedup();
        Writers::Of { owner: positions[block], before: true, at }
    }

    /// What a loop is, for variables.
    fn extent(&self, number: usize) -> Extent {
        let positions = &self.control.positions;
        let found = &self.uniformity.loops.all[number];
        let first = positions[found.header];
        let last = found.blocks.last().map_or(first, |&last| positions[last]);
        let stops = &self.control.stops;
        match stops.get(stops.partition_point(|&place| place < first)) {
            Some(&place) if place <= last => Extent::Stops(first, last),
            _ => Extent::Span(first, last),
        }
    }

    fn passed_variable(&mut self, param: ir::Value) -> Variable {
        let ty = type_of(self.kernel.ty(param), self.uniformity.shape(param));
        if let Some(&variable) = self.control.passed.get(&param) {
            return variable;
        }
        let writers = self.uniformity.home(param).map_or(Writers::Everywhere, |home| self.writers_before(home));
        let variable = self.builder.variables.declare_of(ty, Unwritten::Undef, writers);
        self.note_common(variable, param);
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

    /// Begins a block: finds its lanes and parameters.
    fn enter(&mut self, block: ir::Block) {
        let here = self.simd_block(block);
        self.builder.switch_to(here);
        self.block = block;
        self.local.clear();
        self.behind.clear();
        self.samples.clear();
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
        self.note_exec();
        if let Some(&whole) = self.control.whole.get(&block) {
            self.write(whole, self.exec);
        }
        let kernel = self.kernel;
        for &param in &kernel.blocks[block].params {
            let passed = self.passed_variable(param);
            let value = self.read(passed);
            self.define(param, value);
        }
    }

    /// Notes in the SIMD block which lanes it works for.
    pub(super) fn note_exec(&mut self) {
        let block = self.builder.current();
        self.builder.kernel.blocks[block].exec = Some(self.exec);
    }

    /// The lanes of a block; control goes elsewhere if there are none.
    fn lanes_of(&mut self, block: ir::Block) -> Value {
        let full = self.control.full.contains(block);
        let flow = &self.uniformity.flow;
        if !flow.is_parked(block) {
            let lanes = self.lanes_variable();
            return if full { self.subgroup.lanes } else { self.read(lanes) };
        }
        let lanes = match flow.whole(block) {
            // Lanes that come here at all are all lanes; where control may come without, that has to be seen.
            _ if full && !flow.maybe_empty(block) => self.subgroup.lanes,
            Some(from) => {
                let whole = self.whole_variable(from);
                self.read(whole)
            }
            None => {
                let parked = self.parked_variable(block);
                let lanes = self.read(parked);
                let none = self.builder.constant(Type::Mask, 0);
                self.write(parked, none);
                lanes
            }
        };
        if flow.maybe_empty(block) {
            let any = self.builder.any(lanes);
            let body = self.builder.create_block();
            let instead = self.outside(flow.instead(block));
            self.builder.branch(any, body, instead);
            self.builder.switch_to(body);
            self.builder.seal(body);
        }
        if full { self.subgroup.lanes } else { lanes }
    }

    /// The SIMD block where control goes on.
    fn place(&mut self, next: Next) -> Block {
        match next {
            Next::Block(block) => self.simd_block(block),
            Next::LoopEnd(number) => self.loop_end(number),
            Next::End => self.control.end.unwrap_or_else(|| unreachable!("a region has an end")),
        }
    }

    /// Where control goes on from a block that is not a loop's latch: no lanes went back to the loop's header in this
    /// trip, so a loop that comes to its end is over.
    fn outside(&mut self, mut next: Next) -> Block {
        while let Next::LoopEnd(number) = next {
            next = self.uniformity.flow.after_loop(number);
        }
        self.place(next)
    }

    /// Ends the current block; what its terminator asks for.
    pub(super) fn leave(&mut self, data: &Scalar) {
        let block = self.block;
        self.begin_fresh();
        match data {
            Scalar::Jump { to } => self.follow(to),
            Scalar::Branch { condition, then, otherwise } if self.shape(*condition) == Shape::Uniform => {
                let condition = self.scalar(*condition);
                let [first, second] = [self.builder.create_block(), self.builder.create_block()];
                self.builder.branch(condition, first, second);
                for (edge, call) in [(first, then), (second, otherwise)] {
                    self.follow_from(edge, call);
                }
            }
            Scalar::Branch { condition, then, otherwise } => {
                let condition = self.vector(*condition);
                let lanes = self.builder.and(self.exec, condition);
                let others = self.builder.and_not(self.exec, condition);
                self.park(then, lanes);
                self.park(otherwise, others);
                self.go(self.uniformity.flow.after(block));
            }
            Scalar::Switch { selector, default, cases } if self.shape(*selector) == Shape::Uniform => {
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
            Scalar::Switch { selector, default, cases } => {
                let selector = self.vector(*selector);
                let mut rest = self.exec;
                for (literal, call) in cases {
                    let literal = self.builder.constant(Type::V32, u64::from(*literal));
                    let equal = self.builder.pure(ir::Op::IEq, &[selector, literal]);
                    let lanes = self.builder.and(self.exec, equal);
                    rest = self.builder.and_not(rest, equal);
                    self.park(call, lanes);
                }
                self.park(default, rest);
                self.go(self.uniformity.flow.after(block));
            }
            _ => self.go(self.uniformity.flow.after(block)),
        }
    }

    /// Goes on after all lanes of the block have been parked, or have ended.
    fn go(&mut self, next: Next) {
        let latch = targets(self.kernel, self.block)
            .iter()
            .any(|call| self.control.positions[call.block] <= self.control.positions[self.block]);
        let place = if latch { self.place(next) } else { self.outside(next) };
        self.builder.jump(place);
    }

    /// An edge of a uniform branch, which all lanes take, in a block of its own.
    fn follow_from(&mut self, edge: Block, call: &BlockCall) {
        self.builder.switch_to(edge);
        self.builder.seal(edge);
        self.note_exec();
        self.follow(call);
    }

    /// All lanes take an edge.
    fn follow(&mut self, call: &BlockCall) {
        let (from, to) = (self.control.positions[self.block], self.control.positions[call.block]);
        if to <= from {
            return self.repeat(call);
        }
        let flow = &self.uniformity.flow;
        if flow.is_parked(call.block) {
            self.park(call, self.exec);
        } else {
            self.thaw(call.block);
            self.pass_all(call);
        }
        // Lanes may wait before the target, or for the end of a loop that is left.
        let target = Next::Block(call.block);
        let next = match flow.instead(self.block) {
            Next::Block(other) if self.control.positions[other] < to => Next::Block(other),
            Next::LoopEnd(number) if self.leaves(number, to) => Next::LoopEnd(number),
            _ => target,
        };
        debug_assert!(next == target || flow.is_parked(call.block), "{} to {}", self.block, call.block);
        let place = self.outside(next);
        self.builder.jump(place);
    }

    fn leaves(&self, number: usize, to: u32) -> bool {
        let last = self.uniformity.loops.all[number].blocks.last();
        last.is_none_or(|&last| to > self.control.positions[last])
    }

    /// All lanes go back to a loop's header.
    fn repeat(&mut self, call: &BlockCall) {
        self.pass_all(call);
        let number = self.uniformity.loops.of(call.block).unwrap_or(0);
        if self.uniformity.flow.is_divergent(number) {
            let parked = self.parked_variable(call.block);
            self.write(parked, self.exec);
        }
        self.poll(number, self.exec);
        let header = self.simd_block(call.block);
        self.builder.jump(header);
    }

    /// Asks whether the kernel is to stop, on the way back to a loop's header, where these lanes go.
    fn poll(&mut self, number: usize, lanes: Value) {
        if self.short[number].is_none() {
            let at = self.kernel.word_of_loop(self.uniformity.loops.all[number].header);
            self.builder.emit(InstData::Poll { at, lanes: Some([self.subgroup.number, lanes]) });
        }
    }

    /// Divergent loops that end after a block, inner ones first, and uniform ones.
    fn loops_ending(&self, block: ir::Block) -> Vec<usize> {
        let loops = &self.uniformity.loops;
        let around = std::iter::successors(loops.of(block), |&number| loops.all[number].parent);
        // A loop that goes on behind the block is in loops that do, too.
        around.take_while(|&number| loops.all[number].blocks.last() == Some(&block)).collect()
    }

    /// Ends a loop: a divergent one goes on while lanes are parked at its header.
    fn close(&mut self, number: usize) {
        let header = self.uniformity.loops.all[number].header;
        let top = self.simd_block(header);
        if let Some(end) = self.control.loop_ends[number] {
            self.builder.switch_to(end);
            self.builder.seal(end);
            let parked = self.parked_variable(header);
            let lanes = self.read(parked);
            let any = self.builder.any(lanes);
            let back = self.builder.create_block();
            let out = self.place(self.uniformity.flow.after_loop(number));
            self.builder.branch(any, back, out);
            self.builder.switch_to(back);
            self.builder.seal(back);
            self.poll(number, lanes);
            self.builder.jump(top);
        }
        self.builder.seal(top);
        self.builder.variables.dominance.close_loop();
    }

    /// After a barrier: the lanes and what is local have to be found anew.
    pub(super) fn resume(&mut self) {
        self.local.clear();
        self.behind.clear();
        self.samples.clear();
        let lanes = self.lanes_variable();
        self.exec = if self.control.full.contains(self.block) { self.subgroup.lanes } else { self.read(lanes) };
        self.note_exec();
    }
}

/// Edges out of a block.
fn targets(kernel: &ir::Kernel, block: ir::Block) -> SmallVec<[&BlockCall; 2]> {
    kernel.blocks[block].insts.last().map(|&last| kernel.insts[last].targets()).unwrap_or_default()
}
