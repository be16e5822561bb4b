//! List scheduling of long blocks: interleaves independent dependence chains.
//!
//! An out-of-order processor looks ahead some hundred instructions, and fewer after a mispredicted branch. In a long
//! block its window holds one dependence chain at a time, and not the others that could run meanwhile. So every long
//! block that is limited by latency is list-scheduled: the instruction with the greatest height (longest chain of
//! dependents) comes first, unless registers run out; then one that frees registers comes first. Memory accesses and
//! scalar instructions keep their relative order.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use foldhash::HashMap;
use smallvec::SmallVec;

use super::cost::{busy, latency};
use super::{Block, Inst, InstData, Kernel, Type, Value};

/// Only blocks of 30 to 1,500 instructions are scheduled: shorter ones fit the out-of-order window, longer ones cost
/// too much compile time.
const MIN_LENGTH: usize = 30;
const MAX_LENGTH: usize = 1500;

/// Register pressure limits: vectors and masks.
const FULL: [i32; 2] = [26, 5];

/// Which blocks are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduled {
    /// Long blocks that are limited by latency.
    WhereProfitable,
    /// All except very long ones: for tests.
    Everywhere,
}

/// Schedules blocks for the least estimated waiting time.
pub fn schedule(kernel: &mut Kernel, which: Scheduled) {
    let always = which == Scheduled::Everywhere;
    let shortest = if always { 0 } else { MIN_LENGTH };
    let long = |block: &Block| (shortest..=MAX_LENGTH).contains(&kernel.blocks[*block].insts.len());
    let blocks: Vec<Block> = kernel.layout.iter().copied().filter(long).collect();
    if blocks.is_empty() {
        return;
    }
    let uses = all_uses(kernel);
    for block in blocks {
        let insts = &kernel.blocks[block].insts;
        let Some((&terminator, insts)) = insts.split_last() else { continue };
        let (mut order, moved): (Vec<Inst>, Vec<Inst>) =
            insts.iter().partition(|&&inst| is_constant(&kernel.insts[inst]));
        let nodes = Nodes::of(kernel, moved, &uses);
        // If the critical path is short compared to the work, the order does not matter.
        if always || nodes.critical_path() * 2 >= busy(kernel, &[block]) {
            order.extend(nodes.order());
            order.push(terminator);
            kernel.blocks[block].insts = order;
        }
    }
}

/// The number of instructions that use each value.
fn all_uses(kernel: &Kernel) -> SecondaryMap<Value, u32> {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(kernel.values.len());
    // A branch may pass one value many times, among arguments as numerous as the blocks.
    let mut last_user: SecondaryMap<Value, PackedOption<Inst>> = SecondaryMap::with_capacity(kernel.values.len());
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        kernel.insts[inst].for_each_use(|value| {
            if last_user[value].expand() != Some(inst) {
                last_user[value] = inst.into();
                uses[value] += 1;
            }
        });
    }
    uses
}

/// A node of the dependence graph: an instruction.
#[derive(Default)]
struct DependenceNode {
    /// Instructions that depend on it.
    next: SmallVec<[u32; 4]>,
    /// Number of unscheduled instructions that it depends on.
    waits: u32,
    /// Cycles from its issue to the end of the block, along the longest chain.
    height: u32,
    /// Latency in cycles.
    latency: u32,
    /// Cycle in which its operands are available.
    ready: u32,
    /// Cycles for which it occupies the vector units.
    occupancy: u32,
    /// Vectors and masks that it defines.
    makes: [i32; 2],
    /// Vectors and masks that it uses, as indices into `values`.
    uses: SmallVec<[u32; 4]>,
}

/// A vector or mask that occupies a register.
struct LiveValue {
    /// Register class.
    kind: usize,
    /// Unscheduled instructions that use it. Uses outside of the block count, too: these keep it live to the end.
    left: u32,
}

/// The dependence graph of a block, without its constants and terminator.
struct Nodes {
    insts: Vec<Inst>,
    all: Vec<DependenceNode>,
    values: Vec<LiveValue>,
    /// Number of live vectors and masks.
    live: [i32; 2],
}

