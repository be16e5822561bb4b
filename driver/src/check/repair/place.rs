//! Places for a barrier between two instructions of a kernel: between them in the text, or at the end of the loop
//! through whose back edge the one follows the other.
//!
//! The layout has the blocks of a construct one after another, and its merge block after them. So the constructs around
//! a block are ranges of positions in the layout.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use spelter_shaders::ir::{Block, Inst, InstData, Kernel, Merge, Scope, SiteData, SourceLine};

/// A place in a kernel: before the instruction with this index of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    /// Position of the block in the layout.
    pub(super) block: usize,
    pub(super) index: usize,
}

/// A place where a barrier may order two instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// After the one and before the other in the text.
    Between {
        at: At,
        /// Whether the two are of one statement, which would have to become two.
        splits: bool,
        /// The first line of the branch or loop that only the later one is in, or of the call through which it is
        /// there: the place is before it.
        before: Option<Before>,
    },
    /// Directly after the statement of the one that comes first in the text.
    After { at: At },
    /// At the end of the body of the innermost loop that has both.
    LoopEnd {
        at: At,
        /// The last line of the body.
        last: Option<SourceLine>,
        /// Which of the two is in the condition at the end of the loop, so that the place is after it within a
        /// statement.
        condition: Option<usize>,
    },
}

/// What a place is before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) line: SourceLine,
    /// Whether it is a call, or else a branch or loop.
    pub(super) call: bool,
}

impl Gap {
    pub(super) fn at(&self) -> At {
        match *self {
            Self::Between { at, .. } | Self::After { at } | Self::LoopEnd { at, .. } => at,
        }
    }
}

/// What all invocations of a workgroup do to execute a barrier at a place that only some of them reach: those that pass
/// it by execute it on these edges, as if the code around it were two branches with the barrier between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    /// The edges that leave the paths to the place: positions of blocks.
    pub(super) edges: Vec<(usize, usize)>,
    /// The lines of the branches that end before the barrier and begin again after it.
    pub(super) branches: Vec<SourceLine>,
    /// The lines of the returns before which these invocations would execute it.
    pub(super) returns: Vec<SourceLine>,
}

/// A construct: the positions of its blocks. Excludes the header of a selection, includes that of a loop.
#[derive(Clone, Debug)]
struct Construct {
    blocks: Range<usize>,
    /// Of a loop: the position of its continue target.
    continuing: Option<usize>,
}

/// A kernel's instructions in the order of the text.
pub(super) struct Text<'k> {
    kernel: &'k Kernel,
    constructs: Vec<Construct>,
}

impl<'k> Text<'k> {
    pub(super) fn new(kernel: &'k Kernel) -> Self {
        let positions: HashMap<Block, usize> = kernel.layout.iter().copied().zip(0..).collect();
        let position = |block: Block| positions.get(&block).copied();
        let construct = |(at, block): (usize, &Block)| match kernel.blocks[*block].merge? {
            Merge::Selection { merge } => Some(Construct { blocks: at + 1..position(merge)?, continuing: None }),
            Merge::Loop { merge, continuing } => {
                Some(Construct { blocks: at..position(merge)?, continuing: Some(position(continuing)?) })
            }
        };
        Self { kernel, constructs: kernel.layout.iter().enumerate().filter_map(construct).collect() }
    }

