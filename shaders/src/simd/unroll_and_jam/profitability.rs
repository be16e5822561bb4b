//! Profitability of unroll-and-jam: whether two interleaved subgroups are faster than one after the other.
//!
//! An out-of-order processor looks ahead as far as its window reaches. In a short loop that leaves it with one
//! dependence chain from iteration to iteration, in a long body with one chain from the first load to the last store;
//! two subgroups are two chains. If the chain takes no longer than the execution units are busy with the other
//! instructions, two chains gain nothing, and if the values of both do not fit the registers, they lose.

use cranelift_entity::SecondaryMap;

use super::CandidateLoop;
use crate::simd::cost::{busy, latency};
use crate::simd::{Block, InstData, Kernel, Type, Value};

/// Vector and mask registers that the values of two subgroups may occupy.
const MAX_VECTORS: u32 = 30;
const MAX_MASKS: u32 = 6;

/// General registers. Spilled scalars cost little, up to a point.
const MAX_SCALARS: u32 = 20;

/// Instructions of a body, at most, and at least if it has no loops: the window covers shorter ones.
const MAX_SIZE: usize = 600;
const MIN_SIZE: usize = 80;

/// Loop-carried vectors, at most: the recurrence is computed for each pair of them.
const MAX_CARRIED: usize = 12;

/// Whether dependence chains, not execution units, limit the body.
pub(super) fn is_latency_bound(kernel: &Kernel, candidate: &CandidateLoop) -> bool {
    let size = candidate.body.iter().map(|&block| kernel.blocks[block].insts.len()).sum::<usize>();
    if size > MAX_SIZE {
        return false;
    }
    let loops = inner_loops(kernel, candidate);
    if loops.is_empty() {
        let chain = Depths::of(kernel, &candidate.body, None).max;
        return size >= MIN_SIZE && exceeds(chain, busy(kernel, &candidate.body));
    }
    let innermost = |&&(first, last): &&(usize, usize)| !loops.iter().any(|&(at, _)| at > first && at <= last);
    loops.iter().filter(innermost).all(|&(first, last)| {
        let blocks = &candidate.body[first..=last];
        recurrence(kernel, blocks).is_some_and(|chain| exceeds(chain, busy(kernel, blocks)))
    })
}

/// Whether a chain takes a quarter more cycles than the units are busy: a smaller gain does not pay for the copies.
fn exceeds(chain: u32, busy: u32) -> bool {
    chain * 4 >= busy * 5
}

/// Loops inside the body: positions of their first and last blocks.
fn inner_loops(kernel: &Kernel, candidate: &CandidateLoop) -> Vec<(usize, usize)> {
    let mut positions: SecondaryMap<Block, usize> = SecondaryMap::with_default(usize::MAX);
    candidate.body.iter().enumerate().for_each(|(position, &block)| positions[block] = position);
    let mut loops: Vec<(usize, usize)> = Vec::new();
    for (position, &block) in candidate.body.iter().enumerate() {
        for call in kernel.targets(block) {
            let first = positions[call.block];
            if first <= position && call.block != candidate.subgroup_loop.header {
                loops.push((first, position));
            }
        }
    }
    loops
}

/// Cycles per iteration of the longest recurrence (loop-carried dependence) through one or two vectors.
fn recurrence(kernel: &Kernel, blocks: &[Block]) -> Option<u32> {
    let header = blocks[0];
    let params = &kernel.blocks[header].params;
    let carried: Vec<usize> = (0..params.len()).filter(|&place| kernel.ty(params[place]) == Type::V32).collect();
    if carried.len() > MAX_CARRIED {
        return None;
    }
    let last = kernel.blocks[*blocks.last()?].insts.last()?;
    let back_edge = kernel.insts[*last].targets().into_iter().find(|call| call.block == header)?.args.clone();
    let paths: Vec<Vec<Option<u32>>> = carried
        .iter()
        .map(|&from| {
            let depths = Depths::of(kernel, blocks, Some(params[from])).all;
            carried.iter().map(|&to| depths[back_edge[to]]).collect()
        })
        .collect();
    let mut max = 0;
    for (from, there) in paths.iter().enumerate() {
        for (back, there) in paths.iter().zip(there) {
            if let (Some(there), Some(back)) = (there, back[from]) {
                max = max.max((there + back) / 2);
            }
        }
    }
    Some(max)
}

