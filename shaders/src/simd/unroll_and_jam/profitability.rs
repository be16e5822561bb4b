//! Whether two subgroups at once are faster than one after the other: an estimate.
//!
//! A processor runs ahead as far as its window reaches. In a short loop that leaves it with one chain of results from trip to trip,
//! in a long body with one chain from the first load to the last store; two subgroups are two chains. Where the chain
//! takes no longer than the instructions beside it keep the units busy, a pair gains nothing, and without registers
//! for both it loses.

use cranelift_entity::SecondaryMap;

use super::Turns;
use crate::simd::cost::{busy, latency};
use crate::simd::{Block, InstData, Kernel, Type, Value};

/// Registers of vectors and of masks that two subgroups may fill.
const VECTORS: u32 = 30;
const MASKS: u32 = 6;

/// General registers: those that wait for their turn in memory cost little, but not many of them do.
const GENERALS: u32 = 20;

/// Instructions of a body that is paired, at most and, without loops, at least: what is shorter overlaps by itself.
const MAX_LENGTH: usize = 600;
const MIN_LENGTH: usize = 80;

/// Vectors that a loop carries, at most: each way from one to another is looked at.
const CARRIED: usize = 12;

/// Whether the body waits for its own results rather than for the machine's units.
pub(super) fn is_latency_bound(kernel: &Kernel, turns: &Turns) -> bool {
    let size = turns.body.iter().map(|&block| kernel.blocks[block].insts.len()).sum::<usize>();
    if size > MAX_LENGTH {
        return false;
    }
    let spans = spans(kernel, turns);
    if spans.is_empty() {
        let chain = Depths::of(kernel, &turns.body, None).longest;
        return size >= MIN_LENGTH && waits(chain, busy(kernel, &turns.body));
    }
    let inner = |&&(first, last): &&(usize, usize)| !spans.iter().any(|&(at, _)| at > first && at <= last);
    spans.iter().filter(inner).all(|&(first, last)| {
        let blocks = &turns.body[first..=last];
        recurrence(kernel, blocks).is_some_and(|chain| waits(chain, busy(kernel, blocks)))
    })
}

/// A quarter more than the units need, in cycles: less is not worth the copies.
fn waits(chain: u32, busy: u32) -> bool {
    chain * 4 >= busy * 5
}

/// Loops inside the body: the places of their first and last blocks.
fn spans(kernel: &Kernel, turns: &Turns) -> Vec<(usize, usize)> {
    let mut places: SecondaryMap<Block, usize> = SecondaryMap::with_default(usize::MAX);
    turns.body.iter().enumerate().for_each(|(place, &block)| places[block] = place);
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (place, &block) in turns.body.iter().enumerate() {
        for call in kernel.targets(block) {
            let first = places[call.block];
            if first <= place && call.block != turns.header {
                spans.push((first, place));
            }
        }
    }
    spans
}

/// Cycles of the longest chain from trip to trip through one vector, or there and back through two.
fn recurrence(kernel: &Kernel, blocks: &[Block]) -> Option<u32> {
    let header = blocks[0];
    let params = &kernel.blocks[header].params;
    let carried: Vec<usize> = (0..params.len()).filter(|&place| kernel.ty(params[place]) == Type::V32).collect();
    if carried.len() > CARRIED {
        return None;
    }
    let last = kernel.blocks[*blocks.last()?].insts.last()?;
    let back = kernel.insts[*last].targets().into_iter().find(|call| call.block == header)?.args.clone();
    let ways: Vec<Vec<Option<u32>>> = carried
        .iter()
        .map(|&from| {
            let depths = Depths::of(kernel, blocks, Some(params[from])).all;
            carried.iter().map(|&to| depths[back[to]]).collect()
        })
        .collect();
    let mut longest = 0;
    for (from, there) in ways.iter().enumerate() {
        for (back, there) in ways.iter().zip(there) {
            if let (Some(there), Some(back)) = (there, back[from]) {
                longest = longest.max((there + back) / 2);
            }
        }
    }
    Some(longest)
}

