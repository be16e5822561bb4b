//! Value-range analysis of `i32` values: unsigned interval and known trailing zeros (bounds checks, alignment,
//! divisions).
//!
//! `range` is the abstract domain, `transfer` has the transfer functions, `facts` the ranges that branch conditions
//! imply. A pass walks the dominator tree; the facts of a branch hold in the blocks that its edge dominates, so
//! values computed from a loop counter use the counter's limit. Block parameters join the arguments of all edges. The
//! first pass ignores back edges; as long as their arguments are outside the assumed range, it is widened and another
//! pass runs. After the fixed point one narrowing pass follows.

mod facts;
mod range;
mod transfer;

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

use super::{Dominators, WalkStep, dominator_walk};
use crate::ir::{Block, BlockCall, InstData, Kernel, Op, Type, Value, ValueDef};
use facts::{Facts, facts};
pub use range::Range;

/// From this pass on, a loop parameter that still grows becomes [`Range::ANY`].
const MAX_WIDENING_PASSES: u32 = 4;

/// From this pass on, all loop parameters become [`Range::ANY`]: one more pass reaches the fixed point.
const MAX_PASSES: u32 = 8;

/// Dominators with facts that [`Ranges::at`] visits at most.
const MAX_DOMINATORS: usize = 24;

/// The ranges of a kernel's values of type `i32`.
#[derive(Debug)]
pub struct Ranges {
    ranges: SecondaryMap<Value, Range>,
    facts: SecondaryMap<Block, Facts>,
    /// The nearest strict dominator with facts.
    above: SecondaryMap<Block, PackedOption<Block>>,
}

impl Ranges {
    /// Analyses a kernel.
    pub fn new(kernel: &Kernel) -> Self {
        let dominators = Dominators::new(kernel);
        let mut analysis = Analysis::new(kernel, &dominators);
        let walk = dominator_walk(kernel, &dominators);
        let mut pass = 0;
        loop {
            pass += 1;
            analysis.pass(&walk);
            if analysis.widen(pass) {
                break;
            }
        }
        if analysis.narrow() {
            analysis.pass(&walk);
        }
        let above = above(kernel, &dominators, &analysis.facts);
        Self { ranges: analysis.ranges, facts: analysis.facts, above }
    }

    /// The range of an operation's `i32` result, from the ranges of its operands.
    pub fn evaluate(op: Op, args: &[Range]) -> Range {
        transfer::pure(op, args)
    }

    /// The range of a value from the operations that compute it, `depth` levels of them, without facts from branches.
    pub fn local(kernel: &Kernel, value: Value, depth: usize) -> Range {
        let ValueDef::Result { inst, .. } = kernel.values[value] else { return Range::ANY };
        if kernel.ty(value) != Type::I32 || depth == 0 {
            return Range::ANY;
        }
        let of = |value: Value| Self::local(kernel, value, depth - 1);
        match &kernel.insts[inst] {
            InstData::Const { bits, .. } => Range::exact(*bits as u32),
            InstData::BuiltIn { builtin, component } => transfer::builtin(kernel, *builtin, *component),
            InstData::Pure { op, args } => {
                let args: SmallVec<[Range; 4]> = args.iter().map(|&arg| of(arg)).collect();
                transfer::pure(*op, &args)
            }
            &InstData::Element { base, index, stride } => transfer::element(of(base), of(index), stride),
            _ => Range::ANY,
        }
    }

    /// The range of a value at all its uses.
    pub fn range(&self, value: Value) -> Range {
        self.ranges[value]
    }

    /// The range of a value in a block, with the facts of the branches that dominate it.
    pub fn at(&self, block: Block, value: Value) -> Range {
        let mut range = self.ranges[value];
        let mut next = Some(block);
        for _ in 0..MAX_DOMINATORS {
            let Some(block) = next else { break };
            for &(of, fact) in &self.facts[block] {
                if of == value {
                    range = range.meet(fact);
                }
            }
            next = self.above[block].expand();
        }
        range
    }

    /// Unsigned upper bound.
    pub fn upper(&self, value: Value) -> u32 {
        self.ranges[value].high
    }

    /// Unsigned lower bound.
    pub fn lower(&self, value: Value) -> u32 {
        self.ranges[value].low
    }
}