/// The cycle in which each result is available, counted from one value, or from the start of the body.
struct Depths {
    all: SecondaryMap<Value, Option<u32>>,
    max: u32,
}

impl Depths {
    fn of(kernel: &Kernel, blocks: &[Block], from: Option<Value>) -> Self {
        let mut all = SecondaryMap::with_default(if from.is_some() { None } else { Some(0) });
        if let Some(from) = from {
            all[from] = Some(0);
        }
        let mut max = 0;
        for &inst in blocks.iter().flat_map(|&block| &kernel.blocks[block].insts) {
            let data = &kernel.insts[inst];
            let mut start = None;
            data.for_each_use(|value| start = start.max(all[value]));
            if let Some(start) = start {
                let end = start + latency(kernel, inst);
                max = max.max(end);
                kernel.results[inst].iter().for_each(|&result| all[result] = Some(end));
            }
            for call in data.targets().into_iter().filter(|call| call.block != blocks[0]) {
                for (&arg, &param) in call.args.iter().zip(&kernel.blocks[call.block].params) {
                    all[param] = all[param].max(all[arg]);
                }
            }
        }
        Self { all, max }
    }
}

/// Whether the live values of both subgroups fit the registers: in the inner loops if there are some, else everywhere.
pub(super) fn fits_registers(kernel: &Kernel, candidate: &CandidateLoop, variant: &SecondaryMap<Value, bool>) -> bool {
    let loops = inner_loops(kernel, candidate);
    let liveness = LiveRanges::of(kernel, candidate, &loops);
    // Changes of the number of live vectors, masks and scalars at each position.
    let mut changes = vec![[0i32; 3]; liveness.positions + 1];
    for (value, &(first, last)) in liveness.ranges.iter() {
        let class = match kernel.ty(value) {
            Type::V32 => 0,
            Type::Mask => 1,
            Type::S1 | Type::S32 | Type::S64 => 2,
        };
        let rematerialized = matches!(
            kernel.definition(value),
            Some(InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. })
        );
        if last > first && !rematerialized {
            let weight = if variant[value] { 2 } else { 1 };
            changes[first][class] += weight;
            changes[last][class] -= weight;
        }
    }
    let mut live = [0i32; 3];
    (0..).zip(changes).all(|(position, change)| {
        (0..3).for_each(|class| live[class] += change[class]);
        let counts = loops.is_empty() || liveness.loops.iter().any(|&(first, last)| (first..=last).contains(&position));
        let limits = [MAX_VECTORS, MAX_MASKS, MAX_SCALARS];
        !counts || live.iter().zip(limits).all(|(&live, limit)| live <= limit.cast_signed())
    })
}

/// Live ranges in the body, as instruction positions.
struct LiveRanges {
    ranges: SecondaryMap<Value, (usize, usize)>,
    /// The positions of the inner loops.
    loops: Vec<(usize, usize)>,
    positions: usize,
}

impl LiveRanges {
    fn of(kernel: &Kernel, candidate: &CandidateLoop, inner_loops: &[(usize, usize)]) -> Self {
        let mut starts = vec![0];
        for &block in &candidate.body {
            starts.push(starts[starts.len() - 1] + kernel.blocks[block].insts.len());
        }
        let loops: Vec<(usize, usize)> =
            inner_loops.iter().map(|&(first, last)| (starts[first], starts[last + 1] - 1)).collect();
        let mut ranges: SecondaryMap<Value, (usize, usize)> = SecondaryMap::new();
        let mut position = 0;
        for &block in &candidate.body {
            kernel.blocks[block].params.iter().for_each(|&param| ranges[param] = (position, position));
            for &inst in &kernel.blocks[block].insts {
                kernel.results[inst].iter().for_each(|&result| ranges[result] = (position, position));
                kernel.insts[inst].for_each_use(|value| {
                    let (first, last) = ranges[value];
                    // A value from before a loop that uses it is live to the loop's end.
                    let containing =
                        loops.iter().filter(|(start, end)| first < *start && (*start..=*end).contains(&position));
                    let end = containing.map(|&(_, end)| end).max().unwrap_or(position);
                    ranges[value] = (first, last.max(end));
                });
                position += 1;
            }
        }
        Self { ranges, loops, positions: position }
    }
}
