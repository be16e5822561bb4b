//! Full unrolling of loops with small trip counts: the counter becomes constants, and array words that it indexes can
//! become SSA values.
//!
//! The trip count is that of `analysis/trip_count`, `escapes` finds the live-out values, and `copy` emits one copy of
//! the body per iteration. Inner loops are unrolled first; their parent is a candidate in the next round. Total
//! growth is limited.

mod copy;
mod escapes;

use cranelift_entity::{EntitySet, SecondaryMap};

use super::cfg;
use crate::analysis::{Dominators, Loop, LoopExit, Loops, Predecessors, Steps, TripCounts, predecessors};
use crate::ir::{Block, Inst, InstData, Kernel, Place, Value, ValueDef, VariableSpace};
use copy::Copier;
use escapes::Escapes;

/// Maximum size of an unrolled loop, in instructions.
const MAX_SIZE: usize = 512;

/// Maximum size of an unrolled loop whose counter indexes a private variable, so that its words become values, or that
/// contains barriers: each barrier costs a loop over the subgroups, and code between barriers often depends on the
/// counter.
const MAX_INDEXED_SIZE: usize = 2048;

/// Maximum number of barriers in an unrolled loop: machine code of a kernel with hundreds takes seconds.
const MAX_BARRIERS: usize = 32;

/// Maximum size of all unrolled loops together, in instructions, unless the kernel is larger to begin with.
const MAX_GROWTH: usize = 8192;

/// Maximum size of a kernel, in instructions: larger ones, unrolled, would be too large for machine code.
const MAX_KERNEL_SIZE: usize = 1 << 15;

/// Maximum loop depth; the pass leaves kernels with deeper nests as they are.
const MAX_LOOP_DEPTH: usize = 64;

/// Maximum number of rounds; each unrolls innermost loops.
const MAX_ROUNDS: usize = 8;

/// Operations that are evaluated for the trip counts of all loops: a number for any kernel, and more for large ones.
const MIN_STEPS: usize = 1 << 16;
const STEPS_PER_INSTRUCTION: usize = 4;

/// The exit that ends a loop after a known number of iterations.
#[derive(Clone, Copy, Debug)]
struct CountedExit {
    exit: LoopExit,
    /// The number of back edges taken before this exit is; fewer if another exit is taken first.
    back_edges_taken: usize,
}

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let size = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum::<usize>();
    if size > MAX_KERNEL_SIZE {
        return;
    }
    let mut growth = MAX_GROWTH.max(size);
    let mut steps = Steps::new(MIN_STEPS + STEPS_PER_INSTRUCTION * size);
    for _ in 0..MAX_ROUNDS {
        if !round(kernel, &mut growth, &mut steps) {
            return;
        }
    }
}

/// Unrolls loops that contain no loop to unroll. Returns whether there were any.
fn round(kernel: &mut Kernel, growth: &mut usize, steps: &mut Steps) -> bool {
    let dominators = Dominators::new(kernel);
    let loops = Loops::new(kernel, &dominators);
    if loops.all.is_empty() || kernel.layout.iter().any(|&block| loops.depth(block) > MAX_LOOP_DEPTH) {
        return false;
    }
    let nest = Nest::new(kernel, dominators, loops);
    let plans = nest.plans(kernel, growth, steps);
    if plans.is_empty() {
        return false;
    }
    let mut copier = Copier::new(kernel);
    plans.iter().for_each(|plan| copier.unroll(&nest, plan));
    copier.finish();
    cfg::run(kernel);
    true
}

fn count_barriers(kernel: &Kernel, found: &Loop) -> usize {
    let insts = found.blocks.iter().flat_map(|&block| &kernel.blocks[block].insts);
    insts.filter(|&&inst| matches!(kernel.insts[inst], InstData::Barrier { .. })).count()
}

/// The loops of a kernel.
struct Nest {
    dominators: Dominators,
    loops: Loops,
    predecessors: Predecessors,
    /// The block of every instruction.
    blocks: SecondaryMap<Inst, Option<Block>>,
}

/// A loop to unroll.
struct UnrollPlan {
    /// Its number.
    number: usize,
    /// The block with the entry edge.
    entering: Block,
    trip_count: CountedExit,
    /// Its live-out values, each with the exit block that it passes through.
    escaping: Vec<(Value, Block)>,
}

impl Nest {
    fn new(kernel: &Kernel, dominators: Dominators, loops: Loops) -> Self {
        let mut blocks = SecondaryMap::new();
        for &block in &kernel.layout {
            kernel.blocks[block].insts.iter().for_each(|&inst| blocks[inst] = Some(block));
        }
        Self { dominators, loops, predecessors: predecessors(kernel), blocks }
    }

    /// The block that defines a value.
    fn defining_block(&self, kernel: &Kernel, value: Value) -> Option<Block> {
        match kernel.values[value] {
            ValueDef::Param { block, .. } => Some(block),
            ValueDef::Result { inst, .. } => self.blocks[inst],
        }
    }