impl Nodes {
    fn of(kernel: &Kernel, insts: Vec<Inst>, uses: &SecondaryMap<Value, u32>) -> Self {
        let mut nodes =
            Self { insts: Vec::new(), all: Vec::with_capacity(insts.len()), values: Vec::new(), live: [0, 0] };
        // Sized by the block, not by the kernel, which may have many long blocks.
        let mut numbers: HashMap<Value, u32> = HashMap::default();
        let mut definer: HashMap<Value, u32> = HashMap::default();
        let mut last_in_order = None;
        for (number, &inst) in (0u32..).zip(&insts) {
            let mut node = DependenceNode { latency: latency(kernel, inst), ..DependenceNode::default() };
            let mut before: SmallVec<[u32; 8]> = SmallVec::new();
            each_used_once(kernel, inst, |value| {
                before.extend(definer.get(&value).copied());
                let Some(kind) = kind(kernel, value) else { return };
                let number = *numbers.entry(value).or_insert_with(|| {
                    // Live-in: defined outside of the block.
                    nodes.live[kind] += 1;
                    nodes.values.push(LiveValue { kind, left: uses[value] });
                    nodes.values.len() as u32 - 1
                });
                node.uses.push(number);
            });
            if stays(kernel, inst) {
                before.extend(last_in_order.replace(number));
            }
            for &result in &kernel.results[inst] {
                definer.insert(result, number);
                if let Some(kind) = kind(kernel, result).filter(|_| uses[result] > 0) {
                    node.makes[kind] += 1;
                    numbers.insert(result, nodes.values.len() as u32);
                    nodes.values.push(LiveValue { kind, left: uses[result] });
                }
            }
            node.occupancy = u32::from(node.makes[0] > 0);
            node.waits = before.len() as u32;
            before.iter().for_each(|&before| nodes.all[before as usize].next.push(number));
            nodes.all.push(node);
        }
        for number in (0..nodes.all.len()).rev() {
            let dependents = nodes.all[number].next.iter().map(|&next| nodes.all[next as usize].height).max();
            nodes.all[number].height = dependents.unwrap_or(0) + nodes.all[number].latency;
        }
        nodes.insts = insts;
        nodes
    }

    fn critical_path(&self) -> u32 {
        self.all.iter().map(|node| node.height).max().unwrap_or(0)
    }

    fn order(mut self) -> Vec<Inst> {
        let mut order = Vec::with_capacity(self.insts.len());
        let mut waiting: Vec<u32> =
            (0u32..).zip(&self.all).filter(|(_, node)| node.waits == 0).map(|(number, _)| number).collect();
        let mut now = 0;
        while !waiting.is_empty() {
            let number = waiting.swap_remove(self.choose(&waiting, now)) as usize;
            order.push(self.insts[number]);
            let grows = self.grows(&self.all[number]);
            (0..2).for_each(|kind| self.live[kind] += grows[kind]);
            let node = std::mem::take(&mut self.all[number]);
            node.uses.iter().for_each(|&number| self.values[number as usize].left -= 1);
            now = node.ready.max(now + node.occupancy);
            for next in node.next {
                let after = &mut self.all[next as usize];
                after.ready = after.ready.max(now + node.latency);
                after.waits -= 1;
                if after.waits == 0 {
                    waiting.push(next);
                }
            }
        }
        order
    }

    /// Chooses the next of the instructions whose operands have been scheduled.
    fn choose(&self, waiting: &[u32], now: u32) -> usize {
        let rank = |&number: &u32| {
            let node = &self.all[number as usize];
            (self.overflows(node), node.ready.saturating_sub(now), std::cmp::Reverse(node.height), number)
        };
        (0..waiting.len()).min_by_key(|&place| rank(&waiting[place])).unwrap_or(0)
    }

    /// Whether its results exceed the registers.
    fn overflows(&self, node: &DependenceNode) -> bool {
        let near = |kind: usize| self.live[kind] + node.makes[kind] > FULL[kind];
        if node.makes == [0, 0] || !(near(0) || near(1)) {
            return false;
        }
        let grows = self.grows(node);
        (0..2).any(|kind| grows[kind] > 0 && self.live[kind] + grows[kind] > FULL[kind])
    }

    /// Change of the numbers of live vectors and masks by the instruction.
    fn grows(&self, node: &DependenceNode) -> [i32; 2] {
        let mut grows = node.makes;
        let ends = node.uses.iter().map(|&number| &self.values[number as usize]).filter(|value| value.left == 1);
        ends.for_each(|value| grows[value.kind] -= 1);
        grows
    }
}

/// Calls `visit` with each value that an instruction uses, once for each value.
fn each_used_once(kernel: &Kernel, inst: Inst, mut visit: impl FnMut(Value)) {
    let mut seen: SmallVec<[Value; 8]> = SmallVec::new();
    kernel.insts[inst].for_each_use(|value| {
        if !seen.contains(&value) {
            seen.push(value);
            visit(value);
        }
    });
}

/// Constants are memory operands of their users: they need no register, and are not scheduled.
fn is_constant(data: &InstData) -> bool {
    matches!(data, InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. })
}

/// Register class: 0 for vectors, 1 for masks.
fn kind(kernel: &Kernel, value: Value) -> Option<usize> {
    let kind = match kernel.ty(value) {
        Type::V32 => 0,
        Type::Mask => 1,
        _ => return None,
    };
    (!kernel.definition(value).is_some_and(is_constant)).then_some(kind)
}

/// Whether an instruction keeps its order relative to other such instructions: all except operations on vectors only.
fn stays(kernel: &Kernel, inst: Inst) -> bool {
    let moves = matches!(
        kernel.insts[inst],
        InstData::Pure { .. } | InstData::Select { .. } | InstData::Pick { .. } | InstData::Permute { .. }
    );
    let vectors = kernel.results[inst].iter().all(|&result| matches!(kernel.ty(result), Type::V32 | Type::Mask));
    !(moves && vectors)
}
