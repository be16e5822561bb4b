//! Loop scalarization: runs a divergent loop with indirect loads for one lane after another.
//!
//! In such a loop each lane loads indices and then words at these indices, as for a row of a sparse matrix. All lanes
//! wait for the one with the most iterations, and each iteration costs a gather even if few lanes are active. If their
//! iteration counts differ, it is faster to run a copy of the loop for one lane at a time: its values are uniform, and
//! its loads are scalar loads, which an out-of-order processor overlaps.
//!
//! The choice is made at run time, before the first iteration, when all trip counts are known: the loop must count up
//! to a limit and have no other exit. Values are computed by the same operations in the same order, so results are
//! bit-exact. Loops with stores, subgroup operations or volatile accesses are not scalarized, nor are loops without an
//! indirect load: their loads are contiguous, or `widen_loop_loads` handles them.
//!
//! The copy must be cheap to pay off: it has neither bounds checks nor a stop-flag poll. So it counts up to the least
//! of the lane's own limit, the lengths of the buffers that it walks, and a number of iterations that needs no
//! poll. If that would cut off an iteration, the original loop runs.
//!
//! Measured on a matrix of a million rows with 1 to 31 entries: a vector iteration takes as long as 18 scalar ones, and
//! the overhead of a lane is 8 scalar iterations, since the exit branch of its loop is mispredicted. Scalarizing only
//! the last active lanes gained nothing, whatever their number: that has both costs, mispredicted branches and
//! half-empty vectors.

mod rewrite;

use cranelift_entity::EntitySet;
use foldhash::HashMap;
use smallvec::SmallVec;

use crate::analysis::{Induction, Loop, Shape, Uniformity, predecessors};
use crate::ir::{Access, Block, BlockCall, Inst, InstData, Kernel, Op, Place, Type, Value, Width};

/// Loops of a kernel that are scalarized, at most, and instructions of one.
const MAX_LOOPS: usize = 4;
const MAX_INSTRUCTIONS: usize = 32;

/// Iterations of a lane without a stop-flag poll, at most.
pub(in crate::vectorize) const MAX_ITERATIONS: u32 = 4096;

/// Cost of a vector iteration, in scalar iterations: for each indirect load, and for the rest.
const INDIRECT_LOAD_COST: u32 = 12;
const ITERATION_COST: u32 = 6;

/// Overhead of a lane, in scalar iterations.
const LANE_OVERHEAD: u32 = 8;

/// Facts about the scalar copies that later passes use.
#[derive(Debug, Default)]
pub(in crate::vectorize) struct ScalarizedLoops {
    /// Loads in copies, each with an exclusive upper bound of its index that is at most the buffer's length in words.
    pub(in crate::vectorize) below: HashMap<Inst, Value>,
    /// Headers of copies: these loops have at most [`MAX_ITERATIONS`] iterations.
    pub(in crate::vectorize) headers: EntitySet<Block>,
    /// Headers of loops that have a copy.
    done: EntitySet<Block>,
}

/// A loop to scalarize.
#[derive(Debug)]
struct Plan {
    /// The preheader, the header, the only other block, and the exit edge.
    before: Block,
    header: Block,
    body: Block,
    exit: BlockCall,
    /// The counter, as an index into the header's parameters, and its limit.
    counter: usize,
    limit: Value,
    /// Initial arguments of the header.
    first: SmallVec<[Value; 4]>,
    /// Loads indexed by the counter, with their loop-invariant buffers.
    walks: SmallVec<[(Inst, Value); 4]>,
    /// Varying values from outside that the loop uses.
    varying: SmallVec<[Value; 4]>,
    /// Values of the header that are live out of the loop.
    live_outs: SmallVec<[Value; 4]>,
    /// Cost of a vector iteration.
    weight: u32,
}

impl ScalarizedLoops {
    /// Scalarizes the next suitable loop; `uniformity` is that of the kernel. Returns whether there was one.
    pub(in crate::vectorize) fn scalarize(&mut self, kernel: &mut Kernel, uniformity: &Uniformity) -> bool {
        let mut loops = uniformity.loops.all.iter().filter(|found| !self.done.contains(found.header));
        let plan = loops.find_map(|found| match found.blocks[..] {
            [header, body] if found.latches[..] == [body] && uniformity.is_divergent(header) => {
                plan(kernel, uniformity, found, body)
            }
            _ => None,
        });
        let Some(plan) = plan.filter(|_| self.headers.iter().count() < MAX_LOOPS) else { return false };
        self.done.insert(plan.header);
        rewrite::Rewrite::new(kernel, &plan).apply(self);
        true
    }
}