/// When results are there, counted from a value, or from whatever a body begins with.
struct Depths {
    all: SecondaryMap<Value, Option<u32>>,
    longest: u32,
}

impl Depths {
    fn of(kernel: &Kernel, blocks: &[Block], from: Option<Value>) -> Self {
        let mut all = SecondaryMap::with_default(if from.is_some() { None } else { Some(0) });
        if let Some(from) = from {
            all[from] = Some(0);
        }
        let mut longest = 0;
        for &inst in blocks.iter().flat_map(|&block| &kernel.blocks[block].insts) {
            let data = &kernel.insts[inst];
            let mut begins = None;
            data.for_each_use(|value| begins = begins.max(all[value]));
            if let Some(begins) = begins {
                let ends = begins + latency(kernel, inst);
                longest = longest.max(ends);
                kernel.results[inst].iter().for_each(|&result| all[result] = Some(ends));
            }
            for call in data.targets().into_iter().filter(|call| call.block != blocks[0]) {
                for (&arg, &param) in call.args.iter().zip(&kernel.blocks[call.block].params) {
                    all[param] = all[param].max(all[arg]);
                }
            }
        }
        Self { all, longest }
    }
}

/// Whether the registers suffice for both, where it counts: in the loops, if there are some.
pub(super) fn fits(kernel: &Kernel, turns: &Turns, differs: &SecondaryMap<Value, bool>) -> bool {
    let spans = spans(kernel, turns);
    let bounds = Bounds::of(kernel, turns, &spans);
    // What begins and ends to live at each place: vectors, masks, scalars.
    let mut changes = vec![[0i32; 3]; bounds.places + 1];
    for (value, &(first, last)) in bounds.lives.iter() {
        let kind = match kernel.ty(value) {
            Type::V32 => 0,
            Type::Mask => 1,
            Type::S1 | Type::S32 | Type::S64 => 2,
        };
        let constant = matches!(
            kernel.definition(value),
            Some(InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. })
        );
        if last > first && !constant {
            let weight = if differs[value] { 2 } else { 1 };
            changes[first][kind] += weight;
            changes[last][kind] -= weight;
        }
    }
    let mut live = [0i32; 3];
    (0..).zip(changes).all(|(place, change)| {
        (0..3).for_each(|kind| live[kind] += change[kind]);
        let counts = spans.is_empty() || bounds.loops.iter().any(|&(first, last)| (first..=last).contains(&place));
        !counts || live.iter().zip([VECTORS, MASKS, GENERALS]).all(|(&live, most)| live <= most.cast_signed())
    })
}

/// From where to where values live, by the number of the instruction.
struct Bounds {
    lives: SecondaryMap<Value, (usize, usize)>,
    loops: Vec<(usize, usize)>,
    places: usize,
}

impl Bounds {
    fn of(kernel: &Kernel, turns: &Turns, spans: &[(usize, usize)]) -> Self {
        let mut begins = vec![0];
        for &block in &turns.body {
            begins.push(begins[begins.len() - 1] + kernel.blocks[block].insts.len());
        }
        let loops: Vec<(usize, usize)> =
            spans.iter().map(|&(first, last)| (begins[first], begins[last + 1] - 1)).collect();
        let mut lives: SecondaryMap<Value, (usize, usize)> = SecondaryMap::new();
        let mut place = 0;
        for &block in &turns.body {
            kernel.blocks[block].params.iter().for_each(|&param| lives[param] = (place, place));
            for &inst in &kernel.blocks[block].insts {
                kernel.results[inst].iter().for_each(|&result| lives[result] = (place, place));
                kernel.insts[inst].for_each_use(|value| {
                    let (first, last) = lives[value];
                    // Through a loop that it comes from before, a value lives to the end.
                    let around = loops.iter().filter(|(begin, end)| first < *begin && (*begin..=*end).contains(&place));
                    let until = around.map(|&(_, end)| end).max().unwrap_or(place);
                    lives[value] = (first, last.max(until));
                });
                place += 1;
            }
        }
        Self { lives, loops, places: place }
    }
}
