//! Loops of few trips are written out: the counter becomes constants, and what it indexes can become values.
//!
//! `trips` finds out how often a loop goes round, `escapes` which of its values are used behind it, `copy` writes the
//! trips one after another. Inner loops come first; a loop around them is looked at again in the next round. How much a
//! kernel may grow in all is bounded.

mod copy;
mod escapes;
mod trip_count;

use cranelift_entity::{EntitySet, SecondaryMap};

use super::cfg;
use crate::analysis::{Dominators, Loop, Loops, Predecessors, predecessors};
use crate::ir::{Block, Inst, InstData, Kernel, Place, Value, ValueDef, VariableSpace};
use copy::Copier;
use escapes::Escapes;
use trip_count::{Steps, Trips};

/// Instructions that a loop may become.
const BUDGET: usize = 512;

/// Instructions that a loop may become whose counter indexes a private variable, so that its words become values, or that has
/// barriers in it: subgroups take turns once for each, and what they do in between often depends on the counter.
const INDEXED_BUDGET: usize = 2048;

/// Barriers that a loop may become: machine code of a kernel with hundreds of them takes seconds.
const BARRIERS: usize = 32;

/// Instructions that all loops together may become, if the kernel has not more than that to begin with.
const GROWTH: usize = 8192;

/// Kernels of more instructions stay as they are: written out, they would be too large for machine code.
const LARGE: usize = 1 << 15;

/// Nests that are deeper are not looked at.
const MAX_LOOP_DEPTH: usize = 64;

/// Each round unrolls the innermost loops.
const ROUNDS: usize = 8;

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let size = kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum::<usize>();
    if size > LARGE {
        return;
    }
    let mut growth = GROWTH.max(size);
    let mut steps = Steps::for_kernel(size);
    for _ in 0..ROUNDS {
        if !round(kernel, &mut growth, &mut steps) {
            return;
        }
    }
}

/// Unrolls loops that have none inside them that can be. Says whether there were any.
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

fn barriers(kernel: &Kernel, found: &Loop) -> usize {
    let insts = found.blocks.iter().flat_map(|&block| &kernel.blocks[block].insts);
    insts.filter(|&&inst| matches!(kernel.insts[inst], InstData::Barrier { .. })).count()
}

/// What is known about the loops of a kernel.
struct Nest {
    dominators: Dominators,
    loops: Loops,
    predecessors: Predecessors,
    /// The block of every instruction.
    homes: SecondaryMap<Inst, Option<Block>>,
}

/// A loop that will be written out.
struct Plan {
    /// Its number.
    number: usize,
    /// The block that control comes from.
    before: Block,
    trips: Trips,
    /// Its values that are used behind it, each with the block behind it that they come through.
    escaping: Vec<(Value, Block)>,
}

impl Nest {
    fn new(kernel: &Kernel, dominators: Dominators, loops: Loops) -> Self {
        let mut homes = SecondaryMap::new();
        for &block in &kernel.layout {
            kernel.blocks[block].insts.iter().for_each(|&inst| homes[inst] = Some(block));
        }
        Self { dominators, loops, predecessors: predecessors(kernel), homes }
    }

    /// The block that defines a value.
    fn home(&self, kernel: &Kernel, value: Value) -> Option<Block> {
        match kernel.values[value] {
            ValueDef::Param { block, .. } => Some(block),
            ValueDef::Result { inst, .. } => self.homes[inst],
        }
    }

