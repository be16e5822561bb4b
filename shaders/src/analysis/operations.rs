//! Operations of one invocation: float operations, bytes and atomics of buffers, over loops with known trip counts.
//!
//! Counted is what the kernel has when it is passed: of a lowered kernel what machines execute, where a division is one
//! operation and a sine is a polynomial. An invocation executes one side of a branch, so the counts are bounds: the
//! least and the most of all paths, each kind of operation by itself. (A subgroup whose invocations diverge executes
//! both sides.)

use std::collections::HashMap;

use super::trip_count::{LoopExit, Steps, TripCounts};
use super::{Dominators, Loops, predecessors};
use crate::ir::{Block, InstData, Kernel, Op, Place, SourceLine};

/// Iterations of a loop that are followed, at most.
const MAX_ITERATIONS: usize = 1 << 20;

/// Operations that are evaluated to follow the loops of a kernel, at most: a tenth of a second.
const MAX_STEPS: usize = 1 << 24;

/// Counts of one invocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Additions, subtractions, products, quotients and square roots of floats and doubles; two for a fused
    /// multiply-add. No minima, comparisons, conversions or moves.
    pub flops: u64,
    /// Bytes that loads read from storage and uniform buffers.
    pub loaded: u64,
    /// Bytes that stores write to storage buffers.
    pub stored: u64,
    /// Read-modify-writes on storage buffers.
    pub atomics: u64,
    /// Accesses of images: reads, writes, samples.
    pub images: u64,
}

impl Counts {
    fn each(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            flops: f(self.flops, other.flops),
            loaded: f(self.loaded, other.loaded),
            stored: f(self.stored, other.stored),
            atomics: f(self.atomics, other.atomics),
            images: f(self.images, other.images),
        }
    }

    fn plus(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    fn times(self, factor: u64) -> Self {
        self.each(self, |count, _| count.saturating_mul(factor))
    }
}

/// The operations of one invocation of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    /// Lower bounds: the least that any path has.
    pub min: Counts,
    /// Upper bounds: the most that any path has; `None` if a loop has an unknown trip count.
    pub max: Option<Counts>,
    /// The loops whose trip count is unknown, with their source lines where those are known.
    pub unknown: Vec<Option<SourceLine>>,
}

impl Operations {
    /// Counts the operations of a kernel that runs with these push constants.
    pub fn of(kernel: &Kernel, push: &[u8]) -> Self {
        let dominators = Dominators::new(kernel);
        let loops = Loops::new(kernel, &dominators);
        let mut counter = Counter { kernel, loops: &loops, totals: vec![PathBounds::NONE; loops.all.len()] };
        let mut unknown = Vec::new();
        let (predecessors, mut steps) = (predecessors(kernel), Steps::new(MAX_STEPS));
        let steps = &mut steps;
        let mut trip_counts = TripCounts { kernel, loops: &loops, predecessors: &predecessors, push, steps };
        // Inner loops first.
        for number in (0..loops.all.len()).rev() {
            let count = TripCount::new(&mut trip_counts, &dominators, number);
            let region = counter.region(Some(number));
            counter.totals[number] = region.repeated(count);
            if count.is_none() && region.counts_something() {
                unknown.push(line(kernel, loops.all[number].header));
            }
        }
        unknown.reverse();
        let RegionPaths { ends, .. } = counter.region(None);
        let PathBounds { min, max } = ends;
        Self { min: min.unwrap_or_default(), max: max.unwrap_or(Some(Counts::default())), unknown }
    }
}

/// The source line of a block's first instruction that has one.
fn line(kernel: &Kernel, block: Block) -> Option<SourceLine> {
    kernel.blocks[block].insts.iter().find_map(|&inst| kernel.line_of(inst)).cloned()
}

/// How often a loop's back edge is taken, and whether other exits may end the loop earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TripCount {
    back_edges: u64,
    may_end_earlier: bool,
}