fn above(
    kernel: &Kernel,
    dominators: &Dominators,
    facts: &SecondaryMap<Block, Facts>,
) -> SecondaryMap<Block, PackedOption<Block>> {
    let mut above: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
    for &block in &kernel.layout {
        if let Some(idom) = dominators.idom(block) {
            above[block] = if facts[idom].is_empty() { above[idom] } else { idom.into() };
        }
    }
    above
}

/// Arguments of a block's parameters in one pass.
#[derive(Clone, Debug, Default)]
struct Incoming {
    /// Join over the edges visited so far; `None` before the first.
    ranges: SmallVec<[Option<Range>; 4]>,
    /// Whether the pass has visited the block: edges that follow are back edges.
    entered: bool,
}

struct Analysis<'k> {
    kernel: &'k Kernel,
    /// Ranges at the current point of the walk.
    ranges: SecondaryMap<Value, Range>,
    incoming: SecondaryMap<Block, Incoming>,
    /// Assumed ranges of the parameters of blocks with back edges (the current widening state).
    assumed: SecondaryMap<Block, Option<SmallVec<[Range; 4]>>>,
    /// For blocks with one incoming edge: its source block and the index of the target there.
    only_edge: SecondaryMap<Block, Option<(Block, u32)>>,
    facts: SecondaryMap<Block, Facts>,
    /// Ranges that facts have replaced, to restore when the walk leaves the block.
    undo: Vec<(Value, Range)>,
}

impl<'k> Analysis<'k> {
    fn new(kernel: &'k Kernel, dominators: &Dominators) -> Self {
        let mut in_edges: SecondaryMap<Block, u32> = SecondaryMap::new();
        let mut only_edge = SecondaryMap::new();
        for &block in &kernel.layout {
            let last = kernel.blocks[block].insts.last().filter(|_| dominators.is_reachable(block));
            let Some(&last) = last else { continue };
            for (number, call) in kernel.insts[last].targets().iter().enumerate() {
                in_edges[call.block] += 1;
                only_edge[call.block] = (in_edges[call.block] == 1).then_some((block, number as u32));
            }
        }
        Self {
            kernel,
            ranges: SecondaryMap::with_default(Range::ANY),
            incoming: SecondaryMap::new(),
            assumed: SecondaryMap::new(),
            only_edge,
            facts: SecondaryMap::new(),
            undo: Vec::new(),
        }
    }

    fn pass(&mut self, walk: &[WalkStep]) {
        for &block in &self.kernel.layout {
            let count = self.kernel.blocks[block].params.len();
            let incoming = &mut self.incoming[block];
            incoming.entered = false;
            incoming.ranges.clear();
            incoming.ranges.resize(count, None);
        }
        let mut marks = Vec::new();
        for &step in walk {
            match step {
                WalkStep::Enter(block) => {
                    marks.push(self.undo.len());
                    self.enter(block);
                }
                WalkStep::Leave(_) => {
                    for (value, range) in self.undo.drain(marks.pop().unwrap_or(0)..).rev() {
                        self.ranges[value] = range;
                    }
                }
            }
        }
    }

    fn enter(&mut self, block: Block) {
        self.incoming[block].entered = true;
        for (position, &param) in self.kernel.blocks[block].params.iter().enumerate() {
            self.ranges[param] = match &self.assumed[block] {
                Some(assumed) => assumed[position],
                None => self.incoming[block].ranges[position].unwrap_or(Range::ANY),
            };
        }
        self.facts[block] = self.facts_on_entry(block);
        for &(value, fact) in &self.facts[block] {
            self.undo.push((value, self.ranges[value]));
            self.ranges[value] = self.ranges[value].meet(fact);
        }
        for &inst in &self.kernel.blocks[block].insts {
            if let Some(value) = self.kernel.results[inst].filter(|&value| self.kernel.ty(value) == Type::I32) {
                self.ranges[value] = self.result(&self.kernel.insts[inst]);
            }
        }
        if let Some(&last) = self.kernel.blocks[block].insts.last() {
            self.leave_to_targets(&self.kernel.insts[last]);
        }
    }