    fn insts(&self, block: usize) -> &'k [Inst] {
        &self.kernel.blocks[self.kernel.layout[block]].insts
    }

    /// The instruction at a place.
    pub(super) fn data(&self, at: At) -> &'k InstData {
        &self.kernel.insts[self.insts(at.block)[at.index]]
    }

    /// The number of the instruction at a place.
    pub(super) fn inst(&self, at: At) -> Option<Inst> {
        self.insts(at.block).get(at.index).copied()
    }

    /// The instructions of a site.
    pub(super) fn of_site(&self, site: &SiteData) -> Vec<At> {
        let accesses = |data: &InstData| {
            matches!(
                data,
                InstData::Load { .. }
                    | InstData::Store { .. }
                    | InstData::Atomic { .. }
                    | InstData::Image { .. }
                    | InstData::Fence { .. }
                    | InstData::Barrier { .. }
            )
        };
        let mut found = Vec::new();
        for block in 0..self.kernel.layout.len() {
            for (index, &inst) in self.insts(block).iter().enumerate() {
                if self.kernel.origins[inst] == site.word
                    && accesses(&self.kernel.insts[inst])
                    && self.kernel.words_of_calls(inst) == *site.inlined_at
                {
                    found.push(At { block, index });
                }
            }
        }
        found
    }

    /// The place between two instructions, of which `first` comes first in the text; as late as possible, where all
    /// invocations are that execute `first`, as far as the text says.
    pub(super) fn between(&self, first: At, second: At) -> Option<Gap> {
        if first >= second {
            return None;
        }
        let only_second = |construct: &&Construct| {
            construct.blocks.contains(&second.block) && !construct.blocks.contains(&first.block)
        };
        let outer = self.constructs.iter().filter(only_second).max_by_key(|construct| construct.blocks.len());
        let (block, end) = match outer {
            None => (second.block, second.index),
            Some(outer) => {
                let header = self.kernel.layout[outer.blocks.start];
                let enters = |&block: &usize| {
                    let targets = self.kernel.targets(self.kernel.layout[block]);
                    outer.continuing.is_none() || targets.iter().any(|call| call.block == header)
                };
                let block = (first.block..outer.blocks.start).rev().find(enters)?;
                (block, self.insts(block).len().checked_sub(1)?)
            }
        };
        let of_loop = outer.and_then(|outer| self.loop_line(self.insts(block)[end], outer));
        let start = self.statement(block, end, of_loop.or(self.line(block, end)));
        let floor = if block == first.block { first.index + 1 } else { 0 };
        let splits = start < floor;
        // A statement writes what it has read: where it becomes two, all its reads come before the place.
        let reads = self.inst(first).is_some_and(|inst| self.kernel.results[inst].is_some());
        let index = if splits && reads { end } else { start.max(floor) };
        let before = outer.and_then(|_| {
            // In terms of the function that has the first one.
            let (inst, calls) = (self.insts(block)[end], self.kernel.words_of_calls(self.inst(first)?));
            // A called function with several returns is in a construct that its call begins.
            let inner = self.kernel.words_of_calls(self.inst(second)?);
            // So is a store to an image, which begins it itself: the text has no branch there.
            let is_own = self.kernel.origins[inst] == self.kernel.origins[self.inst(second)?];
            if is_own && self.kernel.words_of_calls(inst) == inner {
                return None;
            }
            let begun = inner.strip_prefix(&calls[..]).and_then(<[u32]>::first) == Some(&self.kernel.origins[inst]);
            let is_within_call = self.kernel.words_of_calls(inst).len() > calls.len();
            let call = begun || is_within_call;
            let of_loop = of_loop.filter(|_| !is_within_call);
            let line = of_loop.or_else(|| self.line_in(inst, &calls)).or(self.kernel.line_of(inst))?;
            Some(Before { line: line.clone(), call })
        });
        Some(Gap::Between { at: At { block, index }, splits, before })
    }

    /// The place just after the statement of an instruction.
    pub(super) fn after(&self, first: At) -> Gap {
        let place = |index: usize| self.line(first.block, index).map(|line| (&line.file, line.line));
        let own = place(first.index);
        let last = self.insts(first.block).len().saturating_sub(1);
        let end =
            (first.index + 1..last).find(|&index| own.is_none() || place(index).is_some_and(|at| Some(at) != own));
        Gap::After { at: At { index: end.unwrap_or(last), ..first } }
    }

    /// The places just after the selections around an instruction, the innermost first: each has the line of the
    /// branch.
    pub(super) fn after_branches(&self, of: At) -> Vec<(At, Option<&'k SourceLine>)> {
        let selections = self.constructs.iter().filter(|construct| construct.continuing.is_none());
        let mut around: Vec<_> = selections.filter(|construct| construct.blocks.contains(&of.block)).collect();
        around.sort_by_key(|construct| Reverse(construct.blocks.start));
        let place = |construct: &&Construct| {
            let header = construct.blocks.start.checked_sub(1)?;
            let line = self.line(header, self.insts(header).len().checked_sub(1)?);
            Some((At { block: construct.blocks.end, index: 0 }, line))
        };
        around.iter().filter_map(place).collect()
    }

    /// The control barriers of subgroups between two instructions in the text.
    pub(super) fn subgroup_barriers(&self, first: At, second: At) -> Vec<At> {
        let all = (first.block..=second.block).flat_map(|block| {
            (0..self.insts(block).len()).map(move |index| At { block, index }).filter(|at| (first..second).contains(at))
        });
        let waits = |at: &At| matches!(self.data(*at), InstData::Barrier { execution: Scope::Subgroup, .. });
        all.filter(waits).collect()
    }

    /// How invocations that do not come to a place of the innermost loop around it, or of the kernel, pass it by.
    /// `None` if all come there.
    pub(super) fn around(&self, place: At) -> Option<Around> {
        let loops = self.constructs.iter().filter(|construct| construct.continuing.is_some());
        let inner = loops.filter(|construct| construct.blocks.contains(&place.block));
        let inner = inner.min_by_key(|construct| construct.blocks.len()).map(|construct| construct.blocks.clone());
        let own = inner.unwrap_or(0..self.kernel.layout.len());
        let positions: HashMap<Block, usize> = self.kernel.layout.iter().copied().zip(0..).collect();
        // The layout has a block after all from which it is reached, but for back edges.
        let next = |block: usize| {
            let targets = self.kernel.targets(self.kernel.layout[block]);
            let to: Vec<usize> = targets.iter().filter_map(|call| positions.get(&call.block).copied()).collect();
            to.into_iter().filter(move |to| *to > block)
        };
        let mut reach: BTreeSet<usize> = [place.block].into();
        for block in (own.start..place.block).rev() {
            if next(block).any(|to| reach.contains(&to)) {
                reach.insert(block);
            }
        }
        let mut found = Around::default();
        for &block in reach.iter().filter(|&&block| block != place.block) {
            let leaves = next(block).filter(|to| !reach.contains(to) && own.contains(to));
            for to in leaves.collect::<BTreeSet<_>>() {
                found.edges.push((block, to));
                let end = self.insts(block).len() - 1;
                let Some(line) = self.line(block, end) else { continue };
                let splits = |construct: &Construct| {
                    construct.continuing.is_none()
                        && construct.blocks.start == block + 1
                        && construct.blocks.contains(&place.block)
                };
                let (line, lines) = match self.constructs.iter().any(splits) {
                    true => (line, &mut found.branches),
                    false => match self.return_line(to, place.block, &own, self.insts(block)[end]) {
                        Some(line) => (line, &mut found.returns),
                        None => continue,
                    },
                };
                if !lines.contains(line) {
                    lines.push(line.clone());
                }
            }
        }
        (!found.edges.is_empty()).then_some(found)
    }

    /// The line of the return by which invocations pass a place by that a branch leads to a block; that of the branch,
    /// if the return has none. `None` if they do so by `break` or `continue`: a construct around the place ends or
    /// continues, or the path leaves the blocks in which returns are sought.
    fn return_line(&self, to: usize, place: usize, within: &Range<usize>, branch: Inst) -> Option<&'k SourceLine> {
        let around: Vec<&Construct> =
            self.constructs.iter().filter(|construct| construct.blocks.contains(&place)).collect();
        let goes_on = |block: usize| {
            let leads = |construct: &Construct| construct.blocks.end == block || construct.continuing == Some(block);
            !within.contains(&block) || around.iter().any(|construct| leads(construct))
        };
        let mut reached: BTreeSet<usize> = [to].into();
        while let Some(block) = reached.pop_first() {
            if goes_on(block) {
                return None;
            }
            let inst = *self.insts(block).last()?;
            if self.returns(inst, &around) {
                let (begin, end) = (self.kernel.origins[branch], self.kernel.origins[inst]);
                // What is before the branch in the module is not about the return.
                let own = self.kernel.lines.range(..=end).next_back().filter(|(start, _)| **start > begin);
                return own.map(|(_, line)| line).or(self.kernel.line_of(branch));
            }
            let targets = self.kernel.targets(self.kernel.layout[block]);
            let next = |to: &Block| self.kernel.layout.iter().position(|block| block == to);
            reached.extend(targets.iter().filter_map(|call| next(&call.block)).filter(|to| *to > block));
        }
        None
    }

    /// Whether an instruction is a return of the kernel, or of a called function that is one of these constructs.
    fn returns(&self, inst: Inst, around: &[&Construct]) -> bool {
        let to = match &self.kernel.insts[inst] {
            InstData::Return => return true,
            InstData::Jump { to } => to.block,
            _ => return false,
        };
        let calls = self.kernel.words_of_calls(inst);
        let is_of = |construct: &Construct| {
            let is_join = self.kernel.layout.get(construct.blocks.end) == Some(&to);
            // The call begins the construct.
            let header = construct.blocks.start.checked_sub(1).and_then(|header| self.insts(header).last());
            let is_begun = header.is_some_and(|&header| {
                let mut inner = self.kernel.words_of_calls(header);
                inner.push(self.kernel.origins[header]);
                inner == calls
            });
            construct.continuing.is_none() && is_join && is_begun
        };
        around.iter().any(|construct| is_of(construct))
    }

    /// The end of the innermost loop that has both instructions.
    pub(super) fn loop_end(&self, first: At, second: At) -> Option<Gap> {
        let has = |construct: &&Construct, at: At| construct.blocks.contains(&at.block);
        let loops = self.constructs.iter().filter(|construct| construct.continuing.is_some());
        let around = loops.filter(|construct| has(construct, first) && has(construct, second));
        let Construct { blocks, continuing } = around.min_by_key(|construct| construct.blocks.len())?;
        let continuing = (*continuing)?;
        // What a `continue` does not skip, or the back edge if the continue target has one of the two.
        let target = if first.block.max(second.block) >= continuing { blocks.start } else { continuing };
        let to = self.kernel.layout[target];
        let goes_there =
            |&block: &usize| self.kernel.targets(self.kernel.layout[block]).iter().any(|call| call.block == to);
        let block = blocks.clone().rev().find(goes_there)?;
        let index = self.insts(block).len().checked_sub(1)?;
        let body = blocks.start..(block + 1).min(continuing.max(blocks.start + 1));
        let calls = self.kernel.words_of_calls(self.insts(block)[index]);
        let lines = body.flat_map(|block| self.insts(block)).filter_map(|&inst| self.line_in(inst, &calls));
        let last = lines.max_by_key(|line| line.line).cloned();
        // Only a back edge of a loop that tests at its end has a condition.
        let line = self.line(block, index).filter(|_| self.kernel.targets(self.kernel.layout[block]).len() > 1);
        let tests = |at: &At| {
            let own = self.inst(*at).and_then(|inst| self.line_in(inst, &calls));
            at.block >= continuing
                && own.zip(line).is_some_and(|(own, line)| (&own.file, own.line) == (&line.file, line.line))
        };
        let condition = [first, second].iter().rposition(tests);
        Some(Gap::LoopEnd { at: At { block, index }, last, condition })
    }

    /// The control barriers of workgroups between two instructions in the text, and elsewhere in the innermost loop
    /// that has both; of each all copies, as calls of its function make them.
    pub(super) fn barriers_around(&self, first: At, second: At) -> Vec<Vec<At>> {
        let loops = self.constructs.iter().filter(|construct| construct.continuing.is_some());
        let around = loops.filter(|around| [first, second].iter().all(|at| around.blocks.contains(&at.block)));
        let around = around.map(|construct| construct.blocks.clone()).min_by_key(ExactSizeIterator::len);
        let (first, second) = (first.min(second), first.max(second));
        let is_there = |at: &At| match &around {
            Some(blocks) => blocks.contains(&at.block),
            None => (first..second).contains(at),
        };
        let waits = |at: &At| matches!(self.data(*at), InstData::Barrier { execution: Scope::Workgroup, .. });
        let all: Vec<At> = (0..self.kernel.layout.len())
            .flat_map(|block| (0..self.insts(block).len()).map(move |index| At { block, index }))
            .filter(waits)
            .collect();
        let word = |at: &At| self.kernel.origins[self.insts(at.block)[at.index]];
        let words: BTreeSet<u32> = all.iter().filter(|at| is_there(at)).map(word).collect();
        words.iter().map(|own| all.iter().filter(|at| word(at) == *own).copied().collect()).collect()
    }

    /// The line of an instruction in the function that was inlined by these calls.
    fn line_in(&self, inst: Inst, calls: &[u32]) -> Option<&'k SourceLine> {
        let own = self.kernel.words_of_calls(inst);
        match own.strip_prefix(calls)? {
            [] => self.kernel.line_of(inst),
            [call, ..] => self.kernel.line_of_word(*call),
        }
    }

    fn line(&self, block: usize, index: usize) -> Option<&'k SourceLine> {
        self.kernel.line_of(*self.insts(block).get(index)?)
    }

    /// The line of a loop that a branch enters: the first one of its instructions. Compilers give the branch no line,
    /// so that it has that of what is before the loop. `None` if the construct is no loop.
    fn loop_line(&self, branch: Inst, construct: &Construct) -> Option<&'k SourceLine> {
        construct.continuing?;
        let inside = construct.blocks.clone().flat_map(|block| self.insts(block));
        let inlined_at = &self.kernel.inlined_at;
        let inside = inside.filter(|&&inst| inlined_at[inst] == inlined_at[branch]);
        let (from, to) = (self.kernel.origins[branch], inside.map(|&inst| self.kernel.origins[inst]).max()?);
        (0 < from && from < to).then(|| self.kernel.lines.range(from + 1..=to).next())?.map(|(_, line)| line)
    }

    /// The index at which a line begins of which an instruction is the last: instructions of a function that is inlined
    /// in another place are of another statement.
    fn statement(&self, block: usize, index: usize, line: Option<&SourceLine>) -> usize {
        let Some(line) = line else { return index };
        let inlined_at = |index: usize| self.kernel.inlined_at[self.insts(block)[index]];
        let is_of_it = |&before: &usize| {
            let other = self.line(block, before);
            inlined_at(before) == inlined_at(index)
                && other.is_none_or(|other| (&other.file, other.line) == (&line.file, line.line))
        };
        let before = (0..index).rev().take_while(is_of_it).count();
        index - before
    }
}