impl TripCount {
    /// The trip count of a loop (an index into [`Loops::all`]), if it is known.
    fn new(trip_counts: &mut TripCounts, dominators: &Dominators, number: usize) -> Option<Self> {
        let (kernel, loops) = (trip_counts.kernel, trip_counts.loops);
        let mut back_edges = None;
        let mut may_end_earlier = false;
        for &block in &loops.all[number].blocks {
            let leaves = kernel.targets(block).iter().any(|call| !loops.contains(number, call.block));
            let ends = matches!(kernel.terminator(block), Some(InstData::Return | InstData::Unreachable));
            if !leaves && !ends {
                continue;
            }
            let exit = LoopExit::new(kernel, loops, dominators, number, block);
            match exit.and_then(|exit| trip_counts.back_edges_taken(number, &exit, MAX_ITERATIONS)) {
                // The exit that is taken first ends the loop.
                Some(taken) => back_edges = Some(back_edges.map_or(taken, |min: usize| min.min(taken))),
                None => may_end_earlier = true,
            }
        }
        Some(Self { back_edges: back_edges? as u64, may_end_earlier })
    }
}

/// Bounds over the paths to a place. `None` outside: no path leads there.
#[derive(Clone, Copy, Debug)]
struct PathBounds {
    min: Option<Counts>,
    /// The inner option is `None` if a path has an unknown number of operations.
    max: Option<Option<Counts>>,
}

impl PathBounds {
    const NONE: Self = Self { min: None, max: None };
    const EMPTY: Self = Self {
        min: Some(Counts { flops: 0, loaded: 0, stored: 0, atomics: 0, images: 0 }),
        max: Some(Some(Counts { flops: 0, loaded: 0, stored: 0, atomics: 0, images: 0 })),
    };

    /// The paths of either.
    fn or(self, other: Self) -> Self {
        let both = |a: Option<Counts>, b: Option<Counts>| Some(a?.each(b?, u64::max));
        Self {
            min: match (self.min, other.min) {
                (Some(a), Some(b)) => Some(a.each(b, u64::min)),
                (a, b) => a.or(b),
            },
            max: match (self.max, other.max) {
                (Some(a), Some(b)) => Some(both(a, b)),
                (a, b) => a.or(b),
            },
        }
    }

    /// These paths, each followed by any of the others.
    fn then(self, next: Self) -> Self {
        Self {
            min: self.min.zip(next.min).map(|(a, b)| a.plus(b)),
            max: self.max.zip(next.max).map(|(a, b)| Some(a?.plus(b?))),
        }
    }
}

/// The paths through a loop's body, or through the kernel.
#[derive(Clone, Copy, Debug)]
struct RegionPaths {
    /// From the header to a back edge.
    iterations: PathBounds,
    /// From the header out of the loop.
    exits: PathBounds,
    /// From the start to a return.
    ends: PathBounds,
}

impl RegionPaths {
    /// Whether an iteration has operations that are counted.
    fn counts_something(&self) -> bool {
        self.iterations.max.is_some_and(|max| max != Some(Counts::default()))
    }

    /// The paths of all iterations together.
    fn repeated(self, count: Option<TripCount>) -> PathBounds {
        let Self { iterations, exits, .. } = self;
        let Some(TripCount { back_edges, may_end_earlier }) = count else {
            if !self.counts_something() {
                return exits;
            }
            return PathBounds { max: exits.max.map(|_| None), ..exits };
        };
        let all = |paths: Option<Counts>| paths.unwrap_or_default().times(back_edges);
        let early = if may_end_earlier { Counts::default() } else { all(iterations.min) };
        let max = iterations.max.unwrap_or(Some(Counts::default())).map(|counts| counts.times(back_edges));
        PathBounds { min: Some(early), max: Some(max) }.then(exits)
    }
}

