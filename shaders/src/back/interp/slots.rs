//! Register assignment: values with disjoint live intervals share a register.
//!
//! Linear scan over intervals. Instructions are numbered in layout order; a value is treated as live from its
//! definition to its last use and, if a back edge leads to a block inside that interval, to the end of that edge. That
//! is sufficient for any control flow graph whose layout puts definitions before uses: control reaches a use from
//! inside the interval by going forward, or by a back edge, which the interval then covers.
//!
//! Registers `0 .. constants` hold constants, the next one is the spare register, and then come the iteration counters
//! of loops. The other registers are allocated lowest first, so that the live registers at a barrier are a short range.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use cranelift_entity::SecondaryMap;

use super::reconvergence::is_sync_point;
use crate::ir::{Block, Inst, InstData, Kernel, Scope, Value};

/// The registers of a kernel.
#[derive(Debug, Default)]
pub(super) struct RegisterSlots {
    /// Register of each value.
    pub of: SecondaryMap<Value, u32>,
    /// Contents of the first registers.
    pub constants: Vec<u64>,
    /// How many registers there are.
    pub count: u32,
    /// For each barrier: how many of the registers after the spare one are alive across it.
    pub live_at: HashMap<Inst, u32>,
}

impl RegisterSlots {
    /// A scratch register for breaking cycles of moves and for unused results.
    pub(super) fn spare(&self) -> u32 {
        self.constants.len() as u32
    }
}

/// Assigns registers; the first `counters` after the spare one count iterations. Takes `n log n` time in the number of
/// instructions for structured control flow.
pub(super) fn assign(kernel: &Kernel, counters: u32) -> RegisterSlots {
    let intervals = Intervals::new(kernel);
    let mut slots = constants(kernel);
    let first = slots.spare() + 1;
    let mut scan = LinearScan { next: first + counters, ..LinearScan::default() };
    let hints = Hints::new(kernel);
    let mut position = 0;
    for &block in &kernel.layout {
        scan.expire(position);
        for &param in &kernel.blocks[block].params {
            slots.of[param] = scan.take(intervals.ends[param].max(position), hints.for_value(param, &slots.of));
        }
        for &inst in &kernel.blocks[block].insts {
            position += 1;
            scan.expire(position);
            match (&kernel.insts[inst], kernel.results[inst]) {
                (InstData::Const { .. }, _) | (_, None) => {}
                (_, Some(value)) => {
                    slots.of[value] = scan.take(intervals.ends[value].max(position), hints.for_value(value, &slots.of));
                }
            }
            if is_barrier(&kernel.insts[inst]) {
                slots.live_at.insert(inst, scan.top().map_or(counters, |top| top + 1 - first));
            }
        }
        position += 1;
    }
    slots.count = scan.next;
    slots
}

/// Whether the interpreter may switch to another invocation at the instruction.
pub(super) fn is_barrier(data: &InstData) -> bool {
    is_sync_point(data) || matches!(data, InstData::Barrier { execution, .. } if *execution != Scope::Invocation)
}

fn constants(kernel: &Kernel) -> RegisterSlots {
    let mut slots = RegisterSlots::default();
    let mut known = HashMap::new();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        if let (&InstData::Const { bits, .. }, Some(value)) = (&kernel.insts[inst], kernel.results[inst]) {
            slots.of[value] = *known.entry(bits).or_insert_with(|| {
                slots.constants.push(bits);
                slots.constants.len() as u32 - 1
            });
        }
    }
    slots
}

/// Occupied registers, with the end of each interval.
#[derive(Default)]
struct LinearScan {
    next: u32,
    free: BTreeSet<u32>,
    taken: BTreeSet<u32>,
    ends: BinaryHeap<Reverse<(u32, u32)>>,
}

impl LinearScan {
    /// Frees registers whose last use is at `position` or before: a step reads its operands before it writes its
    /// result.
    fn expire(&mut self, position: u32) {
        while let Some(&Reverse((end, slot))) = self.ends.peek()
            && end <= position
        {
            self.ends.pop();
            self.taken.remove(&slot);
            self.free.insert(slot);
        }
    }

