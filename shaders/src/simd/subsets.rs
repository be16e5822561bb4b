//! Proves that one mask is a subset of another.
//!
//! A query is a pair of masks, and is reduced to queries about operands: `land(a, b)` is a subset of `a`, `lor(a, b)`
//! is a subset of a mask if both operands are, and a block parameter is if all its arguments are. A query that recurs
//! while it is being answered, around a loop, is assumed proven (coinduction): in each iteration it is about masks of
//! an earlier one. Proofs that rest on an assumption are dropped if the assumption turns out wrong, and final
//! otherwise, as in the search for strongly connected components (Tarjan, "Depth-First Search and Linear Graph
//! Algorithms", 1972).
//!
//! A value has a new instance in each iteration of a loop. An answer states that in a block which both definitions
//! dominate, the latest instance of one mask is a subset of the latest instance of the other. So a parameter is
//! compared only through its arguments, and only with masks that are defined before its block or are parameters of the
//! same block; and a mask loaded from a frame is compared only with masks that are the same whenever the subgroup runs.

use std::collections::HashMap;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::fast::RandomState;
use smallvec::SmallVec;

use super::{Block, Inst, InstData, Kernel, LANES, Type, Value, ValueDef};
use crate::analysis::Dominators;
use crate::ir::Op;

/// `(a, b)`: whether `a` is a subset of `b`.
type Query = (Value, Value);

/// Queries that together imply another one.
type All = SmallVec<[Query; 2]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueryAnswer {
    /// Proven without assumptions.
    Yes,
    /// In progress: the query's index on the stack.
    Open(usize),
    /// Proven under assumptions: the earliest of them on the stack; if that one has been answered since, see its own
    /// answer.
    Assuming(Query),
    /// Refuted or unknown; assumptions cannot change that.
    No,
}

/// A query in progress.
struct OpenQuery {
    query: Query,
    /// Alternatives, each of which is sufficient.
    alternatives: SmallVec<[All; 2]>,
    /// The alternative that is being tried, and its next query.
    alternative: usize,
    next: usize,
    /// Start of the proofs under assumptions since this query was opened, in [`Subsets::proven`].
    mark: usize,
    /// The index on the stack of the earliest query that the answer assumes so far.
    assumes: usize,
}

/// The query solver: its inputs and the answers so far.
pub(crate) struct Subsets<'a> {
    kernel: &'a Kernel,
    dominators: &'a Dominators<Block>,
    /// The block of each value.
    defining_blocks: SecondaryMap<Value, Option<Block>>,
    /// The edges to each block from reachable blocks: the terminator and the index of the target.
    calls: SecondaryMap<Block, SmallVec<[(Inst, u32); 2]>>,
    /// Masks that are stored in frames, by slot offset.
    kept: HashMap<u32, SmallVec<[Value; 2]>, RandomState>,
    /// Masks that are the same whenever the subgroup runs.
    lasting: EntitySet<Value>,
    answers: HashMap<Query, QueryAnswer, RandomState>,
    /// Queries proven under assumptions, in order.
    proven: Vec<Query>,
    /// Remaining steps: bounds the time linearly.
    steps: usize,
}

impl<'a> Subsets<'a> {
    /// A solver without answers. The kernel's values and blocks must match its tables. `lasting` are masks that are the
    /// same each time they are computed for one subgroup.
    pub(crate) fn new(kernel: &'a Kernel, dominators: &'a Dominators<Block>, lasting: EntitySet<Value>) -> Self {
        let mut defining_blocks = SecondaryMap::with_capacity(kernel.values.len());
        let mut calls: SecondaryMap<Block, SmallVec<[(Inst, u32); 2]>> = SecondaryMap::new();
        let mut kept: HashMap<_, SmallVec<[Value; 2]>, _> = HashMap::with_hasher(RandomState::default());
        let mut size = 0;
        for &block in &kernel.layout {
            let data = &kernel.blocks[block];
            size += data.params.len() + data.insts.len();
            data.params.iter().for_each(|&param| defining_blocks[param] = Some(block));
            for &inst in &data.insts {
                kernel.results[inst].iter().for_each(|&value| defining_blocks[value] = Some(block));
                if let InstData::FrameStore { at, value, .. } = kernel.insts[inst]
                    && kernel.ty(value) == Type::Mask
                {
                    kept.entry(at).or_default().push(value);
                }
            }
            let Some(&last) = data.insts.last().filter(|_| dominators.is_reachable(block)) else { continue };
            for (number, call) in kernel.insts[last].targets().iter().enumerate() {
                size += call.args.len();
                calls[call.block].push((last, number as u32));
            }
        }
        let answers = HashMap::with_hasher(RandomState::default());
        let steps = 1000 + 64 * size;
        Self { kernel, dominators, defining_blocks, calls, kept, lasting, answers, proven: Vec::new(), steps }
    }