struct Counter<'k> {
    kernel: &'k Kernel,
    loops: &'k Loops,
    /// By loop, the paths from its entry to its exits, for loops that have been counted.
    totals: Vec<PathBounds>,
}

impl Counter<'_> {
    /// The paths through a loop, whose inner loops have been counted, or through the kernel.
    fn region(&self, own: Option<usize>) -> RegionPaths {
        let Self { kernel, loops, totals } = self;
        let mut region = RegionPaths { iterations: PathBounds::NONE, exits: PathBounds::NONE, ends: PathBounds::NONE };
        let (blocks, start) = match own {
            Some(number) => (&loops.all[number].blocks, loops.all[number].header),
            None => (&kernel.layout, kernel.layout[0]),
        };
        let mut reached: HashMap<Block, PathBounds> = HashMap::from([(start, PathBounds::EMPTY)]);
        for &block in blocks {
            let innermost = loops.of(block);
            let inner = innermost.filter(|_| innermost != own);
            // An inner loop counts as one step from its header to its exits.
            if inner.is_some_and(|inner| loops.all[inner].parent != own || loops.all[inner].header != block) {
                continue;
            }
            let Some(&before) = reached.get(&block) else { continue };
            let (after, targets) = match inner {
                Some(inner) => (before.then(totals[inner]), loops.exits(kernel, inner)),
                None => {
                    let counts = counts(kernel, block);
                    let own = PathBounds { min: Some(counts), max: Some(Some(counts)) };
                    (before.then(own), kernel.targets(block).iter().map(|call| call.block).collect())
                }
            };
            let returns = |block: Block| matches!(kernel.terminator(block), Some(InstData::Return));
            let ends = match inner {
                Some(inner) => loops.all[inner].blocks.iter().any(|&block| returns(block)),
                None => returns(block),
            };
            if ends {
                let place = if own.is_some() { &mut region.exits } else { &mut region.ends };
                *place = place.or(after);
            }
            for target in targets {
                if own.is_some() && target == start {
                    region.iterations = region.iterations.or(after);
                } else if own.is_some_and(|number| !loops.contains(number, target)) {
                    region.exits = region.exits.or(after);
                } else {
                    let place = reached.entry(target).or_insert(PathBounds::NONE);
                    *place = place.or(after);
                }
            }
        }
        region
    }
}

/// The operations of a block.
fn counts(kernel: &Kernel, block: Block) -> Counts {
    let insts = kernel.blocks[block].insts.iter().map(|&inst| &kernel.insts[inst]);
    insts.fold(Counts::default(), |sum, inst| sum.plus(of_inst(inst)))
}

fn of_inst(inst: &InstData) -> Counts {
    let none = Counts::default();
    match inst {
        InstData::Pure { op, .. } => Counts { flops: flops(*op), ..none },
        InstData::Load { width, place: Place::Buffer { .. }, .. } => Counts { loaded: width.bytes().into(), ..none },
        InstData::Store { width, place: Place::Buffer { .. }, .. } => Counts { stored: width.bytes().into(), ..none },
        // On CPUs these are plain accesses.
        InstData::Atomic { op, place: Place::Buffer { .. }, .. } if op.is_load() => Counts { loaded: 4, ..none },
        InstData::Atomic { op, place: Place::Buffer { .. }, .. } if op.is_store() => Counts { stored: 4, ..none },
        InstData::Atomic { place: Place::Buffer { .. }, .. } => Counts { atomics: 1, ..none },
        InstData::Image { .. } => Counts { images: 1, ..none },
        _ => none,
    }
}

fn flops(op: Op) -> u64 {
    match op {
        Op::Fma => 2,
        Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FRem | Op::FMod | Op::Sqrt | Op::InverseSqrt => 1,
        // An operation on doubles is two here: one for each word of the result.
        Op::DAddLow | Op::DSubLow | Op::DMulLow | Op::DDivLow | Op::DSqrtLow => 1,
        _ => 0,
    }
}