    /// Loops to unroll in this round: none contains another, and none is entered from the exit of another.
    fn plans(&self, kernel: &Kernel, growth: &mut usize, steps: &mut Steps) -> Vec<UnrollPlan> {
        let mut plans: Vec<UnrollPlan> = Vec::new();
        let mut busy = vec![false; self.loops.all.len()];
        let mut exits: EntitySet<Block> = EntitySet::new();
        let mut headers: EntitySet<Block> = EntitySet::new();
        let mut escapes = None;
        for number in (0..self.loops.all.len()).rev() {
            let found = &self.loops.all[number];
            let exit_blocks: Vec<Block> = self.loops.exits(kernel, number);
            let independent =
                !exits.contains(found.header) && exit_blocks.iter().all(|&block| !headers.contains(block));
            if !busy[number]
                && independent
                && self.stays_inside(kernel, found, &exit_blocks)
                && let Some((entering, trip_count, size)) = self.candidate(kernel, number, steps, *growth)
            {
                let escapes = escapes.get_or_insert_with(|| Escapes::new(kernel, self));
                if let Some(escaping) = escapes.of_loop(kernel, self, number, &exit_blocks) {
                    *growth -= size;
                    headers.insert(found.header);
                    exits.extend(exit_blocks);
                    busy[number] = true;
                    plans.push(UnrollPlan { number, entering, trip_count, escaping });
                }
            }
            if let Some(parent) = found.parent {
                busy[parent] |= busy[number];
            }
        }
        plans
    }

    /// Whether subgroup operations of a loop stay in the parent loop, whose iterations decide which invocations execute
    /// them together. An exit to a block outside the parent, e.g. a return, becomes unconditional in the last copy,
    /// which takes that copy out of the parent.
    fn stays_inside(&self, kernel: &Kernel, found: &Loop, exit_blocks: &[Block]) -> bool {
        let Some(parent) = found.parent.map(|number| &self.loops.all[number]) else { return true };
        let mut insts = found.blocks.iter().flat_map(|&block| &kernel.blocks[block].insts);
        exit_blocks.iter().all(|to| parent.blocks.contains(to))
            || !insts.any(|&inst| matches!(kernel.insts[inst], InstData::Subgroup { .. }))
    }

    /// The entering block of a loop, its trip count and its unrolled size, if it is to be unrolled.
    fn candidate(
        &self,
        kernel: &Kernel,
        number: usize,
        steps: &mut Steps,
        growth: usize,
    ) -> Option<(Block, CountedExit, usize)> {
        let found = &self.loops.all[number];
        let [latch] = found.latches[..] else { return None };
        let mut size = 0;
        for &block in &found.blocks {
            size += kernel.blocks[block].insts.len();
            if size > MAX_INDEXED_SIZE {
                return None;
            }
        }
        let mut entries = self.predecessors[found.header].iter().filter(|&&block| block != latch);
        let (&entering, None) = (entries.next()?, entries.next()) else { return None };
        let to_header = |block: Block| {
            let targets = kernel.last_inst(block).map(|last| kernel.insts[last].targets());
            targets.map_or(0, |targets| targets.iter().filter(|call| call.block == found.header).count())
        };
        if to_header(entering) != 1 || to_header(latch) != 1 {
            return None;
        }
        let trip_count = self.trip_count(kernel, number, MAX_INDEXED_SIZE / size, steps)?;
        let size = size * trip_count.back_edges_taken.max(1);
        let barriers = count_barriers(kernel, found) * trip_count.back_edges_taken;
        let fits = barriers <= MAX_BARRIERS
            && (size <= MAX_SIZE || size <= MAX_INDEXED_SIZE && (barriers > 0 || self.indexes_private(kernel, found)));
        (fits && size <= growth).then_some((entering, trip_count, size))
    }

    /// The trip count of a loop, up to `max` back edges, from the first exit that tells.
    fn trip_count(&self, kernel: &Kernel, number: usize, max: usize, steps: &mut Steps) -> Option<CountedExit> {
        let Self { dominators, loops, predecessors, .. } = self;
        let mut trip_counts = TripCounts { kernel, loops, predecessors, push: &[], steps };
        loops.all[number].blocks.iter().find_map(|&block| {
            let exit = LoopExit::new(kernel, loops, dominators, number, block)?;
            let back_edges_taken = trip_counts.back_edges_taken(number, &exit, max)?;
            Some(CountedExit { exit, back_edges_taken })
        })
    }

    /// Whether a private variable is accessed at an offset that depends on nothing but loop-carried values and
    /// constants.
    fn indexes_private(&self, kernel: &Kernel, found: &Loop) -> bool {
        let mut counter_dependent: EntitySet<Value> = EntitySet::new();
        counter_dependent.extend(kernel.blocks[found.header].params.iter().copied());
        for &inst in found.blocks.iter().flat_map(|&block| &kernel.blocks[block].insts) {
            match &kernel.insts[inst] {
                InstData::Load { place: Place::Variable { variable, offset }, .. }
                | InstData::Store { place: Place::Variable { variable, offset }, .. }
                    if kernel.variables[*variable].space == VariableSpace::Private
                        && counter_dependent.contains(*offset) =>
                {
                    return true;
                }
                data @ (InstData::Pure { .. } | InstData::Element { .. }) => {
                    let mut depends_on_counter = false;
                    data.for_each_use(|value| depends_on_counter |= counter_dependent.contains(value));
                    if let Some(result) = kernel.results[inst].filter(|_| depends_on_counter) {
                        counter_dependent.insert(result);
                    }
                }
                _ => {}
            }
        }
        false
    }
}
