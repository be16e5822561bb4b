//! Loops in which each lane looks words up with indices that it loads, for as many trips as it has, as rows of a sparse matrix: lanes
//! wait for the longest, and each trip costs a gather, however few lanes are left. Where lanes make trips of different
//! numbers it is faster to do the lanes one after another, each with a copy of the loop whose values all lanes share: scalar loads,
//! which the processor overlaps as far as it sees.
//!
//! The loop decides before its first trip, when all its lengths are known: it counts up to a limit, and asks for nothing else. Values are computed
//! in the same order by the same operations, so results are the same to the bit. Loops that write, meet others, or look at volatile memory are left
//! alone, and so are those without a look-up: their loads are rows, or done ahead (`ahead.rs`).
//!
//! The copy is what makes it pay, so nothing is in it that need not be: it counts up to the least of the lane's own limit, the lengths of
//! what it walks over and a number of trips that needs no look at the stop flag. What that would cut short goes the loop's old way.
//!
//! Measured on a matrix of a million rows with 1 to 31 entries: a trip of 16 lanes takes as long as 18 of one, a lane's turn
//! as long as 8, since the end of its loop is a branch that nobody predicts. Doing only the last lanes one by one gained nothing,
//! whatever their number: then there are both, branches and half-empty trips.

mod rewrite;

use cranelift_entity::EntitySet;
use foldhash::HashMap;
use smallvec::SmallVec;

use crate::analysis::{Loop, Shape, Uniformity, predecessors};
use crate::ir::{Access, Block, BlockCall, Inst, InstData, Kernel, Op, Place, Type, Value, Width};

/// Loops of a kernel that get a copy, at most, and instructions of one.
const MAX_LOOPS: usize = 4;
const MAX_INSTRUCTIONS: usize = 32;

/// Trips of a lane, at most, that are done without a look at the stop flag.
pub(in crate::vectorize) const MAX_ITERATIONS: u32 = 4096;

/// What a trip of all lanes costs: so much for each look-up and for the rest, in trips of one lane.
const LOOK_UP: u32 = 12;
const REST: u32 = 6;

/// What a lane's turn costs besides its trips.
const TURN: u32 = 8;

/// What is known about the copies, by those who made them.
#[derive(Debug, Default)]
pub(in crate::vectorize) struct Serial {
    /// Loads of copies, with what their indices are below: a number of words that the buffer has.
    pub(in crate::vectorize) below: HashMap<Inst, Value>,
    /// Headers of copies: such a loop has at most [`MAX_ITERATIONS`] trips.
    pub(in crate::vectorize) headers: EntitySet<Block>,
    /// Loops that have a copy.
    done: EntitySet<Block>,
}

/// A loop to copy.
#[derive(Debug)]
struct Plan {
    /// Where control comes from, its header, its only other block, and where it goes on.
    before: Block,
    header: Block,
    body: Block,
    exit: BlockCall,
    /// Its counter, by place among the header's parameters, and the limit.
    counter: usize,
    limit: Value,
    /// What the header gets first.
    first: SmallVec<[Value; 4]>,
    /// Loads at the counter, with their buffers, which are known before the loop.
    walks: SmallVec<[(Inst, Value); 4]>,
    /// What lanes have of their own that the loop uses.
    own: SmallVec<[Value; 4]>,
    /// Values of the header that are used behind the loop.
    leaving: SmallVec<[Value; 4]>,
    /// What a trip of all lanes costs.
    weight: u32,
}

impl Serial {
    /// Gives the next loop a copy where that is worth it; `uniformity` is the kernel's. Whether there was one.
    pub(in crate::vectorize) fn serialise(&mut self, kernel: &mut Kernel, uniformity: &Uniformity) -> bool {
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
    let InstData::Jump { to: again } = kernel.terminator(body)? else { return None };
    if then.block != body || !kernel.blocks[body].params.is_empty() || found.blocks.contains(&exit.block) {
        return None;
    }
    let inside = |value: Value| uniformity.defining_block(value).is_some_and(|home| found.blocks.contains(&home));
    let InstData::Pure { op: Op::ULt, args } = kernel.definition(*condition)? else { return None };
    let (counter, limit) = (args[0], args[1]);
    let place = kernel.blocks[header].params.iter().position(|&param| param == counter)?;
    let InstData::Pure { op: Op::IAdd, args } = kernel.definition(again.args[place])? else { return None };
    let steps = args[0] == counter && kernel.constant(args[1]) == Some(1);
    if !steps || inside(limit) {
        return None;
    }
    let Loads { walks, look_ups } = loads(kernel, uniformity, found, counter)?;
    if walks.is_empty() || look_ups == 0 {
        return None;
    }
    // What follows looks at the whole kernel, and there may be as many loops as it likes.
    kernel.work.visit(2 * kernel.size());
    let before = *predecessors(kernel)[header].iter().find(|&&from| from != body)?;
    let InstData::Jump { to: enter } = kernel.terminator(before)? else { return None };
    let shared = |value: Value| uniformity.shape_in(value, header) == Shape::Uniform;
    let mut own: SmallVec<[Value; 4]> = SmallVec::new();
    let mut note = |value: Value| {
        if !inside(value) && !shared(value) && !own.contains(&value) {
            own.push(value);
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
    let leaving = leaving(kernel, found, &inside);
    let can_leave =
        |value: &Value| kernel.ty(*value) != Type::Buffer && uniformity.defining_block(*value) == Some(header);
    let fits = own.iter().all(can_shuffle) && leaving.iter().all(can_leave);
    fits.then(|| Plan {
        before,
        header,
        body,
        exit: exit.clone(),
        counter: place,
        limit,
        first: enter.args.clone(),
        walks,
        own,
        leaving,
        weight: REST + LOOK_UP * look_ups,
    })
}

/// The loads of a loop.
struct Loads {
    walks: SmallVec<[(Inst, Value); 4]>,
    /// How many have an index that was loaded.
    look_ups: u32,
}

/// Finds them, if the loop does nothing that only lanes together can do, or that others see.
fn loads(kernel: &Kernel, uniformity: &Uniformity, found: &Loop, counter: Value) -> Option<Loads> {
    let mut loads = Loads { walks: SmallVec::new(), look_ups: 0 };
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
                loads.look_ups += u32::from(depends);
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

/// Whether an offset is that of a word with such a number.
fn is_word(kernel: &Kernel, offset: Value, number: Value) -> bool {
    matches!(kernel.definition(offset), Some(&InstData::Element { base, index, stride: 4 })
        if index == number && kernel.constant(base) == Some(0))
}

/// Values of a loop that other blocks use.
fn leaving(kernel: &Kernel, found: &Loop, inside: &impl Fn(Value) -> bool) -> SmallVec<[Value; 4]> {
    let mut leaving: SmallVec<[Value; 4]> = SmallVec::new();
    let mut note = |value: Value| {
        if inside(value) && !leaving.contains(&value) {
            leaving.push(value);
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
    leaving
}