    fn facts_on_entry(&self, block: Block) -> Facts {
        let Some((from, number)) = self.only_edge[block] else { return Facts::new() };
        let Some(&last) = self.kernel.blocks[from].insts.last() else { return Facts::new() };
        self.facts_on_edge(&self.kernel.insts[last], number)
    }

    /// Facts that hold on a terminator's edge to its target `number`.
    fn facts_on_edge(&self, last: &InstData, number: u32) -> Facts {
        match last {
            InstData::Branch { condition, .. } => {
                facts(self.kernel, *condition, number == 0, |value| self.ranges[value])
            }
            InstData::Switch { selector, cases, .. } if number > 0 => {
                let literal = cases.get(number as usize - 1).map(|case| (*selector, Range::exact(case.0)));
                literal.into_iter().collect()
            }
            _ => Facts::new(),
        }
    }

    fn leave_to_targets(&mut self, last: &InstData) {
        for (number, call) in last.targets().into_iter().enumerate() {
            if !call.args.is_empty() {
                let facts = self.facts_on_edge(last, number as u32);
                self.pass_arguments(call, &facts);
            }
        }
    }

    fn pass_arguments(&mut self, call: &BlockCall, facts: &Facts) {
        let incoming = &mut self.incoming[call.block];
        if incoming.entered && self.assumed[call.block].is_none() {
            // The first back edge: the block has assumed the join of the forward edges.
            let assumed = incoming.ranges.iter().map(|range| range.unwrap_or(Range::ANY)).collect();
            self.assumed[call.block] = Some(assumed);
        }
        for (into, &arg) in incoming.ranges.iter_mut().zip(&call.args) {
            let known = facts.iter().filter(|fact| fact.0 == arg);
            let range = known.fold(self.ranges[arg], |range, fact| range.meet(fact.1));
            *into = Some(into.map_or(range, |before| before.join(range)));
        }
    }

    /// Compares assumed ranges with the joined arguments. Returns true at the fixed point; otherwise widens the
    /// assumptions.
    fn widen(&mut self, pass: u32) -> bool {
        let mut fixed_point = true;
        for &block in &self.kernel.layout {
            let Some(assumed) = &mut self.assumed[block] else { continue };
            for (assumed, joined) in assumed.iter_mut().zip(&self.incoming[block].ranges) {
                let joined = joined.unwrap_or(*assumed);
                if !assumed.contains(joined) {
                    fixed_point = false;
                    *assumed = if pass < MAX_WIDENING_PASSES { assumed.widen(joined, pass == 1) } else { Range::ANY };
                }
            }
            if pass >= MAX_PASSES {
                assumed.fill(Range::ANY);
            }
        }
        fixed_point
    }

    /// Narrows the assumptions to the joined arguments, which are sound at the fixed point. Returns true if any
    /// changed.
    fn narrow(&mut self) -> bool {
        let mut changed = false;
        for &block in &self.kernel.layout {
            let Some(assumed) = &mut self.assumed[block] else { continue };
            for (assumed, joined) in assumed.iter_mut().zip(&self.incoming[block].ranges) {
                let joined = joined.unwrap_or(*assumed);
                changed |= *assumed != joined;
                *assumed = joined;
            }
        }
        changed
    }

    /// Transfer function of an instruction.
    fn result(&self, data: &InstData) -> Range {
        let range = |value: &Value| self.ranges[*value];
        match data {
            InstData::Const { bits, .. } => Range::exact(*bits as u32),
            InstData::Pure { op, args } => {
                let args: SmallVec<[Range; 4]> = args.iter().map(range).collect();
                transfer::pure(*op, &args)
            }
            InstData::Select { condition, then, otherwise } => {
                // Each arm is selected only where the condition has its truth value.
                let side = |value: &Value, truth| {
                    let facts = facts(self.kernel, *condition, truth, |value| self.ranges[value]);
                    facts.iter().filter(|fact| fact.0 == *value).fold(range(value), |range, fact| range.meet(fact.1))
                };
                side(then, true).join(side(otherwise, false))
            }
            InstData::BuiltIn { builtin, component } => transfer::builtin(self.kernel, *builtin, *component),
            InstData::Element { base, index, stride } => transfer::element(range(base), range(index), *stride),
            _ => Range::ANY,
        }
    }
}