    /// Allocates a register until `end`: a wanted one if possible, else the lowest free one.
    fn take(&mut self, end: u32, wanted: impl IntoIterator<Item = u32>) -> u32 {
        let wanted = wanted.into_iter().find(|slot| self.free.remove(slot));
        let slot = wanted.or_else(|| self.free.pop_first()).unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.taken.insert(slot);
        self.ends.push(Reverse((end, slot)));
        slot
    }

    fn top(&self) -> Option<u32> {
        self.taken.last().copied()
    }
}

/// Coalescing hints: values that need no move if they have the same register.
struct Hints {
    /// An argument for each parameter, and a parameter for each argument.
    partners: SecondaryMap<Value, [Option<Value>; 2]>,
}

impl Hints {
    fn new(kernel: &Kernel) -> Self {
        let mut partners: SecondaryMap<Value, [Option<Value>; 2]> = SecondaryMap::new();
        for inst in kernel.layout.iter().filter_map(|&block| kernel.blocks[block].insts.last()) {
            for call in kernel.insts[*inst].targets() {
                for (&arg, &param) in call.args.iter().zip(&kernel.blocks[call.block].params) {
                    if kernel.constant(arg).is_none() {
                        partners[param][0].get_or_insert(arg);
                        partners[arg][1].get_or_insert(param);
                    }
                }
            }
        }
        Self { partners }
    }

    /// Registers of the partners that already have one.
    fn for_value<'a>(&self, value: Value, of: &'a SecondaryMap<Value, u32>) -> impl Iterator<Item = u32> + use<'a> {
        // Register 0 is a constant or the spare one and never free: here it stands for "not assigned yet".
        self.partners[value].into_iter().flatten().map(|partner| of[partner])
    }
}

/// The last position of each value.
struct Intervals {
    ends: SecondaryMap<Value, u32>,
}

impl Intervals {
    fn new(kernel: &Kernel) -> Self {
        let mut starts: SecondaryMap<Value, u32> = SecondaryMap::new();
        let mut ends: SecondaryMap<Value, u32> = SecondaryMap::new();
        let mut heads: SecondaryMap<Block, Option<u32>> = SecondaryMap::new();
        let mut back_edges = Vec::new();
        let mut position = 0;
        for &block in &kernel.layout {
            heads[block] = Some(position);
            kernel.blocks[block].params.iter().for_each(|&param| starts[param] = position);
            for &inst in &kernel.blocks[block].insts {
                position += 1;
                kernel.insts[inst].for_each_use(|value| ends[value] = position);
                if let Some(value) = kernel.results[inst] {
                    starts[value] = position;
                }
                let targets = kernel.insts[inst].targets();
                back_edges.extend(targets.iter().filter_map(|call| Some((heads[call.block]?, position))));
            }
            position += 1;
        }
        let edges = BackEdges::new(back_edges);
        for value in kernel.values.keys() {
            ends[value] = edges.extend(starts[value], ends[value]);
        }
        Self { ends }
    }
}

/// Back edges by the position of their target, with the greatest source position in any range of them.
struct BackEdges {
    heads: Vec<u32>,
    /// `tails[k][i]`: the greatest of the `2^k` source positions from `i` on.
    tails: Vec<Vec<u32>>,
}

impl BackEdges {
    fn new(mut edges: Vec<(u32, u32)>) -> Self {
        edges.sort_unstable();
        let heads = edges.iter().map(|edge| edge.0).collect();
        let mut tails: Vec<Vec<u32>> = vec![edges.iter().map(|edge| edge.1).collect()];
        let mut half = 1;
        while half * 2 <= edges.len() {
            let last = &tails[tails.len() - 1];
            tails.push((0..=edges.len() - half * 2).map(|i| last[i].max(last[i + half])).collect());
            half *= 2;
        }
        Self { heads, tails }
    }

    /// The end of an interval extended to cover every back edge to a target inside it.
    fn extend(&self, start: u32, mut end: u32) -> u32 {
        let first = self.heads.partition_point(|&head| head <= start);
        loop {
            let after = self.heads.partition_point(|&head| head <= end);
            if first >= after {
                return end;
            }
            let level = (after - first).ilog2() as usize;
            let greatest = self.tails[level][first].max(self.tails[level][after - (1 << level)]);
            if greatest <= end {
                return end;
            }
            end = greatest;
        }
    }
}