fn plan(kernel: &Kernel, uniformity: &Uniformity, found: &Loop, body: Block) -> Option<Plan> {
    let header = found.header;
    let InstData::Branch { condition, then, otherwise: exit } = kernel.terminator(header)? else { return None };
    let InstData::Jump { .. } = kernel.terminator(body)? else { return None };
    if then.block != body || !kernel.blocks[body].params.is_empty() || found.blocks.contains(&exit.block) {
        return None;
    }
    let inside = |value: Value| uniformity.defining_block(value).is_some_and(|home| found.blocks.contains(&home));
    let InstData::Pure { op: Op::ULt, args } = kernel.definition(*condition)? else { return None };
    let (counter, limit) = (args[0], args[1]);
    let inductions = Induction::all(kernel, header, body);
    let place = inductions.iter().find(|induction| induction.param == counter && induction.step == 1)?.index;
    if inside(limit) {
        return None;
    }
    let Loads { walks, indirect_loads } = loads(kernel, uniformity, found, counter)?;
    if walks.is_empty() || indirect_loads == 0 {
        return None;
    }
    // The following steps visit the whole kernel, for each of any number of loops.
    kernel.work.visit(2 * kernel.size());
    let before = *predecessors(kernel)[header].iter().find(|&&from| from != body)?;
    let InstData::Jump { to: enter } = kernel.terminator(before)? else { return None };
    let is_uniform = |value: Value| uniformity.shape_in(value, header) == Shape::Uniform;
    let mut varying: SmallVec<[Value; 4]> = SmallVec::new();
    let mut note = |value: Value| {
        if !inside(value) && !is_uniform(value) && !varying.contains(&value) {
            varying.push(value);
        }
    };
    enter.args.iter().for_each(|&value| note(value));
    for &inst in found.blocks.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let data = &kernel.insts[inst];
        if !data.is_terminator() {
            data.for_each_use(&mut note);
        } else if let InstData::Jump { to } = data {
            to.args.iter().for_each(|&value| note(value));
        }
    }
    let can_shuffle = |value: &Value| matches!(kernel.ty(*value), Type::I32 | Type::F32);
    let live_outs = live_outs(kernel, found, &inside);
    let can_be_live_out =
        |value: &Value| kernel.ty(*value) != Type::Buffer && uniformity.defining_block(*value) == Some(header);
    let fits = varying.iter().all(can_shuffle) && live_outs.iter().all(can_be_live_out);
    fits.then(|| Plan {
        before,
        header,
        body,
        exit: exit.clone(),
        counter: place,
        limit,
        first: enter.args.clone(),
        walks,
        varying,
        live_outs,
        weight: ITERATION_COST + INDIRECT_LOAD_COST * indirect_loads,
    })
}

/// The loads of a loop that may be scalarized.
struct Loads {
    walks: SmallVec<[(Inst, Value); 4]>,
    /// Number of indirect loads: their index depends on a loaded word.
    indirect_loads: u32,
}

/// Collects the loads; `None` if the loop has subgroup operations, or effects that others can observe.
fn loads(kernel: &Kernel, uniformity: &Uniformity, found: &Loop, counter: Value) -> Option<Loads> {
    let mut loads = Loads { walks: SmallVec::new(), indirect_loads: 0 };
    let mut loaded: EntitySet<Value> = EntitySet::new();
    let mut size = 0;
    for &inst in found.blocks.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let data = &kernel.insts[inst];
        let mut depends = false;
        data.for_each_use(|value| depends |= loaded.contains(value));
        size += 1;
        match *data {
            InstData::Const { .. } | InstData::Pure { .. } | InstData::Select { .. } | InstData::Element { .. } => {}
            InstData::Load { width: Width::Word, place: Place::Buffer { buffer, offset, .. }, access, .. }
                if access == Access::default() && uniformity.shape_in(buffer, found.header) == Shape::Uniform =>
            {
                loads.indirect_loads += u32::from(depends);
                let is_outside = uniformity.defining_block(buffer).is_none_or(|home| !found.blocks.contains(&home));
                if is_outside && is_word(kernel, offset, counter) {
                    loads.walks.push((inst, buffer));
                }
                depends = true;
            }
            _ if data.is_terminator() => {}
            _ => return None,
        }
        if let Some(result) = kernel.results[inst].filter(|_| depends) {
            loaded.insert(result);
        }
    }
    (size <= MAX_INSTRUCTIONS).then_some(loads)
}

/// Whether an offset is that of the word with this index.
fn is_word(kernel: &Kernel, offset: Value, number: Value) -> bool {
    matches!(kernel.definition(offset), Some(&InstData::Element { base, index, stride: 4 })
        if index == number && kernel.constant(base) == Some(0))
}

/// Values of a loop that other blocks use.
fn live_outs(kernel: &Kernel, found: &Loop, inside: &impl Fn(Value) -> bool) -> SmallVec<[Value; 4]> {
    let mut live_outs: SmallVec<[Value; 4]> = SmallVec::new();
    let mut note = |value: Value| {
        if inside(value) && !live_outs.contains(&value) {
            live_outs.push(value);
        }
    };
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            if !found.blocks.contains(&block) {
                kernel.insts[inst].for_each_use(&mut note);
            } else if block == found.header
                && let InstData::Branch { otherwise, .. } = &kernel.insts[inst]
            {
                otherwise.args.iter().for_each(|&value| note(value));
            }
        }
    }
    live_outs
}
