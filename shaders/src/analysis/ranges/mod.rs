//! How large an `i32` can be, and which power of two divides it: for bounds checks, alignment, and divisions.
//!
//! `range` is what may be known about a value, `transfer` what operations make of it, `facts` what a branch tells. A pass
//! walks the dominator tree; below a branch the facts hold, so that what a loop computes from its counter knows the
//! counter's limit. Parameters take what their branches passed. The first pass hopes the best about back edges; while that
//! was too good, the parameter is widened and the next pass tries again. What holds at last is made narrower once more.

mod facts;
mod range;
mod transfer;

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use smallvec::SmallVec;

use super::{Dominators, Step, dominator_walk};
use crate::ir::{Block, BlockCall, InstData, Kernel, Op, Type, Value, ValueDef};
use facts::{Facts, facts};
pub use range::Range;

/// Passes after which a parameter that still grows can be anything.
const PATIENCE: u32 = 4;

/// Passes after which every parameter that a loop changes can be anything: one more pass is the last.
const LIMIT: u32 = 8;

/// Dominators that [`Ranges::at`] asks for facts, at most.
const FACTS_ABOVE: usize = 24;

/// The ranges of a kernel's values of type `i32`.
#[derive(Debug)]
pub struct Ranges {
    ranges: SecondaryMap<Value, Range>,
    facts: SecondaryMap<Block, Facts>,
    /// The next block above with facts.
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
            if analysis.settle(pass) {
                break;
            }
        }
        if analysis.narrow() {
            analysis.pass(&walk);
        }
        let above = above(kernel, &dominators, &analysis.facts);
        Self { ranges: analysis.ranges, facts: analysis.facts, above }
    }

    /// What an operation with an `i32` as result makes of operands.
    pub fn evaluate(op: Op, args: &[Range]) -> Range {
        transfer::pure(op, args)
    }

    /// What the operations that lead to a value tell about it, up to `depth` of them; branches are not looked at.
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

    /// What is known about a value wherever it is used.
    pub fn range(&self, value: Value) -> Range {
        self.ranges[value]
    }

    /// What is known about a value in a block, the conditions of the branches above included.
    pub fn at(&self, block: Block, value: Value) -> Range {
        let mut range = self.ranges[value];
        let mut next = Some(block);
        for _ in 0..FACTS_ABOVE {
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

    /// The greatest value, unsigned.
    pub fn upper(&self, value: Value) -> u32 {
        self.ranges[value].high
    }

    /// The least value, unsigned.
    pub fn lower(&self, value: Value) -> u32 {
        self.ranges[value].low
    }

    /// A power of two that divides every value; 2³¹ for 0.
    pub fn multiple_of(&self, value: Value) -> u32 {
        1 << self.ranges[value].zeros.min(31)
    }

    /// As [`Ranges::multiple_of`], but `u32::MAX`, which stands for offsets that are too large, does not count.
    pub fn multiple_of_unless_max(&self, value: Value) -> u32 {
        1 << self.ranges[value].zeros_unless_max.min(31)
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

/// What flows into the parameters of a block in one pass.
#[derive(Clone, Debug, Default)]
struct Incoming {
    /// Joined over the branches seen so far, `None` before the first.
    ranges: SmallVec<[Option<Range>; 4]>,
    /// Whether the pass has been at the block.
    entered: bool,
}

struct Analysis<'k> {
    kernel: &'k Kernel,
    /// What is known at the place where the pass is.
    ranges: SecondaryMap<Value, Range>,
    incoming: SecondaryMap<Block, Incoming>,
    /// What is assumed about the parameters of blocks with back edges.
    assumed: SecondaryMap<Block, Option<SmallVec<[Range; 4]>>>,
    /// For blocks with one way in: the block that it comes from, and the number of the target there.
    only_way: SecondaryMap<Block, Option<(Block, u32)>>,
    facts: SecondaryMap<Block, Facts>,
    /// What facts have replaced.
    undo: Vec<(Value, Range)>,
}

impl<'k> Analysis<'k> {
    fn new(kernel: &'k Kernel, dominators: &Dominators) -> Self {
        let mut ways: SecondaryMap<Block, u32> = SecondaryMap::new();
        let mut only_way = SecondaryMap::new();
        for &block in &kernel.layout {
            let last = kernel.blocks[block].insts.last().filter(|_| dominators.is_reachable(block));
            let Some(&last) = last else { continue };
            for (number, call) in kernel.insts[last].targets().iter().enumerate() {
                ways[call.block] += 1;
                only_way[call.block] = (ways[call.block] == 1).then_some((block, number as u32));
            }
        }
        Self {
            kernel,
            ranges: SecondaryMap::with_default(Range::ANY),
            incoming: SecondaryMap::new(),
            assumed: SecondaryMap::new(),
            only_way,
            facts: SecondaryMap::new(),
            undo: Vec::new(),
        }
    }

    fn pass(&mut self, walk: &[Step]) {
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
                Step::Enter(block) => {
                    marks.push(self.undo.len());
                    self.enter(block);
                }
                Step::Leave(_) => {
                    for (value, range) in self.undo.drain(marks.pop().unwrap_or(0)..).rev() {
                        self.ranges[value] = range;
                    }
                }
            }
        }
    }

    fn enter(&mut self, block: Block) {
        self.incoming[block].entered = true;
        for (place, &param) in self.kernel.blocks[block].params.iter().enumerate() {
            self.ranges[param] = match &self.assumed[block] {
                Some(assumed) => assumed[place],
                None => self.incoming[block].ranges[place].unwrap_or(Range::ANY),
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
        let Some((from, number)) = self.only_way[block] else { return Facts::new() };
        let Some(&last) = self.kernel.blocks[from].insts.last() else { return Facts::new() };
        self.facts_on_edge(&self.kernel.insts[last], number)
    }

    /// What holds where a terminator goes to that target.
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
            // A way back: what the block has assumed so far is what came in by then.
            let assumed = incoming.ranges.iter().map(|range| range.unwrap_or(Range::ANY)).collect();
            self.assumed[call.block] = Some(assumed);
        }
        for (into, &arg) in incoming.ranges.iter_mut().zip(&call.args) {
            let known = facts.iter().filter(|fact| fact.0 == arg);
            let range = known.fold(self.ranges[arg], |range, fact| range.meet(fact.1));
            *into = Some(into.map_or(range, |before| before.join(range)));
        }
    }

    /// Holds what was assumed against what came. Whether all was right; if not, less is assumed now.
    fn settle(&mut self, pass: u32) -> bool {
        let mut right = true;
        for &block in &self.kernel.layout {
            let Some(assumed) = &mut self.assumed[block] else { continue };
            for (assumed, came) in assumed.iter_mut().zip(&self.incoming[block].ranges) {
                let came = came.unwrap_or(*assumed);
                if !assumed.contains(came) {
                    right = false;
                    *assumed = if pass < PATIENCE { assumed.widen(came, pass == 1) } else { Range::ANY };
                }
            }
            if pass >= LIMIT {
                assumed.fill(Range::ANY);
            }
        }
        right
    }

    /// What came in is all that there is. Whether that is less than was assumed.
    fn narrow(&mut self) -> bool {
        let mut less = false;
        for &block in &self.kernel.layout {
            let Some(assumed) = &mut self.assumed[block] else { continue };
            for (assumed, came) in assumed.iter_mut().zip(&self.incoming[block].ranges) {
                let came = came.unwrap_or(*assumed);
                less |= *assumed != came;
                *assumed = came;
            }
        }
        less
    }

    fn result(&self, data: &InstData) -> Range {
        let range = |value: &Value| self.ranges[*value];
        match data {
            InstData::Const { bits, .. } => Range::exact(*bits as u32),
            InstData::Pure { op, args } => {
                let args: SmallVec<[Range; 4]> = args.iter().map(range).collect();
                transfer::pure(*op, &args)
            }
            InstData::Select { condition, then, otherwise } => {
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