    /// Whether the search was cut off: a negative answer may be wrong.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps == 0
    }

    /// Whether `mask` is provably a subset of `of`. Both are masks of reachable blocks.
    pub(crate) fn contains(&mut self, of: Value, mask: Value) -> bool {
        let mut open = Vec::new();
        let mut answer = self.ask((mask, of), &mut open);
        while let Some(top) = open.last_mut() {
            match answer.take() {
                Some(true) => top.next += 1,
                Some(false) => (top.alternative, top.next) = (top.alternative + 1, 0),
                None => {}
            }
            answer = match top.alternatives.get(top.alternative).map(|alternative| alternative.get(top.next).copied()) {
                Some(Some(query)) => self.ask(query, &mut open),
                Some(None) => self.close(&mut open, true),
                None => self.close(&mut open, false),
            };
        }
        answer == Some(true)
    }

    /// The answer if it is known; otherwise opens the query.
    fn ask(&mut self, query: Query, open: &mut Vec<OpenQuery>) -> Option<bool> {
        if let Some(answer) = self.answer_without_search(query) {
            return Some(answer);
        }
        match self.answers.get(&query) {
            Some(QueryAnswer::Yes) => return Some(true),
            Some(QueryAnswer::No) => return Some(false),
            Some(QueryAnswer::Open(_) | QueryAnswer::Assuming(_)) => {
                let place = self.first_assumed(query);
                if let Some(top) = open.last_mut() {
                    top.assumes = top.assumes.min(place);
                }
                return Some(true);
            }
            None if self.is_exhausted() => return Some(false),
            None => {}
        }
        let alternatives = self.alternatives(query);
        let steps = 1 + alternatives.iter().map(SmallVec::len).sum::<usize>();
        self.kernel.work.visit(steps);
        self.steps = self.steps.saturating_sub(steps);
        // A short alternative may avoid the search along a long one.
        if alternatives
            .iter()
            .any(|alternative| alternative.iter().all(|&query| self.answer_without_search(query) == Some(true)))
        {
            self.answers.insert(query, QueryAnswer::Yes);
            return Some(true);
        }
        self.answers.insert(query, QueryAnswer::Open(open.len()));
        open.push(OpenQuery {
            query,
            alternatives,
            alternative: 0,
            next: 0,
            mark: self.proven.len(),
            assumes: usize::MAX,
        });
        None
    }

    /// The index on the stack of the earliest query that a positive answer assumes.
    fn first_assumed(&mut self, query: Query) -> usize {
        let mut at = query;
        let place = loop {
            match self.answers.get(&at) {
                Some(&QueryAnswer::Open(place)) => break place,
                Some(&QueryAnswer::Assuming(other)) => at = other,
                // Queries that depend on this one are proven or dropped together with it.
                Some(QueryAnswer::Yes | QueryAnswer::No) | None => break 0,
            }
            self.steps = self.steps.saturating_sub(1);
        };
        let end = at;
        at = query;
        while let Some(QueryAnswer::Assuming(other)) = self.answers.get_mut(&at) {
            at = std::mem::replace(other, end);
        }
        place
    }

    fn close(&mut self, open: &mut Vec<OpenQuery>, yes: bool) -> Option<bool> {
        let OpenQuery { query, mark, assumes, .. } = open.pop()?;
        if !yes {
            for assumed in self.proven.drain(mark..) {
                self.answers.remove(&assumed);
            }
            self.answers.insert(query, QueryAnswer::No);
            return Some(false);
        }
        match open.get(assumes) {
            // It assumes nothing but itself, so all proofs since it was opened are final.
            None => {
                self.answers.insert(query, QueryAnswer::Yes);
                for proven in self.proven.drain(mark..) {
                    self.answers.insert(proven, QueryAnswer::Yes);
                }
            }
            Some(first) => {
                self.answers.insert(query, QueryAnswer::Assuming(first.query));
                self.proven.push(query);
                if let Some(top) = open.last_mut() {
                    top.assumes = top.assumes.min(assumes);
                }
            }
        }
        Some(true)
    }

    /// The answer, if it needs no search.
    fn answer_without_search(&self, (mask, of): Query) -> Option<bool> {
        let all = (1 << LANES) - 1;
        match (self.kernel.constant(mask), self.kernel.constant(of)) {
            _ if mask == of => Some(true),
            (Some(0), _) => Some(true),
            (_, Some(of)) if of & all == all => Some(true),
            (Some(mask), Some(of)) => Some(mask & !of == 0),
            _ => None,
        }
    }

    /// The alternatives that imply the query.
    fn alternatives(&self, (mask, of): Query) -> SmallVec<[All; 2]> {
        let mut alternatives = SmallVec::new();
        match self.kernel.definition(mask) {
            Some(InstData::Pure { op: Op::LAnd, args }) => {
                alternatives.extend(args.iter().map(|&arg| All::from_slice(&[(arg, of)])));
            }
            Some(InstData::Pure { op: Op::LOr | Op::LXor, args }) => {
                alternatives.push(args.iter().map(|&arg| (arg, of)).collect());
            }
            Some(&InstData::Select { condition, then, otherwise }) => {
                alternatives.push([(then, of), (otherwise, of)].into());
                if self.kernel.ty(condition) == Type::Mask {
                    alternatives.push([(condition, of), (otherwise, of)].into());
                }
            }
            Some(&InstData::FrameLoad { at, .. }) if self.is_lasting(of) => {
                alternatives
                    .extend(self.kept.get(&at).map(|kept| kept.iter().map(|&mask| (mask, of)).collect::<All>()));
            }
            _ => {}
        }
        match self.kernel.definition(of) {
            Some(InstData::Pure { op: Op::LAnd, args }) => {
                alternatives.push(args.iter().map(|&arg| (mask, arg)).collect());
            }
            Some(InstData::Pure { op: Op::LOr, args }) => {
                alternatives.extend(args.iter().map(|&arg| All::from_slice(&[(mask, arg)])));
            }
            Some(&InstData::Select { then, otherwise, .. }) => {
                alternatives.push([(mask, then), (mask, otherwise)].into());
            }
            _ => {}
        }
        alternatives.extend(self.through_branches(mask, of));
        alternatives
    }

    /// Queries about the arguments on the edges to a block that has `mask` or `of` as a parameter.
    fn through_branches(&self, mask: Value, of: Value) -> impl Iterator<Item = All> {
        let param = |value: Value| match self.kernel.values[value] {
            ValueDef::Param { block, index, .. } => Some((block, index)),
            ValueDef::Result { .. } => None,
        };
        let alternatives = match (param(mask), param(of)) {
            (Some((block, m)), Some((other, o))) if block == other => {
                [Some(self.arguments(block, |args| (args[m as usize], args[o as usize]))), None]
            }
            (mask_at, of_at) => {
                let mask_at = mask_at.filter(|&(block, _)| self.is_before(of, block));
                let of_at = of_at.filter(|&(block, _)| self.is_before(mask, block));
                [
                    mask_at.map(|(block, index)| self.arguments(block, |args| (args[index as usize], of))),
                    of_at.map(|(block, index)| self.arguments(block, |args| (mask, args[index as usize]))),
                ]
            }
        };
        alternatives.into_iter().flatten()
    }

    /// Whether the mask is the same whenever the subgroup runs, so that masks in its frame may be compared with it.
    fn is_lasting(&self, mask: Value) -> bool {
        self.lasting.contains(mask) || self.kernel.constant(mask).is_some()
    }

    /// Whether the value cannot change between executions of the block's parameters: it is a constant, or defined in a
    /// strict dominator of the block.
    fn is_before(&self, value: Value, block: Block) -> bool {
        self.kernel.constant(value).is_some()
            || self.defining_blocks[value]
                .is_some_and(|definition| definition != block && self.dominators.dominates(definition, block))
    }

    fn arguments(&self, block: Block, query: impl Fn(&[Value]) -> Query) -> All {
        let calls = self.calls[block].iter();
        let targets = calls.filter_map(|&(inst, number)| self.kernel.insts[inst].target(number as usize));
        targets.map(|call| query(&call.args)).collect()
    }
}

#[cfg(test)]
mod tests;