    /// Loops to unroll now: none inside another, none that control enters from another.
    fn plans(&self, kernel: &Kernel, growth: &mut usize, steps: &mut Steps) -> Vec<Plan> {
        let mut plans: Vec<Plan> = Vec::new();
        let mut busy = vec![false; self.loops.all.len()];
        let mut exits: EntitySet<Block> = EntitySet::new();
        let mut headers: EntitySet<Block> = EntitySet::new();
        let mut escapes = None;
        for number in (0..self.loops.all.len()).rev() {
            let found = &self.loops.all[number];
            let leads_to: Vec<Block> = self.loops.exits(kernel, number);
            let apart = !exits.contains(found.header) && leads_to.iter().all(|&block| !headers.contains(block));
            if !busy[number]
                && apart
                && self.stays_inside(kernel, found, &leads_to)
                && let Some((before, trips, size)) = self.candidate(kernel, number, steps, *growth)
            {
                let escapes = escapes.get_or_insert_with(|| Escapes::new(kernel, self));
                if let Some(escaping) = escapes.of_loop(kernel, self, number, &leads_to) {
                    *growth -= size;
                    headers.insert(found.header);
                    exits.extend(leads_to);
                    busy[number] = true;
                    plans.push(Plan { number, before, trips, escaping });
                }
            }
            if let Some(parent) = found.parent {
                busy[parent] |= busy[number];
            }
        }
        plans
    }

    /// Whether what subgroups do together in a loop stays in the loop around that, whose trips decide who does it: a way out that is known to
    /// be taken, as a return, leads away from it, and what stands before that with it.
    fn stays_inside(&self, kernel: &Kernel, found: &Loop, leads_to: &[Block]) -> bool {
        let Some(parent) = found.parent.map(|number| &self.loops.all[number]) else { return true };
        let mut insts = found.blocks.iter().flat_map(|&block| &kernel.blocks[block].insts);
        leads_to.iter().all(|to| parent.blocks.contains(to))
            || !insts.any(|&inst| matches!(kernel.insts[inst], InstData::Subgroup { .. }))
    }

    /// The block before a loop, its trips and its size afterwards, if it is one to unroll.
    fn candidate(
        &self,
        kernel: &Kernel,
        number: usize,
        steps: &mut Steps,
        growth: usize,
    ) -> Option<(Block, Trips, usize)> {
        let found = &self.loops.all[number];
        let [latch] = found.latches[..] else { return None };
        let mut size = 0;
        for &block in &found.blocks {
            size += kernel.blocks[block].insts.len();
            if size > INDEXED_BUDGET {
                return None;
            }
        }
        let mut entries = self.predecessors[found.header].iter().filter(|&&block| block != latch);
        let (&before, None) = (entries.next()?, entries.next()) else { return None };
        let to_header = |block: Block| {
            let targets = cfg::terminator(kernel, block).map(|last| kernel.insts[last].targets());
            targets.map_or(0, |targets| targets.iter().filter(|call| call.block == found.header).count())
        };
        if to_header(before) != 1 || to_header(latch) != 1 {
            return None;
        }
        let trips = trip_count::count(kernel, self, number, before, INDEXED_BUDGET / size, steps)?;
        let size = size * trips.times.max(1);
        let barriers = barriers(kernel, found) * trips.times;
        let fits = barriers <= BARRIERS
            && (size <= BUDGET || size <= INDEXED_BUDGET && (barriers > 0 || self.indexes_private(kernel, found)));
        (fits && size <= growth).then_some((before, trips, size))
    }

    /// Whether a private variable is accessed at an offset that changes from trip to trip with constant parts only.
    fn indexes_private(&self, kernel: &Kernel, found: &Loop) -> bool {
        let mut counted: EntitySet<Value> = EntitySet::new();
        counted.extend(kernel.blocks[found.header].params.iter().copied());
        for &inst in found.blocks.iter().flat_map(|&block| &kernel.blocks[block].insts) {
            match &kernel.insts[inst] {
                InstData::Load { place: Place::Variable { variable, offset }, .. }
                | InstData::Store { place: Place::Variable { variable, offset }, .. }
                    if kernel.variables[*variable].space == VariableSpace::Private && counted.contains(*offset) =>
                {
                    return true;
                }
                data @ (InstData::Pure { .. } | InstData::Element { .. }) => {
                    let mut is_counted = false;
                    data.for_each_use(|value| is_counted |= counted.contains(value));
                    if let Some(result) = kernel.results[inst].filter(|_| is_counted) {
                        counted.insert(result);
                    }
                }
                _ => {}
            }
        }
        false
    }
}
